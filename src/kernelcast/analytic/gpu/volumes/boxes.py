"""What boxes of addresses touch together, of accesses that are translates of each other.

A box is a run of bytes repeated along outer axes (rows, planes, iterations), which the boxes' ends
cut into cells in which the same boxes are present; along the run, sectors are counted as a union of
intervals. Where a pitch is no multiple of the sector, a cell's rows are counted by their phase.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import pairwise, product
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.gpu.volumes.affine import (
    BoxAccess,
    Clip,
    Grid,
    GroupRange,
    IntArray,
    Range,
)


class Boxes(NamedTuple):
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


def count_sectors(boxes: Boxes, granularity: int, shifts: IntArray | None = None) -> IntArray:
    """Count the sectors that the boxes touch together."""
    moved = np.zeros(1, dtype=np.int64) if shifts is None else shifts
    if boxes.low.size == 0:
        return np.zeros(moved.size, dtype=np.int64)
    # Find the different sets of boxes, and how many rows of each phase have which set.
    count = boxes.low.size
    inside = np.ones((count, 1), dtype=np.bool_)
    cuts: list[IntArray] = []
    for start, end in zip(boxes.starts, boxes.ends, strict=True):
        edges = np.array(sorted({*start.tolist(), *end.tolist()}), dtype=np.int64)
        own = (edges[None, :-1] >= start[:, None]) & (edges[None, :-1] < end[:, None])
        inside = (inside[:, :, None] & own[:, None, :]).reshape(count, -1)
        cuts.append(edges)
    _, chosen, which = np.unique(
        np.packbits(inside, axis=0), axis=1, return_index=True, return_inverse=True
    )
    present, which = inside[:, chosen].T, which.ravel()
    phases, sizes = _count_rows(cuts, boxes.strides, granularity)
    rows = np.array(
        [np.bincount(which, weights=one, minlength=chosen.size) for one in sizes], dtype=np.int64
    )
    order = np.argsort(boxes.low, kind="stable")
    # The sectors of one row for every shift and phase, and every set of boxes.
    every = (moved[:, None] + np.array(phases, dtype=np.int64)[None, :]).reshape(-1, 1)
    first = (boxes.low[order][None, :] + every) // granularity
    ends = (boxes.high[order][None, :] - 1 + every) // granularity + 1
    # Absent boxes end before everything, so that they neither cover nor count.
    lowest = first.min() - 1
    ends = np.where(present[None, :, order], ends[:, None, :], lowest)
    covered = np.maximum.accumulate(ends, axis=2)
    before = np.concatenate((np.full((*ends.shape[:2], 1), lowest), covered[:, :, :-1]), axis=2)
    lengths = np.maximum(ends - np.maximum(first[:, None, :], before), 0).sum(axis=2)
    totals: IntArray = np.einsum("spk,pk->s", lengths.reshape(moved.size, *rows.shape), rows)
    return totals


def _count_rows(
    cuts: list[IntArray], strides: tuple[int, ...], granularity: int
) -> tuple[list[int], list[IntArray]]:
    """Count the rows of each cell by phase: byte offset of the row within a sector."""
    unit = reduce(gcd, strides, granularity)
    phases = granularity // unit
    rows = np.zeros((phases, 1), dtype=np.int64)
    rows[0] = 1
    for edges, stride in zip(cuts, strides, strict=True):
        step = (stride // unit) % phases
        # Count the indices between neighbouring edges by (index * step) modulo phases.
        residues = np.arange(phases, dtype=np.int64)[:, None]
        # Indices congruent to a residue between two edges.
        below = (edges[None, :] - residues - 1) // phases
        numbers = np.diff(below, axis=1)
        own = np.zeros_like(numbers)
        np.add.at(own, residues[:, 0] * step % phases, numbers)
        wide = np.zeros((phases, rows.shape[1], own.shape[1]), dtype=np.int64)
        order = np.arange(phases)
        for phase in np.flatnonzero(own.any(axis=1)):
            wide += rows[(order - phase) % phases][:, :, None] * own[phase]
        rows = wide.reshape(phases, -1)
    kept = [phase for phase in range(phases) if rows[phase].any()]
    return [phase * unit for phase in kept], [rows[phase] for phase in kept]


def translate(
    offsets: tuple[int, ...], strides: tuple[int, ...], cuts: tuple[int, ...], run: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Write each offset in steps of the outer axes and bytes along the run."""
    rest = np.array(offsets, dtype=np.int64)
    steps = np.zeros((rest.size, len(strides)), dtype=np.int64)
    for place in range(len(strides) - 1, -1, -1):
        kept = (rest - cuts[place]) % strides[place] + cuts[place]
        steps[:, place] = (rest - kept) // strides[place]
        rest = kept
    order = np.lexsort((rest, *steps.T))
    steps, rest = steps[order], rest[order]
    is_new = np.ones(rest.size, dtype=np.bool_)
    is_new[1:] = (steps[1:] != steps[:-1]).any(axis=1) | (np.diff(rest) > run)
    begins = np.flatnonzero(is_new)
    lasts = np.append(begins[1:], rest.size) - 1
    return steps[begins], rest[begins], rest[lasts]


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


class Axis(NamedTuple):
    stride: int
    start: IntArray
    end: IntArray


Family = tuple[BoxAccess, ...]
"""Accesses that differ by a constant offset and a guard only."""


def group_families(accesses: Sequence[BoxAccess]) -> list[Family]:
    families: dict[tuple[object, ...], list[BoxAccess]] = {}
    for access in accesses:
        families.setdefault(access.family, []).append(access)
    return [tuple(one) for one in families.values()]


def make_boxes(family: Family, groups: GroupRange, grid: Grid, granularity: int) -> Boxes:
    """Make the boxes of addresses that a box of work-groups touches."""
    first = family[0]
    by_clip: dict[Clip, list[BoxAccess]] = {}
    for one in family:
        by_clip.setdefault(one.clip, []).append(one)
    # Translates that are executed for the same work-items, and the ranges of local and group ids,
    # by dimension.
    parts = []
    for members in by_clip.values():
        per_axis = [_ranges_of(members[0], axis, groups[axis], grid) for axis in range(3)]
        rows: list[tuple[Range, ...]] = [sum(pairs, ()) for pairs in product(*per_axis)]
        if rows:
            bases = tuple(one.base_bytes - first.base_bytes for one in members)
            parts.append((bases, rows))
    if not parts or any(trips < 1 for _, trips in first.loops):
        nothing, empty = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
        return Boxes(nothing, nothing, empty, empty, ())
    loops = tuple((0, trips) for _, trips in first.loops)
    table = np.array([(*row, *loops) for _, rows in parts for row in rows], dtype=np.int64)
    pairs = zip(first.local_strides, first.group_strides, strict=True)
    strides = [*sum(pairs, ()), *(stride for stride, _ in first.loops)]
    low = np.full(len(table), first.base_bytes, dtype=np.int64)
    moving = []
    for stride, (start, end) in zip(strides, table.transpose(1, 2, 0), strict=True):
        if not stride:
            continue
        if stride < 0:
            stride, start, end = -stride, 1 - end, 1 - start
        least = start.min()
        low += stride * least
        if (end > least + 1).any():
            moving.append(Axis(stride, start - least, end - least))
    high = low + first.access.bytes
    outer = merge_axes(moving)
    # No sector fits into a gap that is smaller than a sector: what lies around it is one run.
    while outer and outer[0].stride - int((high - low).min()) < granularity:
        nearest = outer.pop(0)
        low = low + nearest.start * nearest.stride
        high = high + (nearest.end - 1) * nearest.stride
    steps_of = tuple(one.stride for one in outer)
    starts, ends = (
        np.array(edges, dtype=np.int64).reshape(len(outer), low.size)
        for edges in ([one.start for one in outer], [one.end for one in outer])
    )
    # Parts that are executed for other work-items overlap: all are written alike.
    cuts = find_cuts(tuple(offset for bases, _ in parts for offset in bases), steps_of)
    done, found = 0, []
    for bases, rows in parts:
        own = slice(done, done + len(rows))
        done = own.stop
        run = int((high[own] - low[own]).min())
        steps, lows, highs = translate(bases, steps_of, cuts, run)
        moved = [
            (steps.T[:, :, None] + edges[:, None, own]).reshape(len(outer), lows.size * len(rows))
            for edges in (starts, ends)
        ]
        found.append((
            (lows[:, None] + low[own]).ravel(), (highs[:, None] + high[own]).ravel(), *moved,
        ))  # fmt: skip
    low, high, starts, ends = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
    return Boxes(low, high, starts, ends, steps_of)


def count_box(
    family: Family,
    box: GroupRange,
    grid: Grid,
    granularity: int,
    shifts: IntArray | None = None,
    *,
    unit: int = 1,
) -> IntArray:
    """Count the sectors that one box of work-groups touches, strides in multiples of a unit."""
    boxes = make_boxes(family, box, grid, granularity)
    if unit != 1:
        strides = tuple(max(1, round(one / unit)) * unit for one in boxes.strides)
        boxes = boxes._replace(strides=strides)
    return count_sectors(boxes, granularity, shifts)


def merge_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Sort axes by stride and join those that together run through one longer axis."""
    # An axis whose stride is `k` times a nearer one's, where that has at least `k` steps, only
    # prolongs it: local and group ids of one dimension, rows and a loop over neighbouring rows.
    merged: list[Axis] = []
    for axis in sorted(axes, key=lambda one: one.stride):
        for place, nearer in enumerate(merged):
            times = axis.stride // nearer.stride
            shortest = int((nearer.end - nearer.start).min())
            if axis.stride % nearer.stride == 0 and shortest >= times:
                start = nearer.start + times * axis.start
                merged[place] = Axis(nearer.stride, start, nearer.end + times * (axis.end - 1))
                break
        else:
            merged.append(axis)
    return merged


def _ranges_of(
    access: BoxAccess, axis: int, groups: Range, grid: Grid
) -> list[tuple[Range, Range]]:
    """List ranges of local and group id: of full work-groups, and of the last one."""
    size = grid.local[axis]
    low = max(0, access.clip[axis][0])
    high = min(grid.items[axis], access.clip[axis][1])
    first, end = max(groups[0] * size, low), min(groups[1] * size, high)
    if first >= end:
        return []
    if access.group_strides[axis] == access.local_strides[axis] * size:
        return [((first, end), (0, 1))]  # the global id's range, and nothing
    full = high // size
    found: list[tuple[Range, Range]] = []
    if groups[0] < min(groups[1], full):
        found.append(((0, size), (groups[0], min(groups[1], full))))
    if groups[0] <= full < groups[1] and high % size:
        found.append(((0, high % size), (full, full + 1)))
    return found


def list_classes(accesses: Sequence[BoxAccess], grid: Grid) -> list[GroupRange]:
    """Split the grid into boxes of work-groups that the domain and guards cut alike."""
    clips = {one.clip for one in accesses}
    spans: list[list[Range]] = []
    for axis in range(3):
        size, count = grid.local[axis], grid.counts[axis]
        cuts = {0, count}
        for edge in {grid.items[axis], *(end for clip in clips for end in clip[axis])}:
            if 0 < edge < count * size:
                cuts |= {edge // size, -(-edge // size)}
        spans.append(list(pairwise(sorted(cuts))))
    return [(x, y, z) for x, y, z in product(*spans)]


def count_groups(box: GroupRange) -> int:
    return prod(end - first for first, end in box)


def count_per_group(
    family: Family, classes: Sequence[GroupRange], grid: Grid, granularity: int
) -> float:
    total, work_groups = 0, 0
    every = sum(map(count_groups, classes))
    for box in classes:
        own = count_groups(box)
        if own * 10_000 < every:
            continue  # the corner of a large grid, which no mean shows
        shifts, weights = spread_alignments(family[0].group_strides, box, granularity)
        x, y, z = ((first, first + 1) for first, _ in box)
        total += int(count_box(family, (x, y, z), grid, granularity, shifts) @ weights)
        work_groups += own
    return total / work_groups


@lru_cache(maxsize=4096)
def spread_alignments(
    strides: tuple[int, int, int], box: GroupRange, granularity: int
) -> tuple[IntArray, IntArray]:
    """List the alignments of the work-groups of a box, and how many have each."""
    # Results are remembered; callers leave them as they are.
    unit = reduce(gcd, strides, granularity)
    phases = granularity // unit
    shifts, weights = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for stride, (first, end) in zip(strides, box, strict=True):
        step = (stride // unit) % phases
        # The alignments of one dimension repeat after so many work-groups.
        period = phases // gcd(step, phases)
        indices = np.arange(min(period, end - first), dtype=np.int64)
        whole, rest = divmod(end - first, period)
        times = whole + (indices < rest)
        moved = (shifts[:, None] + (indices * step)[None, :]) % phases
        found = np.bincount(
            moved.ravel(), weights=(weights[:, None] * times[None, :]).ravel(), minlength=phases
        )
        shifts = np.flatnonzero(found)
        weights = found[shifts].astype(np.int64)
    return shifts * unit, weights
