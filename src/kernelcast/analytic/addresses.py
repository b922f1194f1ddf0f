"""Addresses that work-groups touch: evaluated where there is a formula, else recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import EvaluationError, Expr, Symbol, Value
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess, ModelledLaunch
from kernelcast.expressions.axes import add_iterations, bind_ids, bind_names, list_axes
from kernelcast.expressions.symbols import BoolArray, IntArray
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange

ABSENT = np.iinfo(np.int64).min
"""Stands for the address of an access that is not executed."""
_PLACES = (0.2, 0.5, 0.8)
"""Where in the index space work-groups are looked at, as shares of each dimension."""


class Groups:
    """The grid of work-groups, always of three dimensions, and those of it that are looked at."""

    def __init__(self, ndrange: NDRange) -> None:
        self.counts = [one.groups for one in list_axes(ndrange)]
        shares = [[int(share * one) or 1 if one > 1 else 0 for share in _PLACES]
                  for one in self.counts]  # fmt: skip
        numbers: list[int] = np.ravel_multi_index(shares, self.counts, order="F").tolist()
        self.places = tuple(dict.fromkeys(numbers))
        """Work-groups that have a neighbour before them in each dimension that has any."""
        near = (self.before(one, axis) for one in self.places for axis in range(3))
        self.every = tuple(dict.fromkeys((*self.places, *(one for one in near if one is not None))))
        """They and these neighbours."""

    def before(self, group: int, axis: int) -> int | None:
        """Find the neighbour before a work-group; None if the dimension has only one."""
        return group - prod(self.counts[:axis]) if self.counts[axis] > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class GroupAddresses:
    """What one access of one work-group touches."""

    table: IntArray
    """Of shape (work-items, iterations): addresses in bytes from the start of the buffer, `ABSENT`
    where it is not executed."""
    count: int
    """Addresses that are there."""
    repeats: float = 1.0
    """Executions that each one stands for."""
    lines: dict[tuple[int, int], IntArray] = field(default_factory=dict)

    @property
    def executions(self) -> float:
        """How often the work-group executes the access."""
        return self.count * self.repeats

    def list_lines(self, size_bytes: int, line_bytes: int) -> IntArray:
        lines = self.lines.get((size_bytes, line_bytes))
        if lines is None:
            found = self.table[self.table != ABSENT]
            lines = self.lines[size_bytes, line_bytes] = list_lines(found, size_bytes, line_bytes)
        return lines


def list_lines(addresses: IntArray, size_bytes: int, line_bytes: int) -> IntArray:
    """List the different lines that accesses of so many bytes touch, sorted."""
    first, last = addresses // line_bytes, (addresses + (size_bytes - 1)) // line_bytes
    across = last[last != first]
    return list_distinct(np.concatenate([first.reshape(-1), across]) if across.size else first)


def list_distinct(values: IntArray) -> IntArray:
    """List the different values, sorted; `numpy.unique` takes three times as long."""
    return drop_repeated(np.sort(values, axis=None))


def drop_repeated(values: IntArray) -> IntArray:
    """List the values of all rows without those that equal the one before in the row."""
    is_new = np.ones(values.shape, dtype=np.bool_)
    np.not_equal(values[..., 1:], values[..., :-1], out=is_new[..., 1:])
    return values[is_new]


class GroupEvaluator:
    """Evaluates accesses with a formula for all work-groups at once, what they share once."""

    def __init__(
        self, launch: ModelledLaunch, groups: Sequence[int], iterations: int | None = None
    ) -> None:
        """Look at work-groups, of longer loops at no more iterations of a work-item."""
        self._launch, self._groups = launch, groups
        # Bind all symbols but loops for the work-items of work-groups, and count those of each.
        ids, is_present = bind_ids(launch.ndrange, groups)
        self._sizes: list[int] = is_present.sum(axis=1).tolist()
        # Of shape (work-items of all, 1), or a number where it is the same for all.
        self.bound: dict[Symbol, Value] = {**bind_names(launch.scalars)}
        for symbol, value in ids.items():
            if isinstance(value, np.ndarray):
                value = value[is_present][:, None]
            self.bound[symbol] = value
        self._most = iterations or (1 << 14) // max(self._sizes)
        self._starts = np.cumsum((0, *self._sizes[:-1]))
        self._loops: dict[object, _Runs] = {}
        self._met: dict[object, BoolArray] = {}
        self._offsets: dict[object, Value] = {}
        self._tables: dict[object, dict[int, GroupAddresses]] = {}

    def evaluate(self, access: MemoryAccess, offset: Expr) -> dict[int, GroupAddresses]:
        """Find what an access touches at an offset in bytes, by work-group."""
        shift = offset.constant_term + self._launch.alignments.get(access.buffer or "", 0)
        run = access.loops, access.guard
        place = *run, offset - offset.constant_term
        if (place, shift) in self._tables:
            return self._tables[place, shift]
        try:
            if access.loops not in self._loops:
                self._loops[access.loops] = self._run_loops(access.loops)
            bound, active, repeats = self._loops[access.loops]
            if run not in self._met:
                # An address need not have a value where the access is not executed.
                holds = access.guard.evaluate_where(active, bound)
                self._met[run] = np.logical_and(active, holds)
            met = self._met[run]
            if place not in self._offsets:
                self._offsets[place] = cast("Value", place[-1].evaluate_where(met, bound))
        except EvaluationError as error:
            name = access.text or access.buffer or "an access"
            msg = f"{self._launch.kernel}, line {access.line}: address of {name}: {error}"
            raise InputError(msg) from error
        offsets = self._offsets[place] + shift
        counts = np.add.reduceat(np.count_nonzero(met, axis=1), self._starts).tolist()
        addresses: IntArray = np.where(met, offsets, ABSENT)
        ends = accumulate(self._sizes)
        self._tables[place, shift] = {
            group: GroupAddresses(addresses[end - size : end], count, times)
            for group, size, end, count, times in zip(
                self._groups, self._sizes, ends, counts, repeats.tolist(), strict=True
            )
        }
        return self._tables[place, shift]

    def _run_loops(self, loops: Sequence[LoopFacts]) -> "_Runs":
        """Add the iterations of each loop as columns."""
        bound = dict(self.bound)
        active: BoolArray = np.ones((sum(self._sizes), 1), dtype=np.bool_)
        repeats = np.ones(len(self._sizes))
        for loop in loops:
            # Of longer loops the first iterations stand for all.
            most = max(1, self._most // active.shape[1])
            if loop.trip_count is None:
                # Look further and further, until the condition ends the loop everywhere.
                listed = min(16, most)
                wide, runs = add_iterations(loop, bound, active, listed)
                while listed < most and runs[:, listed - 1 :: listed].any():
                    listed = min(2 * listed, most)
                    wide, runs = add_iterations(loop, bound, active, listed)
                bound, active = wide, runs
                continue
            trips = np.where(active, loop.trip_count.evaluate_where(active, bound), 0)
            listed = min(max(1, int(np.max(trips))), most)
            bound, active = add_iterations(loop, bound, active, listed)
            shown, every = (
                np.add.reduceat(counted.sum(axis=1, dtype=np.float64), self._starts)
                for counted in (np.minimum(trips, listed), trips)
            )
            repeats = repeats * np.where(shown, every / np.where(shown, shown, 1.0), 1.0)
        return bound, active, repeats


_Runs = tuple[dict[Symbol, Value], BoolArray, npt.NDArray[np.float64]]
"""Values of symbols, where something is executed, and for how many each listed iteration stands by
work-group."""


def read_recorded(access: MemoryAccess, launch: ModelledLaunch) -> dict[int, GroupAddresses]:
    """Sort what was recorded of an access by work-group, work-item and iteration."""
    recorded = launch.recorded
    if recorded is None or not (own := recorded.sites == access.site).any():
        return {}
    groups, items = recorded.groups[own], recorded.local_ids[own]
    shift = launch.alignments.get(access.buffer or "", 0)
    sequences, offsets = recorded.sequences[own], recorded.offsets_bytes[own] + shift
    found = {}
    for group, size in zip(recorded.work_groups, recorded.work_items, strict=True):
        mine = groups == group
        columns = int(sequences[mine].max(initial=-1)) + 1
        table = np.full((size, columns), ABSENT, dtype=np.int64)
        table[items[mine], sequences[mine]] = offsets[mine]
        found[group] = GroupAddresses(table, int(np.count_nonzero(mine)))
    return found
