"""Checks index spaces against what a device and a compiled kernel allow."""

import re

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

# Build options that choose OpenCL C 2.0 or later.
_MODERN_LANGUAGE = re.compile(r"-cl-std=CL[23]\.\d")


def check_launch(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> None:
    """Check an index space against the device and the compiled kernel."""
    device = session.description
    local = ndrange.known_local_size
    for axis, (size, most) in enumerate(zip(local, device.max_work_item_sizes, strict=False)):
        if size > most:
            msg = f"{device.id}: axis {axis}: local size {size} exceeds the device's {most}"
            raise DeviceLimitError(msg)
    # The kernel's own limit (WORK_GROUP_SIZE) is left to the driver: rusticl's says 32 and then
    # runs 1,024.
    if ndrange.work_group_size > device.max_work_group_size:
        msg = (
            f"{device.id}: local size {local} makes work-groups of {ndrange.work_group_size} "
            f"work-items; the device allows at most {device.max_work_group_size}"
        )
        raise DeviceLimitError(msg)
    required, local_bytes = session.ask_limits(compiled, kernel)
    if any(required) and required[: len(local)] != local:
        msg = (
            f"{device.id}: local size {local} given, kernel {kernel.name} requires "
            f"{required[: len(local)]} (reqd_work_group_size); give that one or none"
        )
        raise DeviceLimitError(msg)
    if local_bytes > device.local_memory_bytes:
        msg = (
            f"{device.id}: kernel {kernel.name} declares {local_bytes:,} bytes of local memory, a "
            f"compute unit has {device.local_memory_bytes:,}"
        )
        raise DeviceLimitError(msg)
    _check_remainder(device, kernel, ndrange)


def _check_remainder(device: DeviceDescription, kernel: Kernel, ndrange: NDRange) -> None:
    """Refuse a smaller last work-group where device or language version has none."""
    if ndrange.is_uniform:
        return
    is_allowed = any(_MODERN_LANGUAGE.fullmatch(option) for option in kernel.build_options)
    if device.has_non_uniform_work_groups and is_allowed:
        return
    why = (
        "the device has no non-uniform work-groups"
        if not device.has_non_uniform_work_groups
        else "OpenCL C before 2.0 has no non-uniform work-groups (build with -cl-std=CL2.0)"
    )
    for axis, (size, local) in enumerate(
        zip(ndrange.global_size, ndrange.known_local_size, strict=True)
    ):
        if size % local:
            padded = -(-size // local) * local
            msg = (
                f"{device.id}: axis {axis}: local size {local} does not divide global size "
                f"{size}, and {why}; pad the global size to {padded} and guard the kernel"
            )
            raise DeviceLimitError(msg)
