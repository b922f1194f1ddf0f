"""Finds P_sat: computed from known resources and limits of a device, or measured."""

import math
import os
import re
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from kernelcast.records.device import DeviceKind, SaturationPoint
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.amd_code_object import CodeObjectFacts, parse_code_object
from kernelcast.sampling.building import build_program, read_binary, read_build_log
from kernelcast.sampling.occupancy import (
    CompiledResources,
    KernelResources,
    OccupancyResult,
    compute_p_sat,
    find_limits,
    parse_build_log,
)
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.probes import PROBE_LOCAL_SIZE
from kernelcast.sampling.session import DeviceSession

_VERBOSE_OPTION = "-cl-nv-verbose"
_VERBOSE_EXTENSION = "cl_nv_compiler_options"
_CODE_OBJECT_EXTENSION = "cl_amd_device_attribute_query"
_BARRIER = re.compile(r"\bbarrier\s*\(")
# Registers do not depend on the local size: one more build per kernel and session is enough.
_statistics: WeakKeyDictionary[DeviceSession, dict[str, CompiledResources | None]] = (
    WeakKeyDictionary()
)


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
    info = cl.kernel_work_group_info
    resources = KernelResources(
        work_group_size=ndrange.work_group_size,
        local_memory_bytes=compiled.get_work_group_info(info.LOCAL_MEM_SIZE, session.device),
        sub_group_size=None
        if capability
        else compiled.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, session.device),
        uses_barriers=bool(_BARRIER.search(kernel.source)),
    )
    statistics, code = read_compiler_statistics(session, kernel), read_code_object(session, kernel)
    if statistics is not None:
        resources = replace(resources, registers_per_work_item=statistics.registers_per_work_item)
    elif code is not None:
        resources = replace(
            resources,
            registers_per_work_item=code.vector_registers,
            scalar_registers_per_sub_group=code.scalar_registers,
            sub_group_size=code.wavefront_size,
        )
    return compute_p_sat(limits, resources)


def read_compiler_statistics(session: DeviceSession, kernel: Kernel) -> CompiledResources | None:
    """Build once more with the compiler's statistics on, and read them from the build log.

    Returns
    -------
    CompiledResources or None
        None where the device's compiler has no such option, or does not answer as expected.
    """
    if isinstance(session.device, OtherDriver):
        # The driver of CUDA tells it of the code that runs, but not what of its stack is spilled.
        asked: Any = session.whole_kernel(kernel).kernel
        return CompiledResources(
            registers_per_work_item=asked.ask("NUM_REGS"),
            local_memory_bytes=asked.ask("SHARED_SIZE_BYTES"),
            stack_frame_bytes=asked.ask("LOCAL_SIZE_BYTES"),
            spill_store_bytes=0,
            spill_load_bytes=0,
            uses_barriers=None,
        )
    if _VERBOSE_EXTENSION not in session.description.extensions:
        return None  # other compilers refuse the option
    known = _statistics.setdefault(session, {})
    if kernel.digest not in known:
        program = build_program(
            session.context,
            session.device,
            make_unique(kernel.source, secrets.token_hex(8)),
            (*kernel.build_options, _VERBOSE_OPTION),
        )
        log = read_build_log(program, session.device)
        known[kernel.digest] = parse_build_log(log, kernel.name)
    return known[kernel.digest]


def read_code_object(session: DeviceSession, kernel: Kernel) -> CodeObjectFacts | None:
    """Read what AMD's compiler wrote into the program's binary.

    Returns
    -------
    CodeObjectFacts or None
        None on other devices, and where the binary does not tell.
    """
    if _CODE_OBJECT_EXTENSION not in session.description.extensions:
        return None
    binary = read_binary(session.whole_kernel(kernel).program, session.device)
    return parse_code_object(binary, kernel.name)


def make_unique(source: str, token: str) -> str:
    """Add an empty kernel of a new name, so that no cache of the compiler knows the source.

    NVIDIA's driver takes what it built before from a cache on disk, and then gives an empty log.
    Comments and macros are gone before PTX is written, and unused constants may be: a cache that
    goes by the PTX would not notice them. A kernel can be asked for by its name, so it stays. Its
    name is new at every build: a fixed one would be found in the cache the second time.

    Examples
    --------
    >>> print(make_unique("kernel void k() {}", "5eed"))
    kernel void k() {}
    <BLANKLINE>
    kernel void kc_unique_5eed(void) {}
    <BLANKLINE>
    """
    # at the end, so that lines keep their numbers; after two line ends, as a source may end in a
    # comment or in a backslash
    return f"{source}\n\nkernel void kc_unique_{token}(void) {{}}\n"


def _compute_capability(device: cl.Device) -> tuple[int, int] | None:
    """Give NVIDIA's compute capability, also of devices that PoCL drives through CUDA."""
    if "cl_nv_device_attribute_query" not in device.extensions:
        return None
    return int(device.compute_capability_major_nv), int(device.compute_capability_minor_nv)


# Enough work-groups to fill the device, whatever it holds at once: 80 on RDNA 1.
_GROUPS_PER_COMPUTE_UNIT = {DeviceKind.GPU: 96}
_DEFAULT_GROUPS_PER_COMPUTE_UNIT = 16
_MOST_GROUPS = 16384
_REPEATS = 2
_on_threads: WeakKeyDictionary[DeviceSession, int] = WeakKeyDictionary()
"""Work-groups that are active together on the host's processors."""


def find_saturation(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> SaturationPoint:
    """Find P_sat for one kernel at one local size.

    The driver of CUDA tells it. On another GPU whose limits are published the value follows from
    the occupancy rules; elsewhere it is measured. All are reported that exist.

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
    if isinstance(compiled, OtherDriver):
        return _ask_saturation(session, compiled, kernel, ndrange, measured)
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


def _ask_saturation(
    session: DeviceSession,
    compiled: Any,  # noqa: ANN401 - a kernel of a CUDA device
    kernel: Kernel,
    ndrange: NDRange,
    measured: int,
) -> SaturationPoint:
    """Ask the driver; what the rules say is only told beside it."""
    reported: int = compiled.count_active_work_groups(ndrange.work_group_size)
    if reported == 0:
        msg = (
            f"{session.description.id}: a work-group of {ndrange.work_group_size} work-items of "
            f"kernel {kernel.name} does not fit into an empty compute unit; give a smaller local "
            "size"
        )
        raise DeviceLimitError(msg)
    computed = None
    with suppress(DeviceLimitError):
        computed = compute_for_kernel(session, compiled, kernel, ndrange)
    return SaturationPoint(
        p_sat=Trait(value=reported, source=TraitSource.REPORTED),
        concurrency=reported * session.description.compute_units,
        saturated_from=session.behaviour.saturated_from,
        computed=None if computed is None else computed.p_sat,
        measured=measured,
        limiter=None if computed is None else computed.limiter,
    )


def measure_concurrency(session: DeviceSession, compiled: cl.Kernel, ndrange: NDRange) -> int:
    """Count the work-groups that are active together on the whole device.

    The probe has the kernel's local size and local memory, but not its registers: on a GPU the
    result is an upper bound.
    """
    if session.description.kind is DeviceKind.CPU:
        # A processor's thread runs one work-group, whatever it needs: nothing is built anew, which
        # takes PoCL 0.1 s for each local size.
        found = _on_threads.get(session)
        if found is None:
            counted = _count_active(session, PROBE_LOCAL_SIZE, 0)
            # One with a noisy neighbour may run one thread only while we look.
            least = min(session.description.compute_units, os.cpu_count() or 1)
            found = _on_threads[session] = max(least, counted)
        return found
    local_bytes = compiled.get_work_group_info(
        cl.kernel_work_group_info.LOCAL_MEM_SIZE, session.device
    )
    return max(1, _count_active(session, ndrange.work_group_size, local_bytes))


def _count_active(session: DeviceSession, local_size: int, local_bytes: int) -> int:
    """Count the work-groups of a probe that are active together, at best."""
    per_unit = _GROUPS_PER_COMPUTE_UNIT.get(
        session.description.kind, _DEFAULT_GROUPS_PER_COMPUTE_UNIT
    )
    groups = min(_MOST_GROUPS, session.description.compute_units * per_unit)
    steps = max(16, session.behaviour.settle_steps * PROBE_LOCAL_SIZE // local_size)
    return max(
        session.probe.run(
            (groups,), steps=steps, local_size=local_size, local_bytes=local_bytes
        ).concurrency
        for _ in range(_REPEATS)
    )
