"""Finds P_sat: computed from known resources and limits of a device, or measured."""

import math
import os
import re
from contextlib import suppress
from typing import Any

import numpy as np

from kernelcast.records.device import DeviceKind, SaturationPoint, Trait, TraitSource
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.occupancy import Limiter, compute_p_sat, find_limits
from kernelcast.sampling.compiler_facts import read_compiler_statistics
from kernelcast.sampling.device_check import SETTLING, TRIAL_LOCAL_SIZE
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.session import DeviceSession

_PROBE_SOURCE = """
kernel void kc_probe(global volatile int *counters, global float *sink, int steps,
                     local uchar *ballast)
{
    if (get_local_id(0) == 0) {
        ballast[0] = 1;
        atomic_inc(&counters[0]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float x = (float)get_global_id(0);
    for (int i = 0; i < steps; ++i)
        x = x * 0.999f + 0.5f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_max(&counters[1], counters[0]);
        atomic_dec(&counters[0]);
    }
    if (x == -1.0f)
        *sink = x + ballast[0];
}
"""
_BARRIER = re.compile(r"\bbarrier\s*\(")


def find_saturation(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    """Find P_sat of one kernel, its arguments set, at one local size: 1 on CPUs, the driver's word
    on CUDA devices, by occupancy rules where limits are published, else measured."""
    known, key = session.saturation_points, (kernel.digest, ndrange.known_local_size)
    if key not in known:
        known[key] = _find_saturation(session, compiled, kernel, ndrange)
    return known[key]


def _find_saturation(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    units = session.description.compute_units
    if session.description.kind is DeviceKind.CPU:
        # A thread of the processor runs one work-group, whatever that needs.
        threads = min(units, os.cpu_count() or 1)
        p_sat = Trait(value=1, source=TraitSource.COMPUTED)
        return SaturationPoint(p_sat=p_sat, concurrency=threads, computed=1)
    # Count a probe's work-groups that are active together; registers count for none.
    info: Any = cl.kernel_work_group_info.LOCAL_MEM_SIZE  # pyopencl types answers as object
    local_bytes = compiled.get_work_group_info(info, session.device)
    local_size = ndrange.work_group_size
    # Enough work-groups to fill the device, whatever it holds at once: 80 a unit on RDNA 1.
    groups = min(16384, session.description.compute_units * 96)
    steps = max(16, session.trial.steps // SETTLING * TRIAL_LOCAL_SIZE // local_size)
    probe = cl.Kernel(session.program(_PROBE_SOURCE, ()), "kc_probe")
    flags = cl.mem_flags.READ_WRITE
    buffers = [cl.Buffer(session.context, flags, size=size) for size in (8, 4)]
    ballast: Any = cl.LocalMemory(max(1, local_bytes))  # left out of pyopencl's types
    probe.set_args(*buffers, np.int32(steps), ballast)
    counted = 1
    for _ in range(2):
        counters = np.zeros(2, dtype=np.int32)
        cl.enqueue_copy(session.queue, buffers[0], counters)
        cl.enqueue_nd_range_kernel(session.queue, probe, (groups * local_size,), (local_size,))
        cl.enqueue_copy(session.queue, counters, buffers[0])
        counted = max(counted, int(counters[1]))
    measured = max(1, math.ceil(counted / units))
    computed: tuple[int, int, Limiter] | None = None
    if isinstance(compiled, OtherDriver):
        # What the rules say is only told beside it.
        asked: Any = compiled
        reported: int = asked.count_active_work_groups(ndrange.work_group_size)
        if reported == 0:
            raise DeviceLimitError(
                f"{session.description.id}: a work-group of {ndrange.work_group_size} work-items "
                f"of kernel {kernel.name} does not fit into an empty compute unit; give a smaller "
                "local size"
            )
        with suppress(DeviceLimitError):
            computed = compute_for_kernel(session, compiled, kernel, ndrange)
        p_sat = Trait(value=reported, source=TraitSource.REPORTED)
        concurrency = reported * units
    elif computed := compute_for_kernel(session, compiled, kernel, ndrange):
        p_sat = Trait(value=computed[0], source=TraitSource.COMPUTED)
        concurrency = computed[1]
    else:
        p_sat, concurrency = Trait(value=measured, source=TraitSource.MEASURED), counted
    return SaturationPoint(
        p_sat=p_sat,
        concurrency=concurrency,
        computed=computed[0] if computed else None,
        measured=measured,
        limiter=computed[2] if computed else None,
    )


def compute_for_kernel(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> tuple[int, int, Limiter] | None:
    """Compute P_sat, active work-groups and limiter where the device's limits are published."""
    device, description = session.device, session.description
    capability = None
    if "cl_nv_device_attribute_query" in device.extensions:  # PoCL's that it drives by CUDA too
        capability = (
            int(device.compute_capability_major_nv),
            int(device.compute_capability_minor_nv),
        )
    limits = find_limits(device.platform.vendor, description.name, capability)
    if limits is None:
        return None
    info: Any = cl.kernel_work_group_info  # pyopencl types every answer as object
    told = read_compiler_statistics(session, kernel)
    preferred = info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE
    p_sat, limiter = compute_p_sat(
        limits,
        work_group_size=ndrange.work_group_size,
        local_memory_bytes=compiled.get_work_group_info(info.LOCAL_MEM_SIZE, device),
        sub_group_size=None
        if capability
        else told.get("wavefront_size") or compiled.get_work_group_info(preferred, device),
        uses_barriers=bool(_BARRIER.search(kernel.source)),
        registers_per_work_item=told.get("registers_per_work_item"),
        scalar_registers_per_sub_group=told.get("scalar_registers_per_sub_group"),
    )
    # Intel's driver counts EUs, several of which make up the unit.
    units = max(1, description.compute_units // limits.compute_units_sharing)
    return p_sat, p_sat * units, limiter
