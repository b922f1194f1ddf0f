"""Footprints of accesses that are no boxes: by boxes around them, and by listed addresses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid
from kernelcast.analytic.gpu.volumes.footprints import (
    PAGE_BYTES,
    BoxFootprint,
    Footprint,
    Level,
    list_stretches,
)
from kernelcast.analytic.gpu.volumes.l1 import FamilyCosts
from kernelcast.analytic.gpu.volumes.listed import ListedAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferFootprint:
    """Footprint in one buffer, of which no access is a box or not all are."""

    listed: tuple[ListedAccess, ...]
    """Those that are no boxes."""
    boxes: BoxFootprint
    """The others, and boxes around those that have one."""
    work_groups: int

    def count_run(self, work_groups: int, granularity: int) -> float:
        """Estimate the unique bytes of so many consecutive work-groups, mid launch."""
        boxes = self.boxes.count_run(work_groups, granularity)
        return self._bound(work_groups, boxes / granularity, granularity) * granularity

    def count_pages(self, work_groups: int) -> float:
        """Estimate the pages of so many consecutive work-groups, mid launch."""
        return self._bound(work_groups, self.boxes.count_pages(work_groups), PAGE_BYTES)

    def list_levels(self, wave: int, granularity: int) -> list[Level]:
        """Add up footprints of ever longer stretches of work-groups."""
        levels = []
        smallest = float("inf")
        for name, length in list_stretches(self.boxes.grid, wave):
            # From the middle: at the edges, clamps and guards leave less.
            found = self.count_run(length, granularity)
            smallest = min(smallest, found * self.work_groups / length)
            levels.append(Level(name=name, work_groups=length, bytes=smallest))
        if any(one.is_random for one in self.listed):
            # Data is met again anywhere, not a row or a layer later: see `Scatter`.
            levels = [Level(name=one.name, work_groups=one.work_groups, bytes=smallest)
                      for one in levels]  # fmt: skip
        return levels

    def _bound(self, work_groups: int, boxes: float, granularity: int) -> float:
        """Give sectors: no more than in boxes and estimates together, each alone, the buffer."""
        without = [one for one in self.listed if one.hull is None]
        found = boxes + sum(
            one.share * one.count_stretch(work_groups, granularity) for one in without
        )
        if len(self.boxes.accesses) + len(without) == len(self.listed):
            alone = sum(one.share * one.count_largest(granularity) for one in self.listed)
            found = min(found, alone * work_groups)
        return min(found, self.listed[0].count_buffer(granularity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Accesses to data that any work-group may have touched before."""

    accesses: tuple[ListedAccess, ...]
    """Addresses depend on data and mix."""
    work_groups: int

    def count_repeated(self, granularity: int) -> float:
        """Give the bytes that a work-group touches and another one as well, whole launch."""
        return granularity * sum(
            one.count_group(granularity) * self.work_groups
            - one.count_stretch(self.work_groups, granularity)
            for one in self.accesses
        )

    def share_touched(self, work_groups: float, granularity: int) -> float:
        """Give the share of all that scattered accesses touch that so many work-groups touch."""
        if work_groups < 1:
            return work_groups * self.share_touched(1, granularity)
        every = sum(one.count_stretch(self.work_groups, granularity) for one in self.accesses)
        own = sum(one.count_stretch(work_groups, granularity) for one in self.accesses)
        return min(1.0, own / every)


def share_windows(
    listed: Sequence[ListedAccess],
    costs: Sequence[FamilyCosts],
    grid: Grid,
    machine: GpuMachine,
) -> list[FamilyCosts]:
    """Let accesses that lead all work-groups to the same part of a buffer count as common.

    Parameters
    ----------
    listed : sequence of ListedAccess
        Loads.
    costs : sequence of FamilyCosts
        Of all loads, those of the listed ones last.

    Returns
    -------
    list of FamilyCosts
        Each of the accesses to such a part has its share of it.
    """
    found = list(costs)
    first = len(costs) - len(listed)
    for name in {one.access.buffer for one in listed}:
        places = [n for n, one in enumerate(listed) if one.access.buffer == name]
        hulls = [listed[place].hull for place in places]
        windows = tuple(one for one in hulls if one is not None and not any(one.group_strides))
        if len(windows) < len(places):
            continue
        touched = BoxFootprint(accesses=windows, grid=grid)
        lines, sectors = (
            touched.count_run(1, unit) / unit / len(places)
            for unit in (machine.l1_line_bytes, machine.l1_sector_bytes)
        )
        for place in places:
            own = found[first + place]
            found[first + place] = replace(
                own, is_common=True, lines=(*own.lines[:-1], lines),
                sectors=(*own.sectors[:-1], sectors),
            )  # fmt: skip
    return found


def divide_by_buffer(
    boxes: Sequence[BoxAccess], listed: Sequence[ListedAccess], grid: Grid
) -> tuple[Footprint, ...]:
    """Divide accesses by their buffers: what is no box may touch what boxes of it touch."""
    names = {one.access.buffer for one in listed}
    buffers = []
    by_name = sorted(listed, key=lambda one: one.access.buffer or "")
    for name, members in groupby(by_name, key=lambda one: one.access.buffer):
        own = tuple(members)
        around = [one.hull for one in own if one.hull is not None]
        exact = [one for one in boxes if one.access.buffer == name]
        footprint = BoxFootprint(accesses=(*exact, *around), grid=grid)
        buffers.append(BufferFootprint(listed=own, boxes=footprint, work_groups=grid.work_groups))
    rest = tuple(one for one in boxes if one.access.buffer not in names)
    return (BoxFootprint(accesses=rest, grid=grid), *buffers)
