"""Accesses to one buffer that are translates of each other, as boxes of addresses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Clip, Grid, GroupRange, Range
from kernelcast.analytic.gpu.volumes.unions import (
    Boxes,
    IntArray,
    count_sectors,
    find_cuts,
    translate,
)

_AXES = 3
_UNMOVED = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One index that addresses depend on."""

    stride: int
    start: IntArray
    end: IntArray

    @property
    def shortest(self) -> int:
        """The fewest steps in any piece."""
        return int((self.end - self.start).min())


class Family(tuple[BoxAccess, ...]):
    """Accesses that differ by a constant offset and a guard only."""

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Bytes from the first access to each."""
        origin = self[0].base_bytes
        return tuple(one.base_bytes - origin for one in self)

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all are executed for the same work-items."""
        return all(one.clip == self[0].clip for one in self)

    def keep_inner(self, loops: int) -> "Family":
        """Run some innermost loops only, and the others once."""
        if loops >= len(self[0].loops):
            return self
        return Family(one.keep_inner(loops) for one in self)


def group_families(accesses: Sequence[BoxAccess]) -> list[Family]:
    """Put accesses together that differ by a constant offset and a guard only."""
    families: dict[tuple[object, ...], list[BoxAccess]] = {}
    for access in accesses:
        families.setdefault(access.family, []).append(access)
    return [Family(one) for one in families.values()]


def make_boxes(
    family: Sequence[BoxAccess], groups: Sequence[GroupRange], grid: Grid, granularity: int
) -> Boxes:
    """Make the boxes of addresses that some work-groups touch."""
    first = family[0]
    parts = _split_by_clip(family)
    tables = [_list_ranges(part[0], groups, grid) for part in parts]
    kept = [(part, rows) for part, rows in zip(parts, tables, strict=True) if rows]
    if not kept or any(trips < 1 for _, trips in first.loops):
        return _no_boxes()
    table = [row for _, rows in kept for row in rows]
    fixed, moving = _list_axes(first, table)
    bases = [tuple(one.base_bytes - first.base_bytes for one in part) for part, _ in kept]
    low = np.full(len(table), first.base_bytes + fixed, dtype=np.int64)
    sizes = [len(rows) for _, rows in kept]
    return _lay_out(bases, sizes, low, first.access.bytes, moving, granularity)


def count_box(
    family: Family,
    box: GroupRange,
    grid: Grid,
    granularity: int,
    shifts: IntArray | None = None,
    *,
    unit: int = 1,
) -> IntArray:
    """Count the sectors that one box of work-groups touches.

    Boxes of equal size touch equally much wherever they lie, but for their first address within a
    sector; that is remembered, since the configurations of a sweep ask for the same few.
    """
    found = _find_lattice(family[0], box, grid) if family.is_uniform else None
    if found is None:
        boxes = make_boxes(family, [box], grid, granularity)
        return count_sectors(_round_strides(boxes, unit), granularity, shifts)
    origin, axes = found
    size = family[0].access.bytes
    moved = _UNMOVED if shifts is None else tuple(shifts.tolist())
    return _count_lattice(
        family.offsets, size, axes, origin % granularity, granularity, moved, unit
    )


def _find_lattice(
    access: BoxAccess, box: GroupRange, grid: Grid
) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """Give first address, strides and steps of an access; None if it is more or less than one."""
    origin = access.base_bytes
    axes: list[tuple[int, int]] = []
    moves: list[tuple[int, Range]] = [(stride, (0, trips)) for stride, trips in access.loops]
    for axis in range(_AXES):
        found = _ranges_of(access, axis, box[axis], grid)
        if len(found) != 1:
            return None
        moves.append((access.local_strides[axis], found[0][0]))
        moves.append((access.group_strides[axis], found[0][1]))
    for stride, (start, end) in moves:
        if end <= start:
            return None
        if stride:
            origin += stride * (start if stride > 0 else end - 1)
            if end > start + 1:
                axes.append((abs(stride), end - start))
    return origin, tuple(axes)


@lru_cache(maxsize=16384)
def _count_lattice(
    offsets: tuple[int, ...],
    size: int,
    axes: tuple[tuple[int, int], ...],
    origin: int,
    granularity: int,
    shifts: tuple[int, ...],
    unit: int,
) -> IntArray:
    """Count the sectors of translates of one lattice of addresses; nobody may change them."""
    nothing = np.zeros(1, dtype=np.int64)
    moving = [
        Axis(stride=stride, start=nothing, end=np.array([steps], dtype=np.int64))
        for stride, steps in axes
    ]
    low = np.array([origin], dtype=np.int64)
    boxes = _round_strides(_lay_out([offsets], [1], low, size, moving, granularity), unit)
    return count_sectors(boxes, granularity, np.array(shifts, dtype=np.int64))


def _round_strides(boxes: Boxes, unit: int) -> Boxes:
    if unit == 1:
        return boxes
    return replace(boxes, strides=tuple(max(1, round(one / unit)) * unit for one in boxes.strides))


def _lay_out(
    bases: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    low: IntArray,
    size: int,
    moving: Sequence[Axis],
    granularity: int,
) -> Boxes:
    """Lay out boxes: each group of offsets at its own pieces of the axes."""
    high = low + size
    outer = merge_axes(moving)
    # No sector fits into a gap that is smaller than a sector: what lies around it is one run.
    while outer and outer[0].stride - int((high - low).min()) < granularity:
        nearest = outer.pop(0)
        low = low + nearest.start * nearest.stride
        high = high + (nearest.end - 1) * nearest.stride
    strides = tuple(one.stride for one in outer)
    pieces = low.size
    starts = np.array([one.start for one in outer], dtype=np.int64).reshape(len(outer), pieces)
    ends = np.array([one.end for one in outer], dtype=np.int64).reshape(len(outer), pieces)
    # Parts that are executed for other work-items overlap: all are written alike.
    cuts = find_cuts(tuple(offset for part in bases for offset in part), strides)
    done, found = 0, []
    for offsets, count in zip(bases, sizes, strict=True):
        own = slice(done, done + count)
        done = own.stop
        run = int((high[own] - low[own]).min())
        steps, lows, highs = translate(offsets, strides, cuts, run)
        found.append((
            (lows[:, None] + low[own]).ravel(), (highs[:, None] + high[own]).ravel(),
            _shift(starts[:, own], steps), _shift(ends[:, own], steps),
        ))  # fmt: skip
    lows, highs, starts, ends = (
        parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        for parts in zip(*found, strict=True)
    )
    return Boxes(low=lows, high=highs, starts=starts, ends=ends, strides=strides)


def merge_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Sort axes by stride and join those that together run through one longer axis.

    An axis whose stride is `k` times a nearer one's, where that has at least `k` steps, only
    prolongs it: local and group ids of one dimension, rows and a loop over neighbouring rows.
    """
    merged: list[Axis] = []
    for axis in sorted(axes, key=lambda one: one.stride):
        for place, nearer in enumerate(merged):
            times = axis.stride // nearer.stride
            if axis.stride % nearer.stride == 0 and nearer.shortest >= times:
                merged[place] = Axis(
                    stride=nearer.stride,
                    start=nearer.start + times * axis.start,
                    end=nearer.end + times * (axis.end - 1),
                )
                break
        else:
            merged.append(axis)
    return merged


def _split_by_clip(family: Sequence[BoxAccess]) -> list[tuple[BoxAccess, ...]]:
    """Put translates together that are executed for the same work-items."""
    if all(one.clip == family[0].clip for one in family):
        return [tuple(family)]
    parts: dict[Clip, list[BoxAccess]] = {}
    for one in family:
        parts.setdefault(one.clip, []).append(one)
    return [tuple(part) for part in parts.values()]


def _list_ranges(
    access: BoxAccess, groups: Sequence[GroupRange], grid: Grid
) -> list[tuple[Range, ...]]:
    """List the ranges of local and group ids, by dimension, in every box of work-groups."""
    rows: list[tuple[Range, ...]] = []
    for box in groups:
        per_axis = [_ranges_of(access, axis, box[axis], grid) for axis in range(_AXES)]
        rows.extend(sum(parts, ()) for parts in product(*per_axis))
    return rows


def _list_axes(access: BoxAccess, rows: Sequence[tuple[Range, ...]]) -> tuple[int, list[Axis]]:
    """List the axes along which addresses move; each row of ranges is a piece.

    The first answer is what the other axes add, which have the same single value in all pieces.
    """
    ranges = [
        (stride, [row[place] for row in rows]) for place, stride in enumerate(_interleave(access))
    ]
    ranges += [(stride, [(0, trips)] * len(rows)) for stride, trips in access.loops]
    fixed, axes = 0, []
    for stride, column in ranges:
        start, end = column[0]
        if not stride:
            continue
        if end == start + 1 and all(one == column[0] for one in column):
            fixed += stride * start
        else:
            axes.append(_make_axis(stride, np.array(column, dtype=np.int64)))
    return fixed, axes


def _interleave(access: BoxAccess) -> list[int]:
    """Give the strides of local and group ids in turn, as `_list_ranges` gives their ranges."""
    return [
        stride
        for pair in zip(access.local_strides, access.group_strides, strict=True)
        for stride in pair
    ]


def _make_axis(stride: int, ranges: IntArray) -> Axis:
    start, end = ranges[:, 0], ranges[:, 1]
    if stride >= 0:
        return Axis(stride=stride, start=start, end=end)
    return Axis(stride=-stride, start=1 - end, end=1 - start)


def _ranges_of(
    access: BoxAccess, axis: int, groups: Range, grid: Grid
) -> list[tuple[Range, Range]]:
    """Give pairs of ranges of the local id and the group id: full work-groups, and the last one.

    Where the group id only prolongs the local one, the pair is the global id's range and nothing.
    """
    size = grid.local[axis]
    low = max(0, access.clip[axis][0])
    high = min(grid.items[axis], access.clip[axis][1])
    first, end = max(groups[0] * size, low), min(groups[1] * size, high)
    if first >= end:
        return []
    if access.group_strides[axis] == access.local_strides[axis] * size:
        return [((first, end), (0, 1))]
    full = high // size
    found: list[tuple[Range, Range]] = []
    if groups[0] < min(groups[1], full):
        found.append(((0, size), (groups[0], min(groups[1], full))))
    if groups[0] <= full < groups[1] and high % size:
        found.append(((0, high % size), (full, full + 1)))
    return found


def _shift(edges: IntArray, steps: IntArray) -> IntArray:
    """Move each axis's range by each translate's steps."""
    moved: IntArray = steps.T[:, :, None] + edges[:, None, :]
    return moved.reshape(edges.shape[0], steps.shape[0] * edges.shape[1])


def _no_boxes() -> Boxes:
    nothing = np.zeros(0, dtype=np.int64)
    empty = np.zeros((0, 0), dtype=np.int64)
    return Boxes(low=nothing, high=nothing, starts=empty, ends=empty, strides=())
