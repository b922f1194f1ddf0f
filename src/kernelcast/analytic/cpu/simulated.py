"""Cache traffic of a loop nest by simulation (Kerncraft paper, section 2.4.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.layer_conditions import note_decisions
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine
from kernelcast.analytic.cpu.streams import find_work_bytes
from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, unite
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume
from kernelcast.records.errors import InputError

Integers = npt.NDArray[np.int64]

_MOST_WAYS, _USUAL_WAYS = 64, 16
"""More ways than any cache has stand for an unknown number; such a cache is simulated with 16."""
_WINDOW, _UNEVEN_WINDOW = 100_000, 10_000_000
"""Iterations of the innermost loop that are counted, or as many as the nest has: one line of work
more or less is 0.01 % of them. More where conditions on loop variables hold for a part of them."""
_WARM_UP, _CHECKS = 2, 50
"""Iterations at most before counting, per element that the caches have room for, and how often it
is asked meanwhile whether these are full."""


def predict_by_simulation(
    nest: LoopNest, machine: CpuMachine, constants: Mapping[str, int], cores: int = 1
) -> CacheVolumes:
    """Predict the traffic of every level for one of so many busy cores, by simulated caches.

    Exact where `predict_by_layers` assumes: orders of loops, steps, sets and ways, addresses.
    """
    caches, notes = [], [*nest.notes, *note_decisions(nest)]
    for cache, size in zip(machine.caches, machine.shares(cores), strict=True):
        ways = cache.ways
        if ways > _MOST_WAYS:
            notes.append(
                f"{cache.name}: {ways} ways are taken for an unknown number; simulated with "
                f"{_USUAL_WAYS}"
            )
            ways = _USUAL_WAYS
        whole = size - size % (ways * cache.line_bytes)
        caches.append(replace(cache, ways=ways, size_bytes=whole))
    found = simulate_nest(nest, caches, constants)
    return replace(found, notes=(*notes, *found.notes))


def simulate_nest(
    nest: LoopNest, caches: Sequence[CpuCache], constants: Mapping[str, int]
) -> CacheVolumes:
    """Count what a nest moves through caches once they are warm."""
    # The nest runs from its beginning until all caches are full, and on; what it has yet to touch
    # then is not in them. If it ends before, or is about to, all of it has passed the caches once:
    # it begins again, at the edge of its arrays.
    # numba takes half a second to import; layer conditions need not wait for it.
    from kernelcast.analytic.cpu.cache_engine import Simulator

    line_bytes = caches[0].line_bytes
    run = NestAddresses(nest, constants, alignment_bytes=line_bytes)
    simulator = Simulator(caches)
    per_line = line_bytes / run.find_work_bytes(line_bytes)
    window = min(_UNEVEN_WINDOW if run.is_uneven else _WINDOW, run.total)
    capacity = sum(one.size_bytes for one in caches) // int(run.kinds[:, 1].min())
    chunk = max(1, (1 << 16) // len(run.kinds))

    def advance(iterations: int) -> int:
        done = 0
        while done < iterations and run.has_more:
            addresses, kinds, passed = run.take(min(chunk, iterations - done))
            if addresses.size:
                simulator.feed(addresses, kinds)
            done += passed
        return done

    done = 0
    while done < _WARM_UP * capacity and run.has_more and not simulator.is_full:
        done += advance(-(-capacity // _CHECKS))
    if done + window > run.total:
        advance(window)  # to the end: there is too little left to count
    notes = []
    if run.has_more and not simulator.is_full:
        notes.append(f"counted after {done} iterations, before the caches were full")
    if run.is_uneven and window < run.total:
        notes.append(
            f"counted in {window} of {run.total} iterations: conditions may hold more often or "
            "less in the others"
        )
    if not run.has_more:
        run.rewind()
    advance(run.count_before_line(line_bytes))
    simulator.reset_counts()
    lines = advance(window) / per_line
    names = [*(one.name for one in caches), MEMORY]
    kinds = ("loads", "hits", "misses", "stores", "evicts")
    return CacheVolumes(
        predictor="sim",
        levels=tuple(
            LevelVolume(
                name=name, **{kind: one / lines for kind, one in zip(kinds, counts, strict=True)}
            )
            for name, counts in zip(names, simulator.counts, strict=True)
        ),
        line_bytes=line_bytes,
        iterations=per_line,
        notes=tuple(notes),
    )


class NestAddresses:
    """The addresses that a nest's iterations touch, in order.

    Arrays lie one behind the other in the order of their names, at multiples of the alignment. An
    iteration reads array by array in the order of declarations, then writes.
    """

    def __init__(
        self, nest: LoopNest, constants: Mapping[str, int], *, alignment_bytes: int = 1
    ) -> None:
        self._loops = nest.loops
        self._symbols = [Symbol(SymbolKind.LOOP, loop.name) for loop in nest.loops]
        self._scalars = nest.bind_constants(constants)
        self._taken = nest.taken
        self.total = self._count()
        if not self.total:
            given = sorted(f"{name}={value}" for name, value in self._scalars.items())
            given_text = ", ".join(given) or "its bounds"
            msg = f"{nest.name}: the loops never run for {given_text}; give larger sizes"
            raise InputError(msg)
        places = {name: at for at, name in enumerate(nest.arrays)}
        accesses = sorted(nest.accesses, key=lambda one: (one.is_store, places[one.array]))
        self.kinds = np.array([(one.is_store, one.bytes) for one in accesses], dtype=np.int64)
        # Place arrays: the address that each one's offsets count from.
        starts: dict[str, int] = {}
        end = 0
        for name in sorted(nest.arrays):
            starts[name] = -(-end // alignment_bytes) * alignment_bytes
            end = starts[name] + nest.count_bytes(name, self._scalars)
        self._starts = np.array([
            starts[one.array] + int(one.offset.evaluate(self._scalars)) for one in accesses
        ])  # fmt: skip
        strides = [[int(each.evaluate(self._scalars)) for each in one.strides] for one in accesses]
        # Accesses that move alike are evaluated once.
        self._strides, groups = np.unique(np.array(strides), axis=0, return_inverse=True)
        self._groups = groups.reshape(-1)
        self._conditions = [
            (unite(one.condition) if self._taken is None else one.condition).substitute(
                self._scalars
            )
            for one in (accesses if nest.has_branches else ())
        ]
        self.is_uneven = any(set(self._symbols) & one.symbols() for one in self._conditions)
        self.rewind()

    def rewind(self) -> None:
        # Where a condition on data holds is drawn anew for each nest, alike each time.
        self._chance = np.random.default_rng(1)
        self._pieces = self._walk(len(self._loops), _AT_FIRST)
        self._held = next(self._pieces)

    @property
    def has_more(self) -> bool:
        return len(self._held) > 0

    def find_work_bytes(self, line_bytes: int) -> int:
        """Find the bytes of results per iteration."""
        steps = np.abs(self._strides[self._groups, -1]).tolist()
        moves = [(bool(one), step) for one, step in zip(self.kinds[:, 0], steps, strict=True)]
        return find_work_bytes(moves, line_bytes) or int(self.kinds[:, 1].max())

    def count_before_line(self, line_bytes: int) -> int:
        """Count iterations before one whose lowest store, else load, begins a line; else 0."""
        addresses = self._find_addresses(self._held[:line_bytes])
        chosen = self.kinds[:, 0] == self.kinds[:, 0].max()
        lowest = addresses[:, chosen].argmin(axis=1)
        sizes = self.kinds[chosen, 1][lowest]
        return int((addresses[:, chosen].min(axis=1) % line_bytes < sizes).argmax())

    def take(self, most: int) -> tuple[Integers, Integers, int]:
        """List addresses and kinds of what some of the next iterations execute, and count these."""
        piece, self._held = self._held[:most], self._held[most:]
        if not self.has_more:
            self._held = next(self._pieces, self._held)
        addresses = self._find_addresses(piece).ravel()
        if not self._conditions:
            return addresses, self.kinds, len(piece)
        columns = dict(zip(self._symbols, piece.T, strict=True))
        for one in sorted(frozenset().union(*(one.symbols() for one in self._conditions)), key=str):
            if one not in columns:
                drawn = self._chance.random(len(piece)) < (self._taken or 0.0)
                columns[one] = drawn.astype(np.int64)
        executed = np.empty((len(piece), len(self._conditions)), dtype=np.bool_)
        for at, condition in enumerate(self._conditions):
            executed[:, at] = condition.evaluate(columns)
        kept = executed.ravel()
        return addresses[kept], np.tile(self.kinds, (len(piece), 1))[kept], len(piece)

    def _find_addresses(self, piece: Integers) -> Integers:
        addresses: Integers = (piece @ self._strides.T)[:, self._groups] + self._starts
        return addresses

    def _walk(self, depth: int, outer: Integers) -> Iterator[Integers]:
        """List the iterations of the outermost loops, `depth` of them, in pieces of rows."""
        if outer.shape[1] == depth:
            yield outer
            return
        trips = self._count_trips(outer)
        ends = np.cumsum(trips)
        step = 1 << 14
        for begin in range(0, int(ends[-1]), step):
            chosen = np.arange(begin, min(begin + step, int(ends[-1])))
            whose = np.searchsorted(ends, chosen, side="right")
            inside = np.column_stack((outer[whose], chosen - (ends - trips)[whose]))
            yield from self._walk(depth, inside)

    def _count_trips(self, outer: Integers) -> Integers:
        """Count how often the next loop runs in each iteration of those around it."""
        known = {**self._scalars, **dict(zip(self._symbols, outer.T, strict=False))}
        trips = self._loops[outer.shape[1]].trips.evaluate(known)
        return np.maximum(np.broadcast_to(np.asarray(trips, dtype=np.int64), len(outer)), 0)

    def _count(self) -> int:
        """Count all iterations: of a box at once, else row by row."""
        depth = len(self._loops)
        if all(one.trips.is_parameter for one in self._loops):
            insides = (np.zeros((1, at), dtype=np.int64) for at in range(depth))
            return prod(int(self._count_trips(one)[0]) for one in insides)
        return sum(int(self._count_trips(one).sum()) for one in self._walk(depth - 1, _AT_FIRST))


_AT_FIRST = np.zeros((1, 0), dtype=np.int64)
"""The one iteration of no loops."""
