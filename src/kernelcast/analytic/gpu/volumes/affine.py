"""Accesses as boxes of addresses, and work-groups in dispatch order as boxes of the grid.

Around accesses that are no boxes (clamped or wrapped addresses, loops of varying length) lies a
box that mostly is what a launch touches altogether. Where a remainder starts again and again, every
work-group is taken to touch all that it leads to.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    TRUE,
    And,
    Comparison,
    Condition,
    Division,
    EvaluationError,
    Expr,
    Extremum,
    Relation,
    Select,
    Symbol,
    SymbolKind,
    Unknown,
    Value,
)
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess, ModelledLaunch
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange

Range = tuple[int, int]
IntArray = npt.NDArray[np.int64]
Clip = tuple[Range, Range, Range]
_EVERYTHING = (-(1 << 62), 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """An index space, always with three dimensions."""

    local: tuple[int, int, int]
    counts: tuple[int, int, int]
    items: tuple[int, int, int]
    """Work-items of a work-group, work-groups and work-items per dimension."""

    @staticmethod
    def of(ndrange: NDRange) -> "Grid":
        x, y, z = list_axes(ndrange)
        return Grid(
            local=(x.local, y.local, z.local),
            counts=(x.groups, y.groups, z.groups),
            items=(x.items, y.items, z.items),
        )

    @property
    def work_groups(self) -> int:
        return self.counts[0] * self.counts[1] * self.counts[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxAccess:
    """An access whose addresses are a box: a sum of strides times indices in ranges."""

    access: MemoryAccess
    base_bytes: int
    """Address of the first work-item of the first work-group, its buffer's alignment included."""
    local_strides: tuple[int, int, int]
    group_strides: tuple[int, int, int]
    """Bytes per step of the local and the group id, by dimension."""
    loops: tuple[tuple[int, int], ...]
    """Bytes per iteration and iterations, of each loop around it."""
    clip: Clip
    """Global ids, from 0 and without offset, for which it is executed: from, up to."""

    @property
    def family(self) -> tuple[object, ...]:
        """What accesses have in common that differ by a constant offset and a guard only."""
        buffer, size = self.access.buffer, self.access.bytes
        return (buffer, size, self.local_strides, self.group_strides, self.loops)

    @property
    def executions(self) -> int:
        """How often a work-item that meets the guard executes it."""
        return prod(trips for _, trips in self.loops)

    def keep_inner(self, loops: int) -> "BoxAccess":
        """Run some innermost loops only, and the others once."""
        if loops >= len(self.loops):
            return self
        cut = max(0, len(self.loops) - loops)
        first = tuple((stride, min(1, trips)) for stride, trips in self.loops[:cut])
        return replace(self, loops=(*first, *self.loops[cut:]))


def bind_sizes(launch: ModelledLaunch) -> dict[Symbol, Expr | Symbol | int]:
    """Bind the values of all sizes, offsets and scalar arguments of a launch."""
    bound: dict[Symbol, Expr | Symbol | int] = {**bind_names(launch.scalars)}
    for axis in list_axes(launch.ndrange):
        bound |= axis.bind_sizes(axis.local)
    return bound


def to_box(
    access: MemoryAccess,
    launch: ModelledLaunch,
    bound: Mapping[Symbol, Expr | Symbol | int],
    clips: dict[Condition, Clip | None],
) -> BoxAccess | None:
    if access.offset_bytes is None:
        return None
    linear = access.offset_bytes.substitute(bound).as_linear()
    trips = [
        loop.trip_count and loop.trip_count.substitute(bound).constant_value
        for loop in access.loops
    ]
    if access.guard not in clips:
        clips[access.guard] = clip_guard(access.guard, launch.ndrange, bound)
    clip = clips[access.guard]
    if linear is None or clip is None:
        return None
    known = [one for one in trips if isinstance(one, int)]
    return make_box(access, launch, linear, known, clip) if len(known) == len(trips) else None


def make_box(
    access: MemoryAccess,
    launch: ModelledLaunch,
    linear: tuple[Mapping[Symbol, int], int],
    trips: Sequence[int],
    clip: Clip,
) -> BoxAccess | None:
    """Make the box of a sum of strides times indices; None if a scalar argument has no value."""
    strides, constant = linear
    if any(symbol.kind is SymbolKind.SCALAR for symbol in strides):
        return None
    axes = list_axes(launch.ndrange)
    local, group, moved = [0, 0, 0], [0, 0, 0], 0
    for symbol, stride in strides.items():
        axis = symbol.axis
        if symbol.kind in {SymbolKind.LOCAL_ID, SymbolKind.GLOBAL_ID}:
            local[axis] += stride
        if symbol.kind is SymbolKind.GLOBAL_ID:
            group[axis] += stride * axes[axis].local
            moved += stride * axes[axis].offset
        elif symbol.kind is SymbolKind.GROUP_ID:
            group[axis] += stride
    named = {symbol.name: stride for symbol, stride in strides.items()}
    return BoxAccess(
        access=access,
        base_bytes=constant + moved + launch.alignments.get(access.buffer or "", 0),
        local_strides=(local[0], local[1], local[2]),
        group_strides=(group[0], group[1], group[2]),
        loops=tuple(
            (named.get(loop.name, 0), times)
            for loop, times in zip(access.loops, trips, strict=True)
        ),
        clip=clip,
    )


def clip_guard(
    guard: Condition,
    ndrange: NDRange,
    bound: Mapping[Symbol, Expr | Symbol | int],
    *,
    is_exact: bool = True,
) -> Clip | None:
    """Find the box of global ids in which a guard holds, or one around it; None without."""
    clip = [_EVERYTHING] * MAX_DIMENSIONS
    axes = list_axes(ndrange)
    guard = guard.substitute(bound)
    for part in guard.parts if isinstance(guard, And) else (guard,):
        if part == TRUE or isinstance(part, Unknown):
            continue
        relation, linear = Relation.NOT_ZERO, None
        if isinstance(part, Comparison):
            relation, linear = part.relation, part.expr.as_linear()
        factors, constant = linear or ({}, 0)
        ids = [symbol for symbol in factors if symbol.kind is SymbolKind.GLOBAL_ID]
        if relation is Relation.NOT_ZERO or not ids or len(factors) > 1:
            if is_exact:
                return None
            continue
        # A comparison with one global id leaves those from some one on, or up to it.
        [symbol], [factor] = ids, factors.values()
        low, high = _EVERYTHING
        if relation is Relation.ZERO:
            low, high = -constant // factor, -constant // factor + 1
        elif factor > 0:
            low = -(constant // factor)
        else:
            high = constant // -factor + 1
        first, end = clip[symbol.axis]
        offset = axes[symbol.axis].offset
        clip[symbol.axis] = max(first, low - offset), min(end, high - offset)
    return clip[0], clip[1], clip[2]


GroupRange = tuple[Range, Range, Range]


@lru_cache(maxsize=1024)
def mix_run(work_groups: int, counts: tuple[int, int, int]) -> tuple[tuple[GroupRange, float], ...]:
    """Stand in for consecutive work-groups in the middle of a launch by whole rows or layers."""
    # A run starts anywhere in a row: what it touches lies between what the rows touch that fit into
    # it and what one row more touches.
    row, layer = counts[0], counts[0] * counts[1]
    run = min(work_groups, layer * counts[2])
    unit, axis = next(
        (unit, axis) for unit, axis in ((layer, 2), (row, 1), (1, 0)) if run >= unit or unit == 1
    )
    whole, rest = divmod(run, unit)
    found = []
    for length, weight in ((whole, 1 - rest / unit), (whole + 1, rest / unit)):
        if weight:
            lengths = (*counts[:axis], length, 1, 1)[:3]
            starts = [(count - own) // 2 for count, own in zip(counts, lengths, strict=True)]
            x, y, z = ((start, start + own) for start, own in zip(starts, lengths, strict=True))
            found.append(((x, y, z), weight))
    return tuple(found)


_MOST_TRIPS = 1 << 40

Windows = dict[Division, tuple[Symbol, int]]
"""Stand-ins for remainders that start again and again, and how many numbers each runs through."""


def find_hull(
    access: MemoryAccess, launch: ModelledLaunch, bound: Mapping[Symbol, Expr | Symbol | int]
) -> BoxAccess | None:
    if access.offset_bytes is None:
        return None
    # Give the ids of first, middle and last work-items, all combinations, as columns.
    axes = list_axes(launch.ndrange)
    sizes = (axis.items for axis in axes)
    places = [{0, min(1, size - 1), size // 2, max(0, size - 2), size - 1} for size in sizes]
    table = np.array(list(product(*map(sorted, places))), dtype=np.int64)
    ids: dict[Symbol, Value] = {}
    for axis, own in zip(axes, table.T, strict=True):
        ids |= axis.bind(own // axis.local, own % axis.local, axis.local)
    windows: Windows = {}
    straight = _straighten(access.offset_bytes.substitute(bound), ids, windows)
    linear = None if straight is None else straight.as_linear()
    clip = clip_guard(access.guard, launch.ndrange, bound, is_exact=False)
    if linear is None or clip is None:
        return None
    trips: list[int] = []
    for loop in access.loops:
        try:
            most = _count_most(loop, ids, bound)
        except EvaluationError:
            most = None
        if most is None:
            return None
        trips.append(most)
        # Combine what is known with first, middle and last iteration.
        count = max(np.size(value) for value in ids.values())
        ends = np.array([0, most // 2, max(0, most - 1)], dtype=np.int64)
        wide: dict[Symbol, Value] = {
            symbol: np.tile(np.broadcast_to(value, count), ends.size)
            for symbol, value in ids.items()
        }
        ids = {**wide, Symbol(SymbolKind.LOOP, loop.name): np.repeat(ends, count)}
    box = make_box(access, launch, linear, trips, clip)
    if box is None or not windows:
        return box
    added = tuple((linear[0].get(symbol, 0), length) for symbol, length in windows.values())
    return replace(box, loops=(*box.loops, *added))


def _straighten(expr: Expr, ids: Mapping[Symbol, Value], windows: Windows) -> Expr | None:
    """Leave out clamps, choices and remainders; None if something else is not affine."""
    total = Expr.constant(0)
    for monomial, coefficient in expr.terms:
        product_ = Expr.constant(coefficient)
        for atom in monomial:
            inner = Expr.symbol(atom) if isinstance(atom, Symbol) else None
            if isinstance(atom, Extremum):
                inner = _choose(atom.left, atom.right, ids, windows)
            elif isinstance(atom, Select):
                inner = _choose(atom.then, atom.otherwise, ids, windows)
            elif isinstance(atom, Division) and atom.is_remainder:
                length = atom.denominator.constant_value
                try:
                    numbers = np.asarray(atom.numerator.evaluate(ids))
                except EvaluationError:
                    numbers = np.zeros(1)
                # One that begins anew at a border alone, as that of a periodic stencil, leads to no
                # window.
                if length is None or numbers.min() < 0 or np.ptp(numbers) < 2 * length:
                    inner = _straighten(atom.numerator, ids, windows)
                else:
                    new = Symbol(SymbolKind.LOOP, name=f"remainder {len(windows)}"), length
                    inner = Expr.symbol(windows.setdefault(atom, new)[0])
            if inner is None:
                return None
            product_ = product_ * inner
        total = total + product_
    return total


def _choose(left: Expr, right: Expr, ids: Mapping[Symbol, Value], windows: Windows) -> Expr | None:
    """Take the alternative that moves; of two that move alike the one nearer to the origin."""
    first, second = (_straighten(one, ids, windows) for one in (left, right))
    if first is None or second is None:
        return None
    if first.is_parameter or second.is_parameter:
        return second if first.is_parameter else first
    if not (first - second).is_parameter:
        return None
    return min(first, second, key=lambda one: abs(one.constant_term))


def _count_most(
    loop: LoopFacts, ids: Mapping[Symbol, Value], bound: Mapping[Symbol, Expr | Symbol | int]
) -> int | None:
    """Count the most iterations of a loop that any of the work-items makes; None if endless."""
    if loop.trip_count is not None:
        return max(0, int(np.max(loop.trip_count.substitute(bound).evaluate(ids))))
    condition = loop.condition.substitute(bound)

    def has_ended(trips: int) -> bool:
        return not np.any(condition.evaluate({**ids, loop.symbol: trips}))

    trips = 1
    while trips < _MOST_TRIPS and not has_ended(trips):
        trips *= 2
    if trips >= _MOST_TRIPS:
        return None
    return bisect_left(range(trips), True, lo=trips // 2 + 1, key=has_ended)
