"""What index spaces a device and a compiled kernel allow, and which local size they choose."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import read_source
from kernelcast.sampling.building import build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

# Build options that choose OpenCL C 2.0 or later.
_MODERN_LANGUAGE = re.compile(r"-cl-std=CL[23]\.\d")


def check_memory(
    device: DeviceDescription, arguments: Sequence[Argument], declared_bytes: int = 0
) -> None:
    """Refuse arguments, and declared local memory, that a device has no room for."""
    buffers = {
        index: one.bytes for index, one in enumerate(arguments) if isinstance(one, BufferArgument)
    }
    for index, size_bytes in buffers.items():
        if size_bytes > device.max_allocation_bytes:
            raise DeviceLimitError(
                f"{device.id}: argument {index} is a buffer of {size_bytes:,} bytes, the device's "
                f"largest is {device.max_allocation_bytes:,}; give a smaller problem"
            )
    if sum(buffers.values()) > device.global_memory_bytes:
        raise DeviceLimitError(
            f"{device.id}: the buffers take {sum(buffers.values()):,} bytes together, the device "
            f"has {device.global_memory_bytes:,}; give a smaller problem"
        )
    local_bytes = sum(one.bytes for one in arguments if isinstance(one, LocalArgument))
    if local_bytes + declared_bytes > device.local_memory_bytes:
        raise DeviceLimitError(
            f"{device.id}: local memory would take {local_bytes + declared_bytes:,} bytes, a "
            f"compute unit has {device.local_memory_bytes:,}"
        )


def check_launch(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> None:
    device, local = session.description, ndrange.known_local_size
    required, local_bytes = session.ask_limits(compiled, kernel)
    if any(required) and required[: len(local)] != local:
        raise DeviceLimitError(
            f"{device.id}: local size {local} given, kernel {kernel.name} requires "
            f"{required[: len(local)]} (reqd_work_group_size); give that one or none"
        )
    check_memory(device, (), local_bytes)
    check_sizes(device, kernel, ndrange)


def check_sizes(device: DeviceDescription, kernel: Kernel, ndrange: NDRange) -> None:
    """Refuse work-groups that no kernel of a device can have."""
    local = ndrange.known_local_size
    for axis, (size, most) in enumerate(zip(local, device.max_work_item_sizes, strict=False)):
        if size > most:
            msg = f"{device.id}: axis {axis}: local size {size} exceeds the device's {most}"
            raise DeviceLimitError(msg)
    # The kernel's own limit (WORK_GROUP_SIZE) is left to the driver: rusticl's says 32 and then
    # runs 1,024.
    if ndrange.work_group_size > device.max_work_group_size:
        raise DeviceLimitError(
            f"{device.id}: local size {local} makes work-groups of {ndrange.work_group_size} "
            f"work-items; the device allows at most {device.max_work_group_size}"
        )
    is_allowed = any(_MODERN_LANGUAGE.fullmatch(option) for option in kernel.build_options)
    if ndrange.is_uniform or (device.has_non_uniform_work_groups and is_allowed):
        return
    why = (
        "the device has no non-uniform work-groups"
        if not device.has_non_uniform_work_groups
        else "OpenCL C before 2.0 has no non-uniform work-groups (build with -cl-std=CL2.0)"
    )
    for axis, (size, each) in enumerate(zip(ndrange.global_size, local, strict=True)):
        if size % each:
            raise DeviceLimitError(
                f"{device.id}: axis {axis}: local size {each} does not divide global size {size}, "
                f"and {why}; pad the global size to {-(-size // each) * each} and guard the kernel"
            )


def choose_local_size(session: DeviceSession, compiled: cl.Kernel, ndrange: NDRange) -> NDRange:
    """Fix the local size: as given, as the kernel requires, else as the driver chooses."""
    if ndrange.local_size is not None:
        return ndrange
    required = tuple(
        compiled.get_work_group_info(
            cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, session.device
        )
    )
    if any(required):
        return replace(ndrange, local_size=required[: ndrange.dimensions])
    most = session.description.max_work_group_size
    local_size = session.chosen_local_sizes.get(ndrange.global_size)
    if local_size is None:
        source = read_source("local_size.cl")
        program = build_program(session.context, session.device, source, ())
        kernel = cl.Kernel(program, "kc_local_size")
        chosen = np.zeros(3, dtype=np.uint32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(session.context, flags, hostbuf=chosen)
        kernel.set_args(buffer)
        cl.enqueue_nd_range_kernel(session.queue, kernel, ndrange.global_size, None)
        cl.enqueue_copy(session.queue, chosen, buffer)
        session.queue.finish()
        local_size = tuple(int(size) for size in chosen[: ndrange.dimensions])
        session.chosen_local_sizes[ndrange.global_size] = local_size
    if any(size < 1 for size in local_size) or math.prod(local_size) > most:
        raise DeviceLimitError(
            f"{session.description.id}: the driver chose local size {local_size} where at most "
            f"{most} work-items are allowed; give a local_size"
        )
    return replace(ndrange, local_size=local_size)
