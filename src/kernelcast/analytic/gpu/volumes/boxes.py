"""What boxes of addresses touch together, of accesses that are translates of each other.

A box is a run of bytes repeated along outer axes (rows, planes, iterations). Along the outer axes
the boxes' ends cut space into cells in which the same boxes are present, so only the few different
sets of boxes have to be looked at; along the run, sectors are counted as a union of intervals.
Where a pitch is no multiple of the sector, rows differ by their phase, and a cell's rows are
counted by phase. The cost depends on the number of boxes, never on their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import pairwise, product
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.volumes.affine import (
    BoxAccess,
    Clip,
    Grid,
    GroupRange,
    IntArray,
    Range,
)

BoolArray = npt.NDArray[np.bool_]
_FEW = 32
"""Rows up to which a dictionary tells equal ones faster than sorting."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """Boxes of addresses along common outer axes."""

    low: IntArray
    high: IntArray
    starts: IntArray
    ends: IntArray
    strides: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first byte of all boxes and the end of the last one; there must be boxes."""
        low, high = self.low.copy(), self.high.copy()
        for start, end, stride in zip(self.starts, self.ends, self.strides, strict=True):
            low += stride * start
            high += stride * (end - 1)
        return int(low.min()), int(high.max())


def divide(addresses: IntArray, unit: int) -> IntArray:
    """Give the numbers of the units in which addresses lie; shifts take a fifth of the time."""
    bits = unit.bit_length() - 1
    found: IntArray = addresses >> bits if unit == 1 << bits else addresses // unit
    return found


def count_sectors(boxes: Boxes, granularity: int, shifts: IntArray | None = None) -> IntArray:
    """Count the sectors that the boxes touch together."""
    moved = np.zeros(1, dtype=np.int64) if shifts is None else shifts
    if boxes.low.size == 0:
        return np.zeros(moved.size, dtype=np.int64)
    present, weights, phases = _find_patterns(boxes, granularity)
    order = np.argsort(boxes.low, kind="stable")
    every = (moved[:, None] + np.array(phases, dtype=np.int64)[None, :]).ravel()
    lengths = _measure(boxes, order, present[:, order], granularity, every)
    rows = np.array(weights, dtype=np.int64)
    totals: IntArray = np.einsum("spk,pk->s", lengths.reshape(moved.size, *rows.shape), rows)
    return totals


def _measure(
    boxes: Boxes, order: IntArray, present: BoolArray, granularity: int, shifts: IntArray
) -> IntArray:
    """Give the sectors of one row for every shift and every set of boxes."""
    first = (boxes.low[order][None, :] + shifts[:, None]) // granularity
    end = (boxes.high[order][None, :] - 1 + shifts[:, None]) // granularity + 1
    # Absent boxes end before everything, so that they neither cover nor count.
    lowest = first.min() - 1
    ends = np.where(present[None, :, :], end[:, None, :], lowest)
    covered = np.maximum.accumulate(ends, axis=2)
    before = np.concatenate((np.full((*ends.shape[:2], 1), lowest), covered[:, :, :-1]), axis=2)
    grown = ends - np.maximum(first[:, None, :], before)
    lengths: IntArray = np.maximum(grown, 0).sum(axis=2)
    return lengths


def _find_patterns(boxes: Boxes, granularity: int) -> tuple[BoolArray, list[IntArray], list[int]]:
    """Find the different sets of boxes, and how many rows of each phase have which set."""
    count = boxes.low.size
    inside = np.ones((count, 1), dtype=np.bool_)
    cuts: list[IntArray] = []
    for start, end in zip(boxes.starts, boxes.ends, strict=True):
        # A few numbers: NumPy's own way takes five times as long.
        edges = np.array(sorted({*start.tolist(), *end.tolist()}), dtype=np.int64)
        own = (edges[None, :-1] >= start[:, None]) & (edges[None, :-1] < end[:, None])
        inside = (inside[:, :, None] & own[:, None, :]).reshape(count, -1)
        cuts.append(edges)
    chosen, which = _find_different(np.packbits(inside, axis=0).T.copy())
    phases, sizes = _count_rows(cuts, boxes.strides, granularity)
    weights = [
        np.bincount(which, weights=one, minlength=chosen.size).astype(np.int64) for one in sizes
    ]
    return inside[:, chosen].T, weights, phases


def _find_different(packed: npt.NDArray[np.uint8]) -> tuple[IntArray, IntArray]:
    """Give the places of different rows, and which of them each row equals."""
    if packed.shape[0] <= _FEW:
        numbers: dict[bytes, int] = {}
        same = [numbers.setdefault(row.tobytes(), len(numbers)) for row in packed]
        first = [same.index(number) for number in range(len(numbers))]
        return np.array(first, dtype=np.int64), np.array(same, dtype=np.int64)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, chosen, which = np.unique(keys, return_index=True, return_inverse=True)
    return chosen, which.ravel()


def _count_rows(
    cuts: list[IntArray], strides: tuple[int, ...], granularity: int
) -> tuple[list[int], list[IntArray]]:
    """Give the rows of each cell by phase: byte offset of the row within a sector."""
    unit = reduce(gcd, strides, granularity)
    phases = granularity // unit
    rows = np.zeros((phases, 1), dtype=np.int64)
    rows[0] = 1
    for edges, stride in zip(cuts, strides, strict=True):
        step = (stride // unit) % phases
        if phases == 1:
            rows = (rows[:, :, None] * np.diff(edges)).reshape(1, -1)
            continue
        own = _phases_of(edges, step, phases)
        wide = np.zeros((phases, rows.shape[1], own.shape[1]), dtype=np.int64)
        order = np.arange(phases)
        for phase in np.flatnonzero(own.any(axis=1)):
            wide += rows[(order - phase) % phases][:, :, None] * own[phase]
        rows = wide.reshape(phases, -1)
    kept = [phase for phase in range(phases) if rows[phase].any()]
    return [phase * unit for phase in kept], [rows[phase] for phase in kept]


def _phases_of(edges: IntArray, step: int, phases: int) -> IntArray:
    """Count the indices between neighbouring edges by (index * step) modulo phases."""
    residues = np.arange(phases, dtype=np.int64)[:, None]
    # Indices congruent to a residue between two edges.
    below = (edges[None, :] - residues - 1) // phases
    numbers = np.diff(below, axis=1)
    found = np.zeros_like(numbers)
    np.add.at(found, residues[:, 0] * step % phases, numbers)
    return found


def translate(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...], run: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Write each offset in steps of the outer axes and bytes along the run."""
    steps, rest = _decompose(offsets, strides, cuts)
    is_new = np.ones(rest.size, dtype=np.bool_)
    is_new[1:] = (steps[1:] != steps[:-1]).any(axis=1) | (np.diff(rest) > run)
    begins = np.flatnonzero(is_new)
    lasts = np.append(begins[1:], rest.size) - 1
    return steps[begins], rest[begins], rest[lasts]


# A launch asks for the same few decompositions in every count of its footprints.
@lru_cache(maxsize=256)
def _decompose(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """Give steps along each axis and the rest in bytes, sorted; nobody may change them."""
    rest = np.array(offsets, dtype=np.int64)
    steps = np.zeros((rest.size, len(strides)), dtype=np.int64)
    for place in range(len(strides) - 1, -1, -1):
        kept = (rest - cuts[place]) % strides[place] + cuts[place]
        steps[:, place] = (rest - kept) // strides[place]
        rest = kept
    order = np.lexsort((rest, *steps.T))
    return steps[order], rest[order]


@lru_cache(maxsize=256)
def find_cuts(offsets: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Find where to wrap offsets modulo each stride: where none lies, so that none is torn off."""
    rest = np.array(offsets, dtype=np.int64)
    cuts = [0] * len(strides)
    for place in range(len(strides) - 1, -1, -1):
        stride = strides[place]
        residues = np.unique(rest % stride)
        gaps = np.diff(residues, append=residues[0] + stride)
        cut = int(residues[(int(gaps.argmax()) + 1) % residues.size])
        cuts[place] = cut - stride if 2 * cut > stride else cut
        rest = (rest - cuts[place]) % stride + cuts[place]
    return tuple(cuts)


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


_RARE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClass:
    """Work-groups that are cut alike: a box of the grid with one representative."""

    box: GroupRange

    @property
    def work_groups(self) -> int:
        """How many there are."""
        count = 1
        for first, end in self.box:
            count *= end - first
        return count

    @property
    def representative(self) -> GroupRange:
        """The first of them."""
        x, y, z = ((first, first + 1) for first, _ in self.box)
        return x, y, z


def list_classes(accesses: Sequence[BoxAccess], grid: Grid) -> list[GroupClass]:
    """Split the grid where the domain or a guard cuts through work-groups."""
    return _split_grid(frozenset(one.clip for one in accesses), grid)


@lru_cache(maxsize=64)
def _split_grid(clips: frozenset[Clip], grid: Grid) -> list[GroupClass]:
    """Split the grid where clips cut; nobody may change the answer."""
    spans: list[list[Range]] = []
    for axis in range(_AXES):
        size, count = grid.local[axis], grid.counts[axis]
        cuts = {0, count}
        for edge in {grid.items[axis], *(end for clip in clips for end in clip[axis])}:
            if 0 < edge < count * size:
                cuts |= {edge // size, -(-edge // size)}
        ordered = sorted(cuts)
        spans.append(list(pairwise(ordered)))
    return [GroupClass(box=(x, y, z)) for x, y, z in product(*spans)]


def count_per_group(
    family: Family, classes: Sequence[GroupClass], grid: Grid, granularity: int
) -> float:
    """Count the sectors of an average work-group."""
    total, work_groups = 0, 0
    every = sum(one.work_groups for one in classes)
    for one in classes:
        if one.work_groups * _RARE < every:
            continue  # the corner of a large grid, which no mean shows
        shifts, weights = spread_alignments(family[0].group_strides, one.box, granularity)
        found = count_box(family, one.representative, grid, granularity, shifts)
        total += int(found @ weights)
        work_groups += one.work_groups
    return total / work_groups


def spread_alignments(
    strides: tuple[int, int, int], box: GroupRange, granularity: int
) -> tuple[IntArray, IntArray]:
    """Give the alignments that the work-groups of a box have, and how many have each."""
    unit = reduce(gcd, strides, granularity)
    phases = granularity // unit
    if phases == 1:
        count = prod(end - first for first, end in box)
        return np.zeros(1, dtype=np.int64), np.array([count], dtype=np.int64)
    x, y, z = (end - first for first, end in box)
    steps = tuple((stride // unit) % phases for stride in strides)
    shifts, weights = _spread_phases(steps, (x, y, z), phases)
    return shifts * unit, weights


@lru_cache(maxsize=4096)
def _spread_phases(
    steps: tuple[int, ...], counts: tuple[int, int, int], phases: int
) -> tuple[IntArray, IntArray]:
    """Give the phases that occur, and how often; nobody may change them."""
    shifts, weights = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for step, count in zip(steps, counts, strict=True):
        # The alignments of one dimension repeat after so many work-groups.
        period = phases // gcd(step, phases)
        indices = np.arange(min(period, count), dtype=np.int64)
        whole, rest = divmod(count, period)
        times = whole + (indices < rest)
        moved = (shifts[:, None] + (indices * step)[None, :]) % phases
        found = np.bincount(
            moved.ravel(), weights=(weights[:, None] * times[None, :]).ravel(), minlength=phases
        )
        shifts = np.flatnonzero(found)
        weights = found[shifts].astype(np.int64)
    return shifts, weights
