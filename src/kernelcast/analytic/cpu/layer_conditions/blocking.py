"""Which loop to cut into which blocks so that a cache keeps what it loses now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from kernelcast.analytic.cpu.layer_conditions.evaluation import LayerConditions
from kernelcast.analytic.cpu.layer_conditions.nest import BoundNest
from kernelcast.analytic.cpu.layer_conditions.streams import profile_nest
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest

_WORTHWHILE = 0.99
"""Advice saves at least one line in a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingAdvice:
    """Cut a loop into blocks, over which a new loop goes outside of all others."""

    level: str
    """The cache that gains."""
    loop: str
    block: int
    trip: int
    """Iterations of a block, the largest that gains as much, and of the loop as it is."""
    misses_before: float
    misses_after: float
    """Lines per cache line of work, edges of blocks not counted."""

    def __str__(self) -> str:
        return (
            f"block {self.loop} at {self.block} (now {self.trip}) to keep {self.level}: it misses "
            f"{self.misses_after:g} lines instead of {self.misses_before:g}"
        )


def advise_blocking(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int], cores: int = 1
) -> tuple[BlockingAdvice, ...]:
    """Find blocks that fit: for each cache, the loops that help, nearest cache first."""
    conditions = LayerConditions(nest, machine)
    rows = _widen(conditions.bind(constants))
    # A block of less than a line of work costs more at its edges than it saves.
    smallest = ceil(profile_nest(rows, machine.line_bytes).iterations)
    found: list[BlockingAdvice] = []
    levels = conditions.predict(constants, cores).levels[:-1]
    for level, capacity in zip(levels, machine.shares(cores), strict=True):
        for place in range(1, len(nest.loops)) if level.misses else ():

            def count_misses(block: int, place: int = place, capacity: int = capacity) -> float:
                trips = (*rows.trips[:place], block, *rows.trips[place + 1 :])
                profile = profile_nest(replace(rows, trips=trips), machine.line_bytes)
                return profile.missed_lines(profile.remembered(capacity))

            trip = rows.trips[place]
            low, high = min(smallest, trip), trip + 1
            best = count_misses(low)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if count_misses(middle) <= best else (low, middle)
            if best < _WORTHWHILE * level.misses and smallest < low < trip:
                found.append(
                    BlockingAdvice(
                        level=level.name, loop=nest.loops[place].name, block=low, trip=trip,
                        misses_before=level.misses, misses_after=best,
                    )
                )  # fmt: skip
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
