"""Which limits belong to an OpenCL device."""

from kernelcast.sampling.occupancy.amd import find_amd_limits
from kernelcast.sampling.occupancy.intel_gpu import find_intel_limits
from kernelcast.sampling.occupancy.limits import DeviceLimits
from kernelcast.sampling.occupancy.nvidia import NVIDIA_LIMITS


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
    ComputeUnitLimits, AmdLimits, IntelLimits or None
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
