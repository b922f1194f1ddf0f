"""Which concurrency to measure: work-items per compute unit, from one warp to a full unit."""

from dataclasses import dataclass

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.sampling.microbenchmarks.effort import Effort

_RUNS_OF_A_THREAD = 8
"""Work-groups per thread of a CPU device, so that two threads end together."""
_MOST_WARPS = 64
"""Warps that a compute unit of any known GPU can hold at most."""
_CPU_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CPU_SIZES_QUICK = (1, 16, 64)
_CPU_SIZES_NORMAL = (1, 4, 16, 64, 256)
_WARPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_WARPS_QUICK = (1, 4, 8, 16, 32, 64)
_WARPS_NORMAL = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyPoint:
    """A launch that keeps so many work-items active on every compute unit.

    Parameters
    ----------
    local_size : int
        Work-items of a work-group.
    groups_per_unit : int
        Work-groups active at once on a compute unit: the paper's concWG.
    runs : int
        Times that a compute unit is filled: the paper's runsCU.
    local_bytes : int
        Local memory per work-group that admits no more of them at once: equation 2.
    warp_width : int
        Work-items that are issued together; 1 on CPUs.
    """

    local_size: int
    groups_per_unit: int = 1
    runs: int = 1
    local_bytes: int = 1
    warp_width: int = 1

    @property
    def work_items_per_unit(self) -> int:
        """Concurrent work-items on a compute unit."""
        return self.local_size * self.groups_per_unit

    def global_size(self, units: int) -> int:
        """Give the work-items of the launch on so many compute units."""
        return self.work_items_per_unit * self.runs * units


def plan_points(
    device: DeviceDescription, effort: Effort, *, warp_width: int
) -> tuple[OccupancyPoint, ...]:
    """Plan the points of a roofline.

    A thread of a CPU device runs one work-group at a time, so the work-group's size is the
    concurrency. On a GPU, launches of one run start as many work-groups as shall be active on
    each compute unit, and local memory keeps a unit from taking another one's.
    """
    if device.kind is DeviceKind.CPU:
        sizes = effort.pick(quick=_CPU_SIZES_QUICK, normal=_CPU_SIZES_NORMAL, full=_CPU_SIZES)
        return tuple(
            OccupancyPoint(local_size=size, runs=_RUNS_OF_A_THREAD)
            for size in sizes
            if size <= device.max_work_group_size
        )
    warps = effort.pick(quick=_WARPS_QUICK, normal=_WARPS_NORMAL, full=_WARPS)
    return tuple(_split(device, count, warp_width) for count in warps if count <= _MOST_WARPS)


def _split(device: DeviceDescription, warps: int, warp_width: int) -> OccupancyPoint:
    """Split warps into as few equal work-groups as the device allows."""
    groups = next(
        number
        for number in range(1, warps + 1)
        if warps % number == 0
        and (warps // number * warp_width <= device.max_work_group_size or number == warps)
    )
    return OccupancyPoint(
        local_size=min(warps // groups * warp_width, device.max_work_group_size),
        groups_per_unit=groups,
        local_bytes=max(1, device.local_memory_bytes // groups),
        warp_width=warp_width,
    )
