"""P_sat: how many work-groups are active at once on one compute unit."""

import math
import os

from kernelcast.records.device import DeviceKind, SaturationPoint
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.compiled_resources import compute_for_kernel
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.probes import PROBE_LOCAL_SIZE
from kernelcast.sampling.session import DeviceSession

# Enough work-groups to fill the device, whatever it holds at once.
_GROUPS_PER_COMPUTE_UNIT = {DeviceKind.GPU: 48}
_DEFAULT_GROUPS_PER_COMPUTE_UNIT = 16
_MOST_GROUPS = 4096
_REPEATS = 2


def find_saturation(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    """Find P_sat for one kernel at one local size.

    On a GPU whose limits are published the value follows from the occupancy rules; elsewhere it
    is measured. Both are reported where both exist.

    Parameters
    ----------
    compiled : pyopencl.Kernel
        The kernel with its arguments set, for its resources.
    """
    key = (kernel.digest, ndrange.known_local_size)
    found = session.saturation_points.get(key)
    if found is None:
        found = _find(session, compiled, kernel, ndrange)
        session.saturation_points[key] = found
    return found


def _find(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    compute_units = session.description.compute_units
    concurrency = measure_concurrency(session, compiled, ndrange)
    measured = max(1, math.ceil(concurrency / compute_units))
    saturated_from = session.behaviour.saturated_from
    computed = compute_for_kernel(session, compiled, kernel, ndrange)
    if computed is None:
        return SaturationPoint(
            p_sat=Trait(value=measured, source=TraitSource.MEASURED),
            concurrency=concurrency,
            saturated_from=saturated_from,
            measured=measured,
        )
    return SaturationPoint(
        p_sat=Trait(value=computed.p_sat, source=TraitSource.COMPUTED),
        concurrency=computed.count_active_work_groups(compute_units),
        saturated_from=saturated_from,
        computed=computed.p_sat,
        measured=measured,
        limiter=computed.limiter,
    )


def measure_concurrency(session: DeviceSession, compiled: cl.Kernel, ndrange: NDRange) -> int:
    """Count the work-groups that are active together on the whole device.

    The probe has the kernel's local size and local memory, but not its registers: on a GPU the
    result is an upper bound.
    """
    local_bytes = compiled.get_work_group_info(
        cl.kernel_work_group_info.LOCAL_MEM_SIZE, session.device
    )
    local_size = ndrange.work_group_size
    per_unit = _GROUPS_PER_COMPUTE_UNIT.get(
        session.description.kind, _DEFAULT_GROUPS_PER_COMPUTE_UNIT
    )
    groups = min(_MOST_GROUPS, session.description.compute_units * per_unit)
    steps = max(16, session.behaviour.settle_steps * PROBE_LOCAL_SIZE // local_size)
    counted = [
        session.probe.run(
            (groups,), steps=steps, local_size=local_size, local_bytes=local_bytes
        ).concurrency
        for _ in range(_REPEATS)
    ]
    # A CPU with a noisy neighbour may run one thread only while we look.
    least = min(session.description.compute_units, os.cpu_count() or 1)
    is_cpu = session.description.kind is DeviceKind.CPU
    return max(1, least if is_cpu else 1, *counted)
