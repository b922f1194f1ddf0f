"""How the limiters of a launch overlap: arithmetic with memory nearly, all others but for some."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

ADDED = ("translation", "tail", "launch")
"""Limiters during which nothing else goes on."""
ARITHMETIC = ("fp32", "fp64", "int", "special", "issue")
"""Limiters that overlap with those of memory as far as a power says."""
_NEGLIGIBLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time of each limiter alone."""

    times: Mapping[str, float]
    """Seconds by limiter."""
    exposed_s: float
    """Part of L1's time that DRAM transfers wait for."""
    power: float = math.inf
    """How arithmetic, other instructions and memory overlap: the time of all three is the root of
    their powers' sum. With infinity the longest one counts."""
    beside_s: float = 0.0
    """Time of issuing the instructions that the longest kind of arithmetic does not execute."""

    def without(self, limiter: str) -> "Limits":
        """Give the limits of a machine on which one limiter takes no time."""
        return replace(
            self,
            times={**self.times, limiter: 0.0},
            exposed_s=0.0 if limiter == "L1" else self.exposed_s,
            beside_s=0.0 if limiter == "issue" else self.beside_s,
        )

    def list_without(self) -> dict[str, float]:
        """Give the time of all without each; the longest ones, issue, L1 and DRAM change it."""
        whole = self.combine()
        longest = self._find_longest()
        found = {}
        for name, seconds in self.times.items():
            if name in ADDED:
                found[name] = whole - seconds
            elif name in {"issue", "L1", "DRAM"} or seconds in longest:
                found[name] = self.without(name).combine()
            else:
                found[name] = whole
        return found

    def _find_longest(self) -> tuple[float, float]:
        """Give the longest limiter of arithmetic, and that of memory."""
        arithmetic_s = memory_s = 0.0
        for name, seconds in self.times.items():
            if name in ARITHMETIC:
                arithmetic_s = max(arithmetic_s, seconds)
            elif name not in ADDED:
                memory_s = max(memory_s, seconds)
        return arithmetic_s, memory_s

    def combine(self) -> float:
        """Compute the time of all together, in seconds.

        The DRAM waits for a part of L1's cycles, so the two add: on a V100 the time of a stencil
        exceeds that of the DRAM by the same amount from 4 to 16 ms. All else overlaps, except the
        limiters in `ADDED`, and arithmetic with memory in part: where both take equally long,
        launches of gpu-benches' roofline last 8 % longer on an A40 and 17 % on an A100. A unit of
        arithmetic waits in the same way while a scheduler issues other instructions: where
        reciprocal roots limit Coulomb sums, those with more loads take longer.
        """
        dram_s = self.times.get("DRAM", 0.0)
        path_s = dram_s + self.exposed_s if dram_s else 0.0
        arithmetic_s, memory_s = self._find_longest()
        alone_s = _overlap((arithmetic_s, self.beside_s, max(memory_s, path_s)), self.power)
        return alone_s + sum(self.times.get(name, 0.0) for name in ADDED)

    def choose_largest(self, without: Mapping[str, float]) -> str:
        """Name the limiter whose removal saves most time; of equal savings, the longest.

        Where several take about equally long, no removal saves more than `_NEGLIGIBLE` of the
        time: then the longest of all is named.

        Parameters
        ----------
        without : mapping of str to float
            From `list_without`.
        """
        whole = self.combine()
        saved = {name: whole - seconds for name, seconds in without.items()}
        if max(saved.values()) < _NEGLIGIBLE * whole:
            return max(self.times, key=self.times.__getitem__)
        return max(self.times, key=lambda name: (saved[name], self.times[name]))


def _overlap(times: Sequence[float], power: float) -> float:
    longest = max(times)
    if not longest > 0 or math.isinf(power):
        return longest
    return longest * float(sum((one / longest) ** power for one in times) ** (1 / power))
