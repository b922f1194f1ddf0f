"""What work-groups, rows, layers and the whole launch touch: the footprints behind all reuse."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Protocol

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange, mix_run
from kernelcast.analytic.gpu.volumes.boxes import (
    Family,
    GroupClass,
    count_box,
    count_sectors,
    group_families,
    list_classes,
    make_boxes,
)

PAGE_BYTES = 2 << 20
_PAGE_UNIT = PAGE_BYTES // 16
_AXES = 3
_GROWTH = 8
"""Ratio of neighbouring chunk lengths in a row that is longer than a wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A stretch of consecutive work-groups, and what one touches on average."""

    name: str
    """``x``: within a row of work-groups; ``y``: rows of a layer; ``z``: layers."""
    work_groups: int
    """Work-groups of a stretch: data reused in it was last touched about so far back."""
    bytes: float
    """Unique bytes of all stretches, added up over the launch."""


class Footprint(Protocol):
    """What can tell how much work-groups touch together."""

    def count_run(self, work_groups: int, granularity: int) -> float:
        """Count the unique bytes of so many consecutive work-groups, mid launch."""

    def count_pages(self, work_groups: int) -> float:
        """Count the pages of so many consecutive work-groups, mid launch."""

    def list_levels(self, wave: int, granularity: int) -> list[Level]:
        """Add up footprints of ever longer stretches of work-groups."""


def list_stretches(grid: Grid, wave: int) -> list[tuple[str, int]]:
    """List the lengths of stretches of work-groups within which data is shared."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SumFootprint:
    """Footprints of accesses that share no data."""

    parts: tuple[Footprint, ...]

    def count_run(self, work_groups: int, granularity: int) -> float:
        return sum(one.count_run(work_groups, granularity) for one in self.parts)

    def count_pages(self, work_groups: int) -> float:
        return sum(one.count_pages(work_groups) for one in self.parts)

    def list_levels(self, wave: int, granularity: int) -> list[Level]:
        levels = [one.list_levels(wave, granularity) for one in self.parts]
        return [
            replace(same[0], bytes=sum(one.bytes for one in same))
            for same in zip(*levels, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class BoxFootprint:
    """Footprints of accesses that are boxes."""

    accesses: tuple[BoxAccess, ...]
    grid: Grid
    known: dict[tuple[int, int], float] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def by_buffer(self) -> list[list[Family]]:
        """The accesses, translates together, those of the same buffer together."""
        buffers: dict[str | None, list[Family]] = {}
        for one in group_families(self.accesses):
            buffers.setdefault(one[0].access.buffer, []).append(one)
        return list(buffers.values())

    def count_run(self, work_groups: int, granularity: int) -> float:
        key = work_groups, granularity
        if key not in self.known:
            self.known[key] = sum(
                weight * self.count_box(box, granularity)
                for box, weight in mix_run(work_groups, self.grid.counts)
            )
        return self.known[key]

    def count_pages(self, work_groups: int) -> float:
        """Count the pages of so many consecutive work-groups, mid launch.

        Whole rows or layers stand for the run, the nearer number of them. Strides are rounded to a
        sixteenth of a page, which keeps the alignments few.
        """
        box, _ = max(mix_run(work_groups, self.grid.counts), key=lambda one: one[1])
        return sum(
            float(count_box(family, box, self.grid, PAGE_BYTES, unit=_PAGE_UNIT)[0])
            for families in self.by_buffer
            for family in families
        )

    def list_levels(self, wave: int, granularity: int) -> list[Level]:
        classes = list_classes(self.accesses, self.grid)
        levels = []
        for name, length in list_stretches(self.grid, wave):
            counts = self.grid.counts
            if length < counts[0]:  # the chunk in the middle of the grid stands for all
                x, y, z = counts[0] // 2 // length * length, counts[1] // 2, counts[2] // 2
                own = self.count_box(((x, x + length), (y, y + 1), (z, z + 1)), granularity)
                found = own * self.grid.work_groups / length
            else:
                found = self._stretches(classes, "xyz".index(name), granularity)
            levels.append(Level(name=name, work_groups=length, bytes=found))
        return levels

    def _stretches(self, classes: Sequence[GroupClass], axis: int, granularity: int) -> float:
        """Add up the footprints of all rows (axis 0), all layers (1), or the launch (2)."""
        counts = self.grid.counts
        spans = [
            [(0, counts[place])] if place <= axis else sorted({one.box[place] for one in classes})
            for place in range(_AXES)
        ]
        total = 0
        for box in product(*spans):
            times, whole = 1, []
            for place, (first, end) in enumerate(box):
                times *= end - first if place > axis else 1
                whole.append((first, end) if place <= axis else (first, first + 1))
            total += times * self.count_box((whole[0], whole[1], whole[2]), granularity)
        return total

    def count_box(self, groups: GroupRange, granularity: int) -> int:
        """Count the bytes of all families; in one buffer no more than lies between its ends."""
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
