"""What work-groups, rows, layers and the whole launch touch: the footprints behind all reuse."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby, product
from math import prod

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange, mix_run
from kernelcast.analytic.gpu.volumes.boxes import (
    Family,
    count_box,
    count_sectors,
    group_families,
    list_classes,
    make_boxes,
)
from kernelcast.analytic.gpu.volumes.listed import ListedAccess

PAGE_BYTES = 2 << 20
_PAGE_UNIT = PAGE_BYTES // 16
_GROWTH = 8
"""Ratio of neighbouring chunk lengths in a row that is longer than a wave."""


def list_stretches(grid: Grid, wave: int) -> list[tuple[str, int]]:
    """List stretches of work-groups within which data is shared, by axis and length.

    ``x`` stands for chunks of a row and the row, ``y`` for the rows of a layer, ``z`` for layers.
    """
    found = []
    length = wave
    while length * _GROWTH <= grid.counts[0]:
        found.append(("x", length))
        length *= _GROWTH
    stretch = 1
    for name, count in zip("xyz", grid.counts, strict=True):
        stretch *= count
        if count > 1 or name == "x":
            found.append((name, stretch))
    return found


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Footprint of boxes, or of all accesses of one buffer of which some are no boxes."""

    boxes: tuple[BoxAccess, ...]
    """Those around accesses that are no boxes are among them."""
    grid: Grid
    listed: tuple[ListedAccess, ...] = ()
    known: dict[tuple[int, int], float] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def by_buffer(self) -> list[list[Family]]:
        """The boxes, translates together, those of the same buffer together."""
        buffers: dict[str | None, list[Family]] = {}
        for one in group_families(self.boxes):
            buffers.setdefault(one[0].access.buffer, []).append(one)
        return list(buffers.values())

    def count_run(self, work_groups: int, granularity: int) -> float:
        """Count the unique bytes of so many consecutive work-groups, mid launch."""
        key = work_groups, granularity
        if key not in self.known:
            found = sum(
                weight * self.count_box(box, granularity)
                for box, weight in mix_run(work_groups, self.grid.counts)
            )
            if self.listed:
                found = granularity * self._bound(work_groups, found / granularity, granularity)
            self.known[key] = found
        return self.known[key]

    def count_pages(self, work_groups: int) -> float:
        """Count the pages of so many consecutive work-groups, mid launch."""
        # Whole rows or layers stand for the run, the nearer number of them. Strides are rounded to
        # a sixteenth of a page, which keeps the alignments few.
        box, _ = max(mix_run(work_groups, self.grid.counts), key=lambda one: one[1])
        found = sum(
            float(count_box(family, box, self.grid, PAGE_BYTES, unit=_PAGE_UNIT)[0])
            for families in self.by_buffer
            for family in families
        )
        return self._bound(work_groups, found, PAGE_BYTES) if self.listed else found

    def list_levels(self, wave: int, granularity: int) -> list[float]:
        """List the unique bytes of all stretches of each length, added up over the launch."""
        counts, every = self.grid.counts, self.grid.work_groups
        stretches = list_stretches(self.grid, wave)
        if self.listed:
            # From the middle: at the edges, clamps and guards leave less.
            levels = list(accumulate(
                (self.count_run(length, granularity) * every / length for _, length in stretches),
                min,
            ))  # fmt: skip
            # Random data is met again anywhere, not a row or a layer later.
            is_random = any(one.is_random for one in self.listed)
            return levels[-1:] * len(levels) if is_random else levels
        classes = list_classes(self.boxes, self.grid)
        levels = []
        for name, length in stretches:
            if length < counts[0]:  # the chunk in the middle of the grid stands for all
                x, y, z = counts[0] // 2 // length * length, counts[1] // 2, counts[2] // 2
                own = self.count_box(((x, x + length), (y, y + 1), (z, z + 1)), granularity)
                levels.append(own * every / length)
                continue
            inside = "xyz".index(name) + 1
            spans = [
                [(0, count)] if axis < inside else sorted({one[axis] for one in classes})
                for axis, count in enumerate(counts)
            ]
            total = 0
            for box in product(*spans):
                # One row or layer stands for all that are cut alike.
                x_range, y_range, z_range = (
                    *box[:inside], *((first, first + 1) for first, _ in box[inside:])
                )  # fmt: skip
                times = prod(end - first for first, end in box[inside:])
                total += times * self.count_box((x_range, y_range, z_range), granularity)
            levels.append(float(total))
        return levels

    def count_box(self, groups: GroupRange, granularity: int) -> int:
        """Count the bytes of all boxes; in one buffer no more than lies between its ends."""
        total = 0
        for families in self.by_buffer:
            boxes = [make_boxes(one, groups, self.grid, granularity) for one in families]
            found = sum(int(count_sectors(one, granularity)[0]) for one in boxes)
            if len(families) > 1:
                spans = [one.span for one in boxes if one.low.size]
                low = min((first for first, _ in spans), default=0)
                end = max((last for _, last in spans), default=0)
                found = min(found, -(-end // granularity) - low // granularity)
            total += granularity * found
        return total

    def _bound(self, work_groups: int, boxes: float, granularity: int) -> float:
        """Bound sectors by boxes and estimates together, by each alone, and by the buffer."""
        without = [one for one in self.listed if one.hull is None]
        found = boxes + sum(
            one.share * one.count_stretch(work_groups, granularity) for one in without
        )
        if len(self.boxes) + len(without) == len(self.listed):
            alone = sum(one.share * max(one.count_each(granularity)) for one in self.listed)
            found = min(found, alone * work_groups)
        return min(found, self.listed[0].count_buffer(granularity))


def divide_by_buffer(
    accesses: Sequence[BoxAccess | ListedAccess], grid: Grid
) -> tuple[Footprint, ...]:
    """Divide accesses by their buffers: what is no box may touch what boxes of it touch."""
    boxes = [one for one in accesses if isinstance(one, BoxAccess)]
    listed = [one for one in accesses if isinstance(one, ListedAccess)]
    names = {one.access.buffer for one in listed}
    rest = tuple(one for one in boxes if one.access.buffer not in names)
    found = [Footprint(boxes=rest, grid=grid)]
    listed.sort(key=lambda one: one.access.buffer or "")
    for name, members in groupby(listed, key=lambda one: one.access.buffer):
        own = tuple(members)
        around = (one.hull for one in own if one.hull is not None)
        exact = (one for one in boxes if one.access.buffer == name)
        found.append(Footprint(boxes=(*exact, *around), grid=grid, listed=own))
    return tuple(found)


def count_run(parts: Sequence[Footprint], work_groups: int, granularity: int) -> float:
    return sum(one.count_run(work_groups, granularity) for one in parts)


def count_pages(parts: Sequence[Footprint], work_groups: int) -> float:
    return sum(one.count_pages(work_groups) for one in parts)


def list_levels(parts: Sequence[Footprint], wave: int, granularity: int) -> list[float]:
    levels = (one.list_levels(wave, granularity) for one in parts)
    return [sum(same) for same in zip(*levels, strict=True)]
