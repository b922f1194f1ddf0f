"""Unique lines and sectors of work-groups: every alignment and every cut edge, none twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise, product
from math import gcd, prod

import numpy as np

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Clip, Grid, GroupRange, Range
from kernelcast.analytic.gpu.volumes.families import Family, count_box
from kernelcast.analytic.gpu.volumes.unions import IntArray

_AXES = 3
_RARE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClass:
    """Work-groups that are cut alike: a box of the grid with one representative."""

    box: GroupRange
    """Work-groups of the class."""

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
