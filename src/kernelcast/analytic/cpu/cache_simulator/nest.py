"""Simulates a loop nest in its steady state (Kerncraft paper, section 2.4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheHierarchy
from kernelcast.analytic.cpu.cache_simulator.nest_addresses import NestAddresses
from kernelcast.analytic.cpu.cache_simulator.simulation import Simulator
from kernelcast.analytic.cpu.cache_simulator.traffic import SimulatedTraffic
from kernelcast.records.cache_volumes import CacheVolumes, LevelVolume
from kernelcast.records.loop_nest import LoopNest

_CHUNK_ACCESSES = 1 << 16
_WARM_SHARE = 1.5
"""Bytes brought in before counting, per byte of cache: by then all that was there has gone."""
_WINDOW_LINES = 12_500
"""Cache lines of work that are counted at least: one line more or less is 0.01 %."""
_MOST_WARM_ACCESSES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to simulate.

    Parameters
    ----------
    window_lines : int
        Cache lines of work to count at least, unless the whole nest is less.
    warm_share : float
        Bytes to load from memory before counting, per byte of cache.
    most_warm_accesses : int
        Accesses at most before counting.
    """

    window_lines: int = _WINDOW_LINES
    warm_share: float = _WARM_SHARE
    most_warm_accesses: int = _MOST_WARM_ACCESSES


_USUAL = Effort()


def simulate_nest(
    nest: LoopNest,
    hierarchy: CacheHierarchy,
    constants: Mapping[str, int] | None = None,
    *,
    alignment_bytes: int = 1,
    effort: Effort = _USUAL,
) -> CacheVolumes:
    """Count what a nest moves through caches once they are warm.

    The nest runs from its beginning until memory has given 1.5 times what all caches hold, again
    and again if need be; or for one pass, if the caches can hold all that it loads. It then goes
    on to an edge, from which whole iterations of a loop are counted; behind its end the nest
    begins again. That loop is the whole nest if it is no longer than two windows; else the
    outermost loop whose iterations are no longer than one. Where even one run of the innermost
    loop is longer, a stretch of it is counted that begins with a cache line.

    Parameters
    ----------
    nest : LoopNest
        Any; addresses may be any expression.
    hierarchy : CacheHierarchy
        The caches.
    constants : mapping of str to int
        Values of constants; they win over the nest's own.
    alignment_bytes : int
        Of the arrays, which lie one behind the other as declared. 1 leaves no gaps.
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
    addresses = NestAddresses(nest, constants or {}, alignment_bytes=alignment_bytes)
    line_bytes = hierarchy.levels[0].line_bytes
    run = _Run(addresses, Simulator(hierarchy))
    per_line = line_bytes / addresses.find_work_bytes(line_bytes)
    notes = run.warm_up(effort)
    counted = run.count(effort.window_lines * per_line)
    return CacheVolumes(
        predictor="sim",
        levels=_divide(run.simulator.traffic(), counted / per_line),
        line_bytes=line_bytes,
        iterations=per_line,
        notes=notes,
    )


class _Run:
    """A nest that runs through a simulator."""

    def __init__(self, addresses: NestAddresses, simulator: Simulator) -> None:
        self.simulator = simulator
        self._addresses = addresses
        self._chunk = max(1, _CHUNK_ACCESSES // len(addresses.kinds))

    def warm_up(self, effort: Effort) -> tuple[str, ...]:
        """Fill the caches; give what is to be said about it."""
        size_bytes = self.simulator.hierarchy.size_bytes
        left = effort.most_warm_accesses
        while left > 0:
            left -= self._step(self._chunk) * len(self._addresses.kinds)
            loaded_bytes = self.simulator.traffic().memory.loaded_bytes
            is_pass_over = not self._addresses.row_left
            if loaded_bytes >= effort.warm_share * size_bytes:
                return ()
            if is_pass_over and loaded_bytes <= size_bytes:
                return ()  # all of it stays
        return (f"counted after {effort.most_warm_accesses} accesses, before the caches were warm",)

    def count(self, iterations: float) -> int:
        """Count over at least so many iterations, from edge to edge; give how many."""
        at_start = not self._addresses.row_left
        self._go_to_edge(0, is_needed=self._addresses.total <= 2 * iterations)
        trips = self._addresses.trips
        inside = [prod(trips[place:]) for place in range(1, len(trips) + 1)]
        if self._addresses.total <= 2 * iterations:
            place, times = 0, 1
        else:
            place = next(at for at, one in enumerate(inside, 1) if one <= iterations)
            times = ceil(iterations / inside[place - 1])
        if place == len(trips):
            return self._count_in_row(times)
        self._go_to_edge(place, is_needed=place > 0 and not at_start)
        self.simulator.reset_counts()
        return sum(self._finish_loop(place) for _ in range(times))

    def _count_in_row(self, iterations: int) -> int:
        if self._addresses.row_left < iterations:
            self._go_to_edge(len(self._addresses.variables) - 1)
        self._align()
        self.simulator.reset_counts()
        done = 0
        while done < iterations:
            done += self._step(min(self._chunk, iterations - done))
        return done

    def _align(self) -> None:
        """Go on to where the first store, else the first load, begins a line."""
        kinds = self._addresses.kinds
        first = int(kinds[:, 0].argmax())
        line_bytes = self.simulator.hierarchy.levels[0].line_bytes
        for _ in range(line_bytes):
            if self._addresses.peek(first) % line_bytes < kinds[first, 1]:
                return
            self._step(1)

    def _go_to_edge(self, place: int, *, is_needed: bool = True) -> None:
        """Go on until the loops from a place on begin; to the nest's beginning from its end."""
        if not self._addresses.row_left:
            self._addresses.rewind()
        elif is_needed:
            self._finish_loop(place)
            self._go_to_edge(place, is_needed=False)

    def _finish_loop(self, place: int) -> int:
        """Run until the loops from a place on have ended; 0 is the whole nest."""
        if not self._addresses.row_left:
            self._addresses.rewind()
        before = self._addresses.variables[:place]
        done = 0
        while self._addresses.row_left and self._addresses.variables[:place] == before:
            left = self._addresses.row_left if place else self._chunk
            done += self._step(min(left, self._chunk))
        return done

    def _step(self, iterations: int) -> int:
        """Run some iterations, fewer at the end of the nest, from which it begins again."""
        if not self._addresses.row_left:
            self._addresses.rewind()
        chunk = self._addresses.take(iterations)
        self.simulator.feed_checked(chunk, self._addresses.kinds)
        return len(chunk) // len(self._addresses.kinds)


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
