"""P_sat by the vendors' occupancy rules, from what compiler and driver tell of a kernel."""

import re

from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.building import build_program, read_build_log
from kernelcast.sampling.occupancy import (
    CompiledResources,
    KernelResources,
    OccupancyResult,
    compute_p_sat,
    find_limits,
    parse_build_log,
)
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

_VERBOSE_OPTION = "-cl-nv-verbose"
_BARRIER = re.compile(r"\bbarrier\s*\(")


def compute_for_kernel(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> OccupancyResult | None:
    """Compute P_sat where the device's limits are published.

    Returns
    -------
    OccupancyResult or None
        None for CPUs and unknown devices.

    Raises
    ------
    DeviceLimitError
        If not even one work-group fits a compute unit.
    """
    capability = _compute_capability(session.device)
    description = session.description
    limits = find_limits(session.device.platform.vendor, description.name, capability)
    if limits is None:
        return None
    registers = _read_registers(session, kernel) if capability else None
    info = cl.kernel_work_group_info
    resources = KernelResources(
        work_group_size=ndrange.work_group_size,
        registers_per_work_item=registers.registers_per_work_item if registers else None,
        local_memory_bytes=compiled.get_work_group_info(info.LOCAL_MEM_SIZE, session.device),
        sub_group_size=None
        if capability
        else compiled.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, session.device),
        uses_barriers=bool(_BARRIER.search(kernel.source)),
    )
    return compute_p_sat(limits, resources)


def _read_registers(session: DeviceSession, kernel: Kernel) -> CompiledResources | None:
    """Build once more with the compiler's statistics on; a comment forces a miss of its cache."""
    source = f"// statistics of {kernel.digest}\n{kernel.source}"
    program = build_program(
        session.context, session.device, source, (*kernel.build_options, _VERBOSE_OPTION)
    )
    return parse_build_log(read_build_log(program, session.device), kernel.name)


def _compute_capability(device: cl.Device) -> tuple[int, int] | None:
    """Give NVIDIA's compute capability, also of devices that PoCL drives through CUDA."""
    if "cl_nv_device_attribute_query" not in device.extensions:
        return None
    return int(device.compute_capability_major_nv), int(device.compute_capability_minor_nv)
