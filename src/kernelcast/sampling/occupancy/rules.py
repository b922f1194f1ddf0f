"""P_sat: how many work-groups of a launch are active at once per compute unit."""

from typing import assert_never

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy.amd import count_amd_groups
from kernelcast.sampling.occupancy.intel_gpu import count_intel_groups
from kernelcast.sampling.occupancy.limits import (
    AmdLimits,
    ComputeUnitLimits,
    DeviceLimits,
    IntelLimits,
)
from kernelcast.sampling.occupancy.nvidia import count_nvidia_groups
from kernelcast.sampling.occupancy.resources import (
    GroupCounts,
    KernelResources,
    Limiter,
    OccupancyResult,
)

_ADVICE = {
    Limiter.WORK_GROUPS: "give a smaller local size",
    Limiter.WARPS: "give a smaller local size",
    Limiter.REGISTERS: "give a smaller local size or build the kernel with fewer registers",
    Limiter.LOCAL_MEMORY: "use less local memory",
}


def compute_p_sat(limits: DeviceLimits, resources: KernelResources) -> OccupancyResult:
    """Compute the saturation point of a launch from what its work-groups ask for.

    ``p_sat = min(work-groups that fit by slots, warps, registers, local memory)`` and
    ``occupancy = p_sat * warps_per_group / max_warps``; a limiter whose demand is unknown is
    skipped and named in the result.

    Parameters
    ----------
    limits : ComputeUnitLimits, AmdLimits or IntelLimits
        From `find_limits`.

    Raises
    ------
    DeviceLimitError
        If not even one work-group fits.

    Examples
    --------
    The GTX 580 (compute capability 2.0) holds 48 warps: six work-groups of 256 work-items.

    >>> from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS
    >>> result = compute_p_sat(NVIDIA_LIMITS[2, 0], KernelResources(work_group_size=256))
    >>> result.p_sat, result.occupancy, result.assumed
    (6, 1.0, ('registers_per_work_item',))
    """
    counts = _count_groups(limits, resources)
    p_sat = min(count for _, count in counts.by_limiter)
    limiter, *ties = (kind for kind, count in counts.by_limiter if count == p_sat)
    if p_sat == 0:
        registers = resources.registers_per_work_item
        msg = (
            f"{limits.name}: a work-group of {resources.work_group_size} work-items with "
            f"{'unknown' if registers is None else registers} registers each and "
            f"{resources.local_memory_bytes} bytes of local memory does not fit into an empty "
            f"compute unit, limited by {limiter.value}; {_ADVICE[limiter]}"
        )
        raise DeviceLimitError(msg)
    return OccupancyResult(
        p_sat=p_sat,
        limiter=limiter,
        occupancy=p_sat * counts.warps_per_group / counts.max_warps,
        assumed=counts.assumed,
        also_limiting=tuple(ties),
        compute_units_sharing=limits.compute_units_sharing,
    )


def _count_groups(limits: DeviceLimits, resources: KernelResources) -> GroupCounts:
    match limits:
        case ComputeUnitLimits():
            return count_nvidia_groups(limits, resources)
        case AmdLimits():
            return count_amd_groups(limits, resources)
        case IntelLimits():
            return count_intel_groups(limits, resources)
        case _:
            assert_never(limits)
