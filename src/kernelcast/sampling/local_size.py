"""What local size a device chooses where the caller leaves the choice to it."""

import math
from dataclasses import replace

import numpy as np

from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.building import build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

_SOURCE = """
kernel void kc_local_size(global uint *chosen)
{
    if (get_global_id(0) == get_global_offset(0) && get_global_id(1) == get_global_offset(1)
        && get_global_id(2) == get_global_offset(2))
        for (uint axis = 0; axis < 3; ++axis)
            chosen[axis] = get_local_size(axis);
}
"""


def choose_local_size(session: DeviceSession, compiled: cl.Kernel, ndrange: NDRange) -> NDRange:
    """Fix the local size: as given, as the kernel requires, else as the driver chooses.

    The driver's choice is read off a kernel that does nothing over the same global size.
    """
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
        local_size = _read_choice(session, ndrange)
        session.chosen_local_sizes[ndrange.global_size] = local_size
    if any(size < 1 for size in local_size) or math.prod(local_size) > most:
        msg = (
            f"{session.description.id}: the driver chose local size {local_size} where at most "
            f"{most} work-items are allowed; give a local_size"
        )
        raise DeviceLimitError(msg)
    return replace(ndrange, local_size=local_size)


def _read_choice(session: DeviceSession, ndrange: NDRange) -> tuple[int, ...]:
    program = build_program(session.context, session.device, _SOURCE, ())
    kernel = cl.Kernel(program, "kc_local_size")
    chosen = np.zeros(3, dtype=np.uint32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(session.context, flags, hostbuf=chosen)
    kernel.set_args(buffer)
    cl.enqueue_nd_range_kernel(session.queue, kernel, ndrange.global_size, None)
    cl.enqueue_copy(session.queue, chosen, buffer)
    session.queue.finish()
    return tuple(int(size) for size in chosen[: ndrange.dimensions])
