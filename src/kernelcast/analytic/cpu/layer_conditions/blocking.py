"""Which loop to cut into which blocks so that a cache keeps what it loses now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from kernelcast.analytic.cpu.layer_conditions.bound import BoundNest
from kernelcast.analytic.cpu.layer_conditions.evaluation import LayerConditions
from kernelcast.analytic.cpu.layer_conditions.profile import profile_nest
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest

_WORTHWHILE = 0.99
"""Advice saves at least one line in a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingAdvice:
    """Cut a loop into blocks.

    Parameters
    ----------
    level : str
        The cache that gains.
    loop : str
        The loop to block: a new loop over blocks goes outside of all others.
    block, trip : int
        Iterations of a block, the largest that gains as much, and of the loop as it is.
    misses_before, misses_after : float
        Lines per cache line of work, edges of blocks not counted.
    """

    level: str
    loop: str
    block: int
    trip: int
    misses_before: float
    misses_after: float

    def __str__(self) -> str:
        return (
            f"block {self.loop} at {self.block} (now {self.trip}) to keep {self.level}: it misses "
            f"{self.misses_after:g} lines instead of {self.misses_before:g}"
        )


def advise_blocking(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int], cores: int = 1
) -> tuple[BlockingAdvice, ...]:
    """Find blocks that fit.

    Parameters
    ----------
    nest : LoopNest
        Any.
    machine : CpuMachine
        Caches.
    constants : mapping of str to int
        Sizes.
    cores : int
        Busy cores.

    Returns
    -------
    tuple of BlockingAdvice
        For each cache, the loops that help, nearest cache first; empty if blocking does not help.

    Raises
    ------
    InputError
        As `LayerConditions.predict`.
    """
    conditions = LayerConditions(nest, machine)
    rows = _widen(conditions.bind(constants))
    volumes = conditions.predict(constants, cores)
    found: list[BlockingAdvice] = []
    for cache, capacity in zip(machine.caches, conditions.capacities(cores), strict=True):
        level = volumes.level(cache.name)
        if level is not None and level.misses:
            search = _Search(rows, capacity, machine.line_bytes)
            names = [loop.name for loop in nest.loops]
            found.extend(search.advise(cache.name, names, level.misses))
    return tuple(found)


def _widen(nest: BoundNest) -> BoundNest:
    """Let each loop run over whole rows, edges that a stencil leaves out included."""
    trips = list(nest.trips)
    for one in nest.accesses:
        moving = [place for place, stride in enumerate(one.strides) if stride]
        for outer, inner in pairwise(moving):
            if inner == outer + 1 and one.strides[outer] % one.strides[inner] == 0:
                trips[inner] = max(trips[inner], one.strides[outer] // one.strides[inner])
    return replace(nest, trips=tuple(trips), is_blocked=True)


class _Search:
    """Looks for the largest block of a loop for one cache."""

    def __init__(self, nest: BoundNest, capacity: int, line_bytes: int) -> None:
        self._nest = nest
        self._capacity = capacity
        self._line_bytes = line_bytes

    def advise(self, level: str, loops: list[str], before: float) -> Iterator[BlockingAdvice]:
        # A block of less than a line of work costs more at its edges than it saves.
        smallest = ceil(profile_nest(self._nest, self._line_bytes).iterations)
        for place in range(1, len(loops)):
            trip = self._nest.trips[place]
            best = self._misses(place, min(smallest, trip))
            block = self._largest(place, min(smallest, trip), best)
            if best < _WORTHWHILE * before and smallest < block < trip:
                yield BlockingAdvice(
                    level=level, loop=loops[place], block=block, trip=trip,
                    misses_before=before, misses_after=best,
                )  # fmt: skip

    def _misses(self, place: int, block: int) -> float:
        trips = list(self._nest.trips)
        trips[place] = block
        profile = profile_nest(replace(self._nest, trips=tuple(trips)), self._line_bytes)
        return profile.missed_lines(profile.remembered(self._capacity))

    def _largest(self, place: int, low: int, target: float) -> int:
        high = self._nest.trips[place] + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._misses(place, middle) <= target:
                low = middle
            else:
                high = middle
        return low
