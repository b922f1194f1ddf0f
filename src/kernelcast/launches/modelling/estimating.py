"""Asks the analytic model that fits a machine, of GPUs with what a compiler makes of the kernel;
and Hong and Kim's, to compare with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import Final

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.cpu.opencl.core import find_execution
from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.analytic.gpu.code import read_work
from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.analytic.gpu.machine import compute_occupancy, find_architecture, read_machine
from kernelcast.analytic.mwp_cwp import MwpCwpInputs, model_mwp_cwp
from kernelcast.compiling import Compiled, Target, compile_kernel, read_facts
from kernelcast.compiling.targets import read_options
from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.features.counting.summary import (
    compute_requests,
    count_instructions,
    measure_requests,
)
from kernelcast.launches.modelling.launches import find_unknown
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription, refuse_missing
from kernelcast.records.operations import MemorySpace, NumberClass, OperationKind
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters

# Words of a board's name, and its processor; boards of an unknown name are taken for the usual
# ones, whose instructions differ little.
_PROCESSORS: Final = (
    (r"gfx[0-9a-f]+", r"\g<0>"),
    (r"mi300|mi325", "gfx942"), (r"mi2\d\d", "gfx90a"), (r"mi100", "gfx908"),
    (r"rx.?7\d00|w7\d00", "gfx1100"), (r"rx.?6\d00|w6\d00", "gfx1030"),
    (r"[hg]h?[12]00", "sm_90"), (r"l40|l4\b|rtx.?40\d\d|ada", "sm_89"),
    (r"a40\b|a10\b|a[456]000|rtx.?30\d\d", "sm_86"), (r"a100|a30\b", "sm_80"),
    (r"20[678]0|t4\b|turing|rtx.?[4568]000", "sm_75"), (r"v100|titan v", "sm_70"),
)  # fmt: skip
_USUAL: Final = {"nvidia": "sm_80", "cdna": "gfx90a", "rdna": "gfx1030"}


def add_code(launch: ModelledLaunch, machine: MachineDescription) -> ModelledLaunch:
    """Add to a launch what compiled code tells of it, if it has any: work of warps, registers.

    Instructions are counted in PTX for all GPUs, which AMD's resemble in kind; registers are those
    of the GPU's own code. Where there is no compiler or it refuses the kernel, the launch stays as
    it is, with a note.
    """
    problem = launch.problem
    if problem is None:
        return launch
    text = f"{machine.id} {machine.name}".lower()
    named = (
        match.expand(processor) for pattern, processor in _PROCESSORS
        if (match := re.search(pattern, text))
    )  # fmt: skip
    target = Target.parse(next(named, _USUAL[find_architecture(machine).name]))
    try:
        compiled = _compile(problem.kernel, target if str(target).startswith("sm_") else _PTX)
        arguments = [
            int(one.values[0])
            if isinstance(one, ScalarArgument) and isinstance(one.values[0], int)
            else None
            for one in problem.arguments
        ]
        work = read_work(compiled, problem.kernel.name, launch.ndrange, arguments)
        registers = launch.registers
        if registers is None:
            own = compiled if str(target).startswith("sm_") else _compile(problem.kernel, target)
            registers = read_facts(own, problem.kernel.name).registers.value
    except KernelcastError as error:
        note = f"instructions and registers: from the source, as {error}"
        return replace(launch, notes=(*launch.notes, note))
    notes = (
        () if work else ("instructions: from the source, since data decide how often loops run",)
    )
    return replace(launch, work=work, registers=registers, notes=(*launch.notes, *notes))


_PTX: Final = Target.parse("sm_80")


@lru_cache(maxsize=32)
def _compile(kernel: Kernel, target: Target) -> Compiled:
    return compile_kernel(
        kernel.source, kernel.build_options, target, dialect=kernel.dialect,
        source_name=kernel.source_name,
        include_folders=read_options(kernel.build_options).folders,
    )  # fmt: skip


def estimate_analytically(launch: ModelledLaunch, machine: MachineDescription) -> AnalyticEstimate:
    if machine.kind is DeviceKind.CPU:
        return estimate_cpu(launch, machine)
    if machine.kind is DeviceKind.GPU:
        return estimate_gpu(add_code(launch, machine), machine)
    msg = f"{machine.id} is of kind {machine.kind}; there are models of CPUs and of GPUs"
    raise InputError(msg)


_SECTOR_BYTES: Final = 32
_FAR: Final = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_SLOWER: Final[Mapping[str, float]] = {"fp64": 2.0, "native_special": 4.0, "special": 4.0}
"""Times of an fp32 instruction, where the machine description does not tell."""


def time_mwp_cwp(
    launch: ModelledLaunch, machine: MachineDescription, counters: SoftwareCounters | None = None
) -> float:
    """Time a launch by Hong and Kim's model, in seconds; on CPUs as far as that has a meaning."""
    groups = launch.ndrange.work_group_count
    barriers = launch.executed.count(OperationKind.BARRIER)
    if machine.kind is DeviceKind.CPU:
        # A core counts as a multiprocessor, and the work-items in the lanes of a vector as a warp.
        # Its vectors are independent: out-of-order execution and prefetching overlap their
        # requests, and go on into the next work-group. So all work-groups of a core count as
        # resident, unless barriers hold each together; then one does.
        device = read_device(machine)
        units, width = device.cores, find_execution(launch, device)[0]
        warps = ceil(launch.ndrange.work_group_size / width)
        resident = 1 if barriers else groups
        bandwidth = 1 / device.levels[-1].load_s_per_byte
        transaction_bytes = device.line_bytes
        # Lanes that an instruction fills at least: a scalar one takes a whole slot.
        lanes = {"fp32": device.lanes_of(32), "fp64": device.lanes_of(64)}
    else:
        gpu = read_machine(machine)
        occupancy = compute_occupancy(launch, gpu)
        units, width = gpu.compute_units, gpu.warp_width
        warps, resident = occupancy.warps_per_work_group, occupancy.work_groups
        bandwidth = gpu.dram_load_bytes_per_s or gpu.dram_copy_bytes_per_s or 0.0
        if not bandwidth:
            refuse_missing(machine.id, "the bandwidth of global memory", "bandwidth")
        transaction_bytes, lanes = _SECTOR_BYTES, {}
    memory = machine.memory("global")
    if memory is None or memory.latency_s is None:
        refuse_missing(machine.id, "the latency of global memory", "caches")
    # The farthest cache whose bandwidth is known paces requests as they leave a unit; MWP_peak_BW
    # limits by memory itself.
    rates = [one.load_bytes_per_s for one in machine.caches if one.name != "L1"]
    known = [one.value for one in rates if one is not None]
    path_s_per_byte = units / max([*known[-1:], bandwidth])
    slots_s = {}  # seconds for which one instruction of a warp occupies a unit
    for kind in ("fp32", *_SLOWER):
        facts = machine.instruction(kind)
        if facts is not None and facts.peak_per_s is not None:
            slots_s[kind] = units * max(width, lanes.get(kind, 1)) / facts.peak_per_s.value
    if "fp32" not in slots_s:
        refuse_missing(machine.id, "the throughput of fp32", "instructions-fp32")
    coal, uncoal, per_mw, bytes_per_warp = _count_memory(launch, width)
    executed = max(count_instructions(launch.executed), coal + uncoal)
    counted = counters.warps if counters else ()
    issued = next((one.issued for one in counted if one.width == width), 0.0) or executed
    resident, active = min(resident, ceil(groups / units)), min(units, groups)
    clock_hz = 1e9  # turns seconds into the model's cycles and back
    inputs = MwpCwpInputs(
        comp_insts=max(0.0, issued - coal - uncoal), coal_mem_insts=coal,
        uncoal_mem_insts=uncoal, synch_insts=barriers, uncoal_per_mw=per_mw,
        load_bytes_per_warp=bytes_per_warp, active_warps_per_sm=resident * warps,
        active_blocks_per_sm=resident, active_sms=active,
        # A unit that is not filled up takes as long as one that is.
        blocks=max(groups, resident * active),
        issue_cycles=_find_issue_s(launch, executed, slots_s) * clock_hz, freq_hz=clock_hz,
        mem_bandwidth_bytes_per_s=bandwidth, mem_ld_cycles=memory.latency_s.value * clock_hz,
        departure_del_coal_cycles=bytes_per_warp * path_s_per_byte * clock_hz,
        departure_del_uncoal_cycles=transaction_bytes * path_s_per_byte * clock_hz,
    )  # fmt: skip
    return model_mwp_cwp(inputs, is_published=False)


def _find_issue_s(launch: ModelledLaunch, executed: float, slots_s: Mapping[str, float]) -> float:
    """Find the mean seconds for which an instruction of a warp occupies a unit."""
    counts, fp32_s = launch.executed, slots_s["fp32"]
    wide = sum(
        times * operation.lanes
        for operation, times in counts.operations.items()
        if operation.number is NumberClass.FLOAT
        and operation.bits == 64
        and operation.kind not in {OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE}
    )
    slower = {
        "fp64": wide, "special": counts.count(OperationKind.SPECIAL, per_lane=True),
        "native_special": counts.count(OperationKind.SPECIAL_NATIVE, per_lane=True),
    }  # fmt: skip
    total_s = max(0.0, executed - sum(slower.values())) * fp32_s + sum(
        times * slots_s.get(kind, _SLOWER[kind] * fp32_s) for kind, times in slower.items()
    )
    return total_s / executed if executed else fp32_s


def _count_memory(launch: ModelledLaunch, width: int) -> tuple[float, float, float, float]:
    """Count a thread's coalesced and uncoalesced memory instructions, the transactions of one of
    the latter, and the bytes that a warp asks for in one, mean of both."""
    # By addresses where they are known, as recorded elsewhere.
    found = [*compute_requests(launch.accesses, launch.ndrange, launch.scalars, warp_width=width)]
    if launch.recorded is not None:
        sites = {one.site for one in found}
        measured = measure_requests(launch.accesses, launch.recorded, warp_width=width)
        found += [one for one in measured if one.site not in sites]
    patterns = [one for one in found if one.space in _FAR]
    coal = sum(one.requests for one in patterns if one.is_coalesced)
    scattered = [one for one in patterns if not one.is_coalesced]
    uncoal = sum(one.requests for one in scattered)
    per_mw = _average(scattered) or 1.0
    far = {one: times for one, times in launch.executed.memory.items() if one.space in _FAR}
    executed = sum(far.values())
    known = coal + uncoal
    if any(one.space in _FAR for one in find_unknown(launch.accesses, launch.recorded)):
        # Nobody knows where they go: every work-item for itself.
        unknown = max(0.0, executed - known)
        if unknown:
            per_mw = (per_mw * uncoal + width * unknown) / (uncoal + unknown)
            uncoal += unknown
    elif executed and known:
        # Conditions on data count as met in patterns, but not in what is executed.
        coal, uncoal = (one * executed / known for one in (coal, uncoal))
    # The bytes that a warp asks for at once; work-items at one address ask together.
    moved = sum(times * one.bytes for one, times in far.items())
    touched = _average(patterns) * _SECTOR_BYTES
    asked = moved / executed * width if executed else touched
    at_once = min(asked, touched) if asked and touched else max(asked, touched, 1.0)
    return coal, uncoal, per_mw, at_once


def _average(patterns: Sequence[RequestPattern]) -> float:
    requests = sum(one.requests for one in patterns)
    if not requests:
        return 0.0
    return sum(one.requests * one.sectors_per_request for one in patterns) / requests
