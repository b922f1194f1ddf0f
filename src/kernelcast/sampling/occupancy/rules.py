"""Which limits belong to a device, and how many work-groups they let be active: P_sat."""

from typing import TypeAlias, assert_never

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy.amd import AmdLimits, count_amd_groups, find_amd_limits
from kernelcast.sampling.occupancy.intel_gpu import (
    IntelLimits,
    count_intel_groups,
    find_intel_limits,
)
from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS, NvidiaLimits, count_nvidia_groups
from kernelcast.sampling.occupancy.resources import (
    GroupCounts,
    KernelResources,
    Limiter,
    OccupancyResult,
)

DeviceLimits: TypeAlias = NvidiaLimits | AmdLimits | IntelLimits
_ADVICE = {
    Limiter.WORK_GROUPS: "give a smaller local size",
    Limiter.WARPS: "give a smaller local size",
    Limiter.REGISTERS: "give a smaller local size or build the kernel with fewer registers",
    Limiter.LOCAL_MEMORY: "use less local memory",
}


def find_limits(
    platform_vendor: str, device_name: str, compute_capability: tuple[int, int] | None = None
) -> DeviceLimits | None:
    """Find what one compute unit of a device can hold.

    Parameters
    ----------
    platform_vendor, device_name : str
        As OpenCL reports them (``CL_PLATFORM_VENDOR``, ``CL_DEVICE_NAME``).
    compute_capability : tuple of (int, int) or None
        Major and minor number, where the device offers ``cl_nv_device_attribute_query``.

    Returns
    -------
    NvidiaLimits, AmdLimits, IntelLimits or None
        None for processors and for devices that no table here knows; their P_sat is measured.

    Notes
    -----
    A compute capability decides whatever the platform is (PoCL drives NVIDIA devices too). Mesa's
    platform is left to measurement: it counts compute units in its own way.

    Examples
    --------
    >>> find_limits("NVIDIA Corporation", "NVIDIA A100-SXM4-40GB", (8, 0)).max_warps
    64
    >>> find_limits("Intel(R) Corporation", "Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz") is None
    True
    """
    if compute_capability is not None:
        return NVIDIA_LIMITS.get(compute_capability)
    vendor = platform_vendor.strip().lower()
    if vendor.startswith(("advanced micro devices", "amd")):
        return find_amd_limits(device_name)
    if vendor.startswith("intel"):
        return find_intel_limits(device_name)
    return None


def compute_p_sat(limits: DeviceLimits, resources: KernelResources) -> OccupancyResult:
    """Compute the saturation point of a launch from what its work-groups ask for.

    ``p_sat = min(work-groups that fit by slots, warps, registers, local memory)`` and
    ``occupancy = p_sat * warps_per_group / max_warps``; a limiter whose demand is unknown is
    skipped and named in the result.

    Parameters
    ----------
    limits : NvidiaLimits, AmdLimits or IntelLimits
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
    limiter = next(kind for kind, count in counts.by_limiter if count == p_sat)
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
        compute_units_sharing=limits.compute_units_sharing,
    )


def _count_groups(limits: DeviceLimits, resources: KernelResources) -> GroupCounts:
    match limits:
        case NvidiaLimits():
            return count_nvidia_groups(limits, resources)
        case AmdLimits():
            return count_amd_groups(limits, resources)
        case IntelLimits():
            return count_intel_groups(limits, resources)
        case _:
            assert_never(limits)
