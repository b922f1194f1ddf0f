"""Layer conditions in numbers: hits, misses and evictions of caches, and blocks that save some."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from kernelcast.analytic.cpu.layer_conditions.streams import (
    BoundNest,
    bind,
    profile_nest,
    read_accesses,
)
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume


class LayerConditions:
    """Predicts cache traffic without simulating it (paper, section 2.4.2).

    A victim cache remembers its own share, as in the reference tool; in hardware what the nearer
    cache remembers comes on top.
    """

    name = "lc"

    def __init__(self, nest: LoopNest, machine: CpuMachine) -> None:
        self._nest = nest
        self._machine = machine
        self._accesses = read_accesses(nest)
        self._notes = tuple(self._note())

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> CacheVolumes:
        """Predict the traffic of every level."""
        capacities = self._machine.shares(cores)
        bound = self.bind(constants)
        profile = profile_nest(bound, self._machine.line_bytes)
        levels = []
        loads = stores = None
        for cache, capacity in zip(self._machine.caches, capacities, strict=True):
            horizon = profile.remembered(capacity)
            misses, evicts = profile.missed_lines(horizon), profile.evicted_lines(horizon)
            levels.append(
                LevelVolume(
                    name=cache.name, hits=profile.accessed_lines() - misses, misses=misses,
                    evicts=evicts, loads=loads, stores=stores,
                )
            )  # fmt: skip
            loads, stores = misses, evicts
        memory = LevelVolume(
            name=MEMORY, hits=loads or 0.0, misses=0.0, evicts=0.0, loads=loads, stores=stores
        )
        return CacheVolumes(
            predictor=self.name,
            levels=(*levels, memory),
            line_bytes=self._machine.line_bytes,
            iterations=profile.iterations,
            notes=(*self._note_order(bound), *self._notes),
        )

    def bind(self, constants: Mapping[str, int]) -> BoundNest:
        """Put numbers in the place of constants; raises as `predict`."""
        return bind(self._nest, self._accesses, constants)

    def conflicts(self, constants: Mapping[str, int]) -> tuple[str, ...]:
        """Name arrays of which one iteration needs more lines in one set than a cache has ways."""
        moving = [one for one in self.bind(constants).accesses if one.strides[-1]]
        notes = []
        for cache in self._machine.caches:
            for array in dict.fromkeys(one.array for one in moving):
                lines = {one.offset // cache.line_bytes for one in moving if one.array == array}
                crowd = max(Counter(line % cache.sets for line in lines).values())
                if crowd > cache.ways:
                    notes.append(
                        f"{array}: {crowd} of its lines at a time fall into one set of "
                        f"{cache.name}, which holds {cache.ways}; pad the rows, or simulate"
                    )
        return tuple(notes)

    def _note(self) -> Iterator[str]:
        """Say what is assumed, whatever the sizes are."""
        yield from self._nest.notes
        yield from note_decisions(self._nest)
        still = (one.access.array for one in self._accesses if one.strides[-1].is_zero)
        for array in dict.fromkeys(still):
            yield f"{array}: the innermost loop does not move it; its few lines are not counted"
        for loop in self._nest.loops:
            if not (loop.stop - loop.start).is_parameter:
                note = "its length changes; reuse is that of a middle iteration"
                yield f"loop over {loop.name}: {note}"
        for cache in self._machine.caches:
            if cache.is_victim:
                yield (
                    f"{cache.name} is a victim cache: it is judged by its own size, without "
                    "lines that only the nearer cache holds"
                )

    def _note_order(self, bound: BoundNest) -> Iterator[str]:
        """Name the arrays that the loops do not pass in the order of memory."""
        order = ", ".join(loop.name for loop in self._nest.loops)
        jumping = (one.array for one in bound.accesses if one.strides[-1] and not one.is_sequential)
        for array in dict.fromkeys(jumping):
            yield (
                f"{array}: the loops ({order}) do not pass it in the order of its memory; reuse is "
                "estimated per line, the simulator sees it exactly"
            )


def note_decisions(nest: LoopNest) -> tuple[str, ...]:
    """Say how often conditions on data are taken to hold."""
    if not nest.decisions:
        return ()
    asked = "; ".join(one.name for one in nest.decisions)
    taken = "both sides are executed, under a mask"
    if nest.taken is not None:
        taken = f"they are taken to hold in {100 * nest.taken:g} % of the iterations, at random"
    return (f"conditions on data ({asked}): {taken}",)


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
            # Advice saves at least one line in a hundred.
            if best < 0.99 * level.misses and smallest < low < trip:
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
