"""Addresses that a work-group touches: evaluated where there is a formula, else recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.opencl.index_space import BoundGroups, Place, Runs
from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.evaluation import evaluate_where
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError

ABSENT = np.iinfo(np.int64).min
_MOST_ADDRESSES = 1 << 14
"""Addresses of one access and work-group; of longer loops the first iterations stand for all."""
_FIRST_ITERATIONS = 16

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupAddresses:
    """What one access of one work-group touches.

    Parameters
    ----------
    table : ndarray of int64, shape (work-items, iterations)
        Addresses in bytes from the start of the buffer, `ABSENT` where it is not executed.
    repeats : float
        Executions that each one stands for.
    """

    table: IntArray
    repeats: float = 1.0

    @property
    def executions(self) -> float:
        """How often the work-group executes the access."""
        return float((self.table != ABSENT).sum()) * self.repeats

    def list_lines(self, size_bytes: int, line_bytes: int) -> IntArray:
        """List the different lines, sorted."""
        found = self.table[self.table != ABSENT]
        first, last = found // line_bytes, (found + size_bytes - 1) // line_bytes
        across = last[last != first]
        return list_distinct(np.concatenate([first, across]) if across.size else first)


def list_distinct(values: IntArray) -> IntArray:
    """List the different values, sorted; `numpy.unique` takes three times as long."""
    ordered = np.sort(values, axis=None)
    is_new = np.ones(ordered.shape, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def evaluate_groups(
    access: MemoryAccess, launch: ModelledLaunch, bound: BoundGroups
) -> dict[Place, GroupAddresses]:
    """Evaluate an access with a formula for several work-groups at once.

    Raises
    ------
    InputError
        If a symbol has no value.
    """
    try:
        return _evaluate(access, launch, bound)
    except EvaluationError as error:
        name = access.text or access.buffer or "an access"
        msg = f"{launch.kernel}, line {access.line}: address of {name}: {error}"
        raise InputError(msg) from error


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
        found.append(GroupAddresses(table=table))
    return found


def _evaluate(
    access: MemoryAccess, launch: ModelledLaunch, groups: BoundGroups
) -> dict[Place, GroupAddresses]:
    bound, met, repeats = _run(access, groups)
    assert access.offset_bytes is not None
    offsets = np.asarray(evaluate_where(access.offset_bytes, met, bound))
    shift = launch.alignments.get(access.buffer or "", 0)
    offsets, met = np.broadcast_arrays(offsets + shift, met)
    addresses = np.where(met, offsets, ABSENT)
    ends = accumulate(groups.sizes)
    return {
        place: GroupAddresses(table=addresses[end - size : end], repeats=float(times))
        for place, size, end, times in zip(groups.places, groups.sizes, ends, repeats, strict=True)
    }


def _run(access: MemoryAccess, groups: BoundGroups) -> Runs:
    """Give values, where the access is executed and what each stands for; kept for others."""
    key = access.loops, access.guard
    if key in groups.runs:
        return groups.runs[key]
    if access.loops not in groups.runs:
        starts = np.cumsum((0, *groups.sizes[:-1]))
        bound: dict[Symbol, Value] = dict(groups.values)
        active: BoolArray = np.ones((sum(groups.sizes), 1), dtype=np.bool_)
        repeats = np.ones(len(groups.places))
        for loop in access.loops:
            most = max(1, _MOST_ADDRESSES // (max(groups.sizes) * active.shape[1]))
            bound, active, share = _unroll(loop, bound, active, most, starts)
            repeats = repeats * share
        groups.runs[access.loops] = bound, active, repeats
    bound, active, repeats = groups.runs[access.loops]
    # An address need not have a value where the access is not executed.
    met = np.logical_and(active, evaluate_where(access.guard, active, bound))
    groups.runs[key] = bound, met, repeats
    return groups.runs[key]


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
