"""Addresses that a work-group touches: evaluated where there is a formula, else recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.opencl.index_space import BoundGroups, Place
from kernelcast.expressions import EvaluationError, Expr, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.evaluation import evaluate_where
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError

ABSENT = np.iinfo(np.int64).min
_MOST_ADDRESSES = 1 << 14
"""Addresses of one access and work-group; of longer loops the first iterations stand for all."""
_FIRST_ITERATIONS = 16
_FEW, _DENSE = 512, 32
"""So few values are sorted, and others where they lie further apart than that, in the mean."""

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class _Runs(NamedTuple):
    """Values of symbols, where something is executed, and how often, by work-group."""

    bound: dict[Symbol, Value]
    met: BoolArray
    counts: list[int]
    """Of the iterations that are listed."""
    repeats: list[float]
    """For how many each of them stands."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupAddresses:
    """What one access of one work-group touches.

    Parameters
    ----------
    table : ndarray of int64, shape (work-items, iterations)
        Addresses in bytes from the start of the buffer, `ABSENT` where it is not executed.
    count : int
        Addresses that are there.
    repeats : float
        Executions that each one stands for.
    lines : dict of (int, int) to ndarray of int64
        What `list_lines` gave before.
    """

    table: IntArray
    count: int
    repeats: float = 1.0
    lines: dict[tuple[int, int], IntArray] = field(default_factory=dict)

    @property
    def executions(self) -> float:
        """How often the work-group executes the access."""
        return self.count * self.repeats

    @property
    def is_full(self) -> bool:
        """Whether no address is absent."""
        return self.count == self.table.size

    def list_lines(self, size_bytes: int, line_bytes: int) -> IntArray:
        """List the different lines, sorted."""
        lines = self.lines.get((size_bytes, line_bytes))
        if lines is None:
            found = self.table if self.is_full else self.table[self.table != ABSENT]
            lines = self.lines[size_bytes, line_bytes] = list_lines(found, size_bytes, line_bytes)
        return lines


def list_lines(addresses: IntArray, size_bytes: int, line_bytes: int) -> IntArray:
    """List the different lines that accesses of so many bytes touch, sorted."""
    first, last = addresses // line_bytes, (addresses + (size_bytes - 1)) // line_bytes
    across = last[last != first]
    return list_distinct(np.concatenate([first.reshape(-1), across]) if across.size else first)


def list_distinct(values: IntArray) -> IntArray:
    """List the different values, sorted; `numpy.unique` takes three times as long."""
    if values.size > _FEW:
        low = int(values.min())
        extent = int(values.max()) - low + 1
        if extent <= _DENSE * values.size:
            is_there = np.zeros(extent, dtype=np.bool_)
            is_there[values - low] = True  # up to 15 times as fast as sorting
            return np.flatnonzero(is_there) + low
        # Work-items, one row each, are in one line more often than iterations.
        values = _drop_repeated(values.T.reshape(-1))
    return _drop_repeated(np.sort(values, axis=None))


def _drop_repeated(values: IntArray) -> IntArray:
    is_new = np.ones(values.shape, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return values[is_new]


class GroupEvaluator:
    """Evaluates accesses with a formula for several work-groups at once.

    Loops, conditions and addresses that accesses have in common are evaluated once; an address
    that is as far from another one's everywhere is moved.
    """

    def __init__(self, launch: ModelledLaunch, groups: BoundGroups) -> None:
        self._launch = launch
        self._groups = groups
        self._starts = np.cumsum((0, *groups.sizes[:-1]))
        self._runs: dict[object, _Runs] = {}
        self._offsets: dict[object, Value] = {}
        self._tables: dict[object, dict[Place, GroupAddresses]] = {}

    def evaluate(self, access: MemoryAccess, offset: Expr) -> dict[Place, GroupAddresses]:
        """Give what an access touches at an offset in bytes, by work-group.

        Raises
        ------
        InputError
            If a symbol has no value.
        """
        shift = offset.constant_term + self._launch.alignments.get(access.buffer or "", 0)
        place = access.loops, access.guard, offset - offset.constant_term
        try:
            if (place, shift) not in self._tables:
                self._tables[place, shift] = self._tabulate(access, place, shift)
        except EvaluationError as error:
            name = access.text or access.buffer or "an access"
            msg = f"{self._launch.kernel}, line {access.line}: address of {name}: {error}"
            raise InputError(msg) from error
        return self._tables[place, shift]

    def _tabulate(
        self, access: MemoryAccess, place: tuple[object, object, Expr], shift: int
    ) -> dict[Place, GroupAddresses]:
        runs = self._run(access)
        if place not in self._offsets:
            self._offsets[place] = cast("Value", evaluate_where(place[-1], runs.met, runs.bound))
        offsets = self._offsets[place] + shift
        if sum(runs.counts) == runs.met.size:
            addresses = np.broadcast_to(offsets, runs.met.shape)
        else:
            addresses = np.where(runs.met, offsets, ABSENT)
        sizes = self._groups.sizes
        ends = accumulate(sizes)
        return {
            place: GroupAddresses(addresses[end - size : end], count, times)
            for place, size, end, count, times in zip(
                self._groups.places, sizes, ends, runs.counts, runs.repeats, strict=True
            )
        }

    def _run(self, access: MemoryAccess) -> _Runs:
        """Give values, where the access is executed, and what each stands for."""
        key = access.loops, access.guard
        if key not in self._runs:
            if access.loops not in self._runs:
                self._runs[access.loops] = self._run_loops(access.loops)
            bound, active, _, repeats = self._runs[access.loops]
            # An address need not have a value where the access is not executed.
            met = np.logical_and(active, evaluate_where(access.guard, active, bound))
            self._runs[key] = _Runs(bound, met, self._count(met), repeats)
        return self._runs[key]

    def _run_loops(self, loops: Sequence[LoopFacts]) -> _Runs:
        sizes = self._groups.sizes
        bound: dict[Symbol, Value] = dict(self._groups.values)
        active: BoolArray = np.ones((sum(sizes), 1), dtype=np.bool_)
        repeats = np.ones(len(sizes))
        for loop in loops:
            most = max(1, _MOST_ADDRESSES // (max(sizes) * active.shape[1]))
            bound, active, share = _unroll(loop, bound, active, most, self._starts)
            repeats = repeats * share
        return _Runs(bound, active, self._count(active), repeats.tolist())

    def _count(self, met: BoolArray) -> list[int]:
        if met.all():
            return [size * met.shape[1] for size in self._groups.sizes]
        counts: list[int] = np.add.reduceat(np.count_nonzero(met, axis=1), self._starts).tolist()
        return counts


def read_recorded(access: MemoryAccess, launch: ModelledLaunch) -> list[GroupAddresses]:
    """Sort what was recorded of an access by work-group, work-item and iteration."""
    recorded = launch.recorded
    if recorded is None:
        return []
    own = recorded.sites == access.site
    if not own.any():
        return []
    groups, items = recorded.groups[own], recorded.local_ids[own]
    sequences, offsets = recorded.sequences[own], recorded.offsets_bytes[own]
    found = []
    for group, size in zip(recorded.work_groups, recorded.work_items, strict=True):
        mine = groups == group
        columns = int(sequences[mine].max(initial=-1)) + 1
        table = np.full((size, columns), ABSENT, dtype=np.int64)
        table[items[mine], sequences[mine]] = offsets[mine]
        found.append(GroupAddresses(table, int(np.count_nonzero(mine))))
    return found


def _unroll(
    loop: LoopFacts,
    bound: Mapping[Symbol, Value],
    active: BoolArray,
    most: int,
    starts: npt.NDArray[np.intp],
) -> tuple[dict[Symbol, Value], BoolArray, npt.NDArray[np.float64]]:
    """Add a loop's iterations as columns; give what each listed one stands for, by work-group."""
    if loop.trip_count is None:
        return (*_unroll_unknown(loop, bound, active, most), np.ones(len(starts)))
    trips = np.where(active, evaluate_where(loop.trip_count, active, bound), 0)
    listed = min(max(1, int(np.max(trips))), most)
    wide, runs = _widen(loop, bound, active, listed)
    shown, every = (
        np.add.reduceat(counted.sum(axis=1, dtype=np.float64), starts)
        for counted in (np.minimum(trips, listed), trips)
    )
    return wide, runs, np.where(shown, every / np.where(shown, shown, 1.0), 1.0)


def _unroll_unknown(
    loop: LoopFacts, bound: Mapping[Symbol, Value], active: BoolArray, most: int
) -> tuple[dict[Symbol, Value], BoolArray]:
    """Look further and further, until the condition ends the loop everywhere."""
    listed = min(_FIRST_ITERATIONS, most)
    while True:
        wide, runs = _widen(loop, bound, active, listed)
        if listed >= most or not runs[:, listed - 1 :: listed].any():
            return wide, runs
        listed = min(2 * listed, most)


def _widen(
    loop: LoopFacts, bound: Mapping[Symbol, Value], active: BoolArray, listed: int
) -> tuple[dict[Symbol, Value], BoolArray]:
    wide: dict[Symbol, Value] = {
        symbol: np.repeat(value, listed, axis=1)
        if isinstance(value, np.ndarray) and value.shape[1] > 1
        else value
        for symbol, value in bound.items()
    }
    numbers = np.tile(np.arange(listed, dtype=np.int64), active.shape[1])[None, :]
    wide[Symbol(SymbolKind.LOOP, loop.name)] = numbers
    runs = np.logical_and(np.repeat(active, listed, axis=1), loop.condition.evaluate(wide))
    return wide, runs
