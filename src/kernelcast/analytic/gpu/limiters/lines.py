"""Lines of the L1 cache that a warp's loads look up."""

from kernelcast.analytic.gpu.limiters.demands import SECTOR_BYTES
from kernelcast.analytic.gpu.limiters.lanes import (
    bind_lanes,
    count_different,
    find_offsets,
    list_warp,
)
from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.records.accesses import AccessKind
from kernelcast.records.modelled_launch import ModelledLaunch
from kernelcast.records.operations import MemorySpace

_LINE_BYTES = 128
_WORK_GROUPS = 4
"""Neighbours whose alignments differ where a work-group is narrower than a line."""
_MOST_LOADS = 32
"""Beyond these the mean of a kernel hardly changes, and the estimate's own time counts."""


def count_lines(launch: ModelledLaunch, volumes: GpuVolumes, warp_width: int) -> float:
    """Count the lines that the loads of a warp look up, each instruction for itself.

    Parameters
    ----------
    launch : ModelledLaunch
        Its loads count.
    volumes : GpuVolumes
        Of that launch: how often the loads are executed, and how many sectors they ask for where
        no address is known.
    warp_width : int
        Work-items that load together.

    Returns
    -------
    float
        Per warp, all loads and their iterations.
    """
    loads = [
        one
        for one in launch.accesses
        if one.kind is AccessKind.LOAD and one.space is not MemorySpace.LOCAL
    ]
    step = max(1, -(-len(loads) // _MOST_LOADS))
    ids = bind_lanes(launch, list_warp(launch, warp_width), _WORK_GROUPS)
    known = [
        count_different(offsets // _LINE_BYTES)
        for one in loads[::step]
        if (offsets := find_offsets(one, ids)) is not None
    ]
    warps = volumes.occupancy.warps_per_work_group
    sectors = volumes.l1.requested_bytes / SECTOR_BYTES / warps
    if not known:
        return sectors
    return min(sum(known) / len(known) * volumes.l1.load_requests, sectors)
