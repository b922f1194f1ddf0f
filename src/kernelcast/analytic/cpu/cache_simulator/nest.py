"""Simulates a loop nest in its steady state (Kerncraft paper, section 2.4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheHierarchy
from kernelcast.analytic.cpu.cache_simulator.nest_addresses import NestAddresses
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator
from kernelcast.analytic.cpu.cache_simulator.traffic import SimulatedTraffic
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.cache_volumes import CacheVolumes, LevelVolume

_CHUNK_ACCESSES = 1 << 16
_CHECKS = 50
"""Looks at the caches while as many elements go by as they have room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to simulate.

    Parameters
    ----------
    window_iterations : int
        Iterations of the innermost loop to count, or as many as the nest has: one line of work
        more or less is 0.01 % of 100 000 iterations.
    uneven_iterations : int
        The same for nests with conditions on loop variables: what holds for a part of them says
        nothing of the rest.
    most_warm_capacities : float
        Iterations at most before counting, per element that the caches have room for.
    """

    window_iterations: int = 100_000
    uneven_iterations: int = 10_000_000
    most_warm_capacities: float = 2.0


_USUAL = Effort()


def simulate_nest(
    nest: LoopNest,
    hierarchy: CacheHierarchy,
    constants: Mapping[str, int] | None = None,
    *,
    alignment_bytes: int | None = None,
    effort: Effort = _USUAL,
) -> CacheVolumes:
    """Count what a nest moves through caches once they are warm.

    The nest runs from its beginning until all caches are full, and on; what it has yet to touch
    then is not in them. If it ends before, or is about to, all of it has passed the caches once:
    it begins again, at the edge of its arrays. The count starts where the lowest store, else the
    lowest load, begins a cache line.

    Parameters
    ----------
    nest : LoopNest
        Any; addresses may be any expression.
    hierarchy : CacheHierarchy
        The caches.
    constants : mapping of str to int
        Values of constants; they win over the nest's own.
    alignment_bytes : int or None
        Of the arrays, see `NestAddresses`; a cache line if None.
    effort : Effort
        How long to simulate.

    Returns
    -------
    CacheVolumes

    Raises
    ------
    InputError
        See `NestAddresses`.
    """
    line_bytes = hierarchy.levels[0].line_bytes
    if alignment_bytes is None:
        alignment_bytes = line_bytes
    addresses = NestAddresses(nest, constants or {}, alignment_bytes=alignment_bytes)
    per_line = line_bytes / addresses.find_work_bytes(line_bytes)
    run = _Run(addresses, Simulator(hierarchy), effort)
    notes = run.warm_up()
    counted = run.count()
    return CacheVolumes(
        predictor="sim",
        levels=_divide(run.simulator.traffic(), counted / per_line),
        line_bytes=line_bytes,
        iterations=per_line,
        notes=notes,
    )


class _Run:
    """A nest that runs through a simulator."""

    def __init__(self, addresses: NestAddresses, simulator: Simulator, effort: Effort) -> None:
        self.simulator = simulator
        self._addresses = addresses
        self._chunk = max(1, _CHUNK_ACCESSES // len(addresses.kinds))
        window = effort.uneven_iterations if addresses.is_uneven else effort.window_iterations
        self._window = min(window, addresses.total)
        self._capacity = simulator.hierarchy.size_bytes // int(addresses.kinds[:, 1].min())
        self._most_warm = effort.most_warm_capacities * self._capacity

    def warm_up(self) -> tuple[str, ...]:
        """Fill the caches, and go to where counting may begin; give what is to be said of it."""
        between = -(-self._capacity // _CHECKS)
        done = 0
        while done < self._most_warm and self._addresses.row_left and not self.simulator.is_full:
            done += self._advance(between)
        if done + self._window > self._addresses.total:
            self._advance(self._window)  # to the end: there is too little left to count
        notes: tuple[str, ...] = ()
        if self._addresses.row_left and not self.simulator.is_full:
            notes = (f"counted after {done} iterations, before the caches were full",)
        if self._addresses.is_uneven and self._window < self._addresses.total:
            notes += (
                f"counted in {self._window} of {self._addresses.total} iterations: conditions may "
                "hold more often or less in the others",
            )
        self._align()
        return notes

    def count(self) -> int:
        """Count over a window; give its iterations."""
        self.simulator.reset_counts()
        return self._advance(self._window)

    def _align(self) -> None:
        """Go on to where the lowest store, else the lowest load, begins a line."""
        if not self._addresses.row_left:
            self._addresses.rewind()
        line_bytes = self.simulator.hierarchy.levels[0].line_bytes
        for _ in range(line_bytes):
            address, size = self._addresses.peek()
            if address % line_bytes < size:
                return
            self._advance(1)

    def _advance(self, iterations: int) -> int:
        """Run so many iterations, fewer at the end of the nest; give how many."""
        done = 0
        while done < iterations and self._addresses.row_left:
            chunk, kinds, passed = self._addresses.take_executed(
                min(self._chunk, iterations - done)
            )
            if chunk.size:
                self.simulator.feed_checked(chunk, kinds)
            done += passed
        return done


def _divide(traffic: SimulatedTraffic, lines_of_work: float) -> tuple[LevelVolume, ...]:
    """Give counts per cache line of work."""
    return tuple(
        LevelVolume(
            name=one.name,
            hits=one.hits / lines_of_work,
            misses=one.misses / lines_of_work,
            evicts=one.evicts / lines_of_work,
            loads=one.loads / lines_of_work,
            stores=one.stores / lines_of_work,
        )
        for one in traffic.levels
    )
