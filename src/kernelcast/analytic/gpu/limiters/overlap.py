"""How the limiters of a launch overlap: the largest one counts, with two exceptions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

ADDED = ("translation", "tail", "launch")
"""Limiters during which nothing else goes on."""
_NEGLIGIBLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time of each limiter alone.

    Parameters
    ----------
    times : mapping of str to float
        Seconds by limiter.
    exposed_s : float
        Part of L1's time that DRAM transfers wait for.
    """

    times: Mapping[str, float]
    exposed_s: float

    def without(self, limiter: str) -> "Limits":
        """Give the limits of a machine on which one limiter takes no time."""
        exposed_s = 0.0 if limiter == "L1" else self.exposed_s
        return replace(self, times={**self.times, limiter: 0.0}, exposed_s=exposed_s)

    def list_without(self) -> dict[str, float]:
        """Give the time of all without each; only the longest, L1 and DRAM change it."""
        whole = self.combine()
        longest = max((s for name, s in self.times.items() if name not in ADDED), default=0.0)
        return {
            name: self.without(name).combine()
            if name in {*ADDED, "L1", "DRAM"} or seconds == longest
            else whole
            for name, seconds in self.times.items()
        }

    def combine(self) -> float:
        """Compute the time of all together, in seconds.

        The DRAM waits for a part of L1's cycles, so the two add: on a V100 the time of a stencil
        exceeds that of the DRAM by the same amount from 4 to 16 ms. All else overlaps, except the
        limiters in `ADDED`; where arithmetic and DRAM take equally long, A40 and L40 lose 4 %
        in gpu-benches' roofline results.
        """
        alone = max((s for name, s in self.times.items() if name not in ADDED), default=0.0)
        dram_s = self.times.get("DRAM", 0.0)
        path_s = dram_s + self.exposed_s if dram_s else 0.0
        return max(alone, path_s) + sum(self.times.get(name, 0.0) for name in ADDED)

    def find_largest(self) -> str:
        """Name the limiter whose removal saves most time; of equal savings, the longest.

        Where several take about equally long, no removal saves more than `_NEGLIGIBLE` of the
        time: then the longest of all is named.
        """
        return self.choose_largest(self.list_without())

    def choose_largest(self, without: Mapping[str, float]) -> str:
        """Name it, given what `list_without` gives."""
        whole = self.combine()
        saved = {name: whole - seconds for name, seconds in without.items()}
        if max(saved.values()) < _NEGLIGIBLE * whole:
            return max(self.times, key=self.times.__getitem__)
        return max(self.times, key=lambda name: (saved[name], self.times[name]))
