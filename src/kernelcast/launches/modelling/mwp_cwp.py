"""Asks Hong and Kim's model for a launch on a GPU, and on a CPU as far as that has a meaning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from kernelcast.analytic.cpu.opencl.core import find_execution
from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.analytic.gpu.machine import compute_occupancy, read_machine
from kernelcast.analytic.mwp_cwp import CaseRule, MwpCwpInputs, model_mwp_cwp
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.counting.summary import (
    compute_requests,
    count_instructions,
    measure_requests,
)
from kernelcast.launches.modelling.launches import find_unknown
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription, refuse_missing
from kernelcast.records.operations import MemorySpace, NumberClass, OperationKind
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters

_SECTOR_BYTES = 32
_SLOWER: Mapping[str, float] = {"fp64": 2.0, "native_special": 4.0, "special": 4.0}
"""Times of an fp32 instruction, where the machine description does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The compute units of a device, as one launch finds them."""

    count: int
    warp_width: int
    """Work-items that issue together: a warp, or those in the lanes of a CPU's vector."""
    warps_per_group: int
    resident_groups: int
    clock_hz: float
    """Turns seconds into the model's cycles and back; its value does not change the answer."""
    bandwidth_bytes_per_s: float
    """Of memory, all units together."""
    latency_s: float
    path_bytes_per_s: float
    """What one unit takes from the cache that all its requests pass."""
    transaction_bytes: int
    """What one transaction of an uncoalesced request moves."""
    instruction_s: Mapping[str, float]
    """Seconds for which one instruction of a warp occupies a unit: ``fp32``, ``fp64``, ``special``,
    ``native_special``."""
    notes: tuple[str, ...]


def read_units(launch: ModelledLaunch, machine: MachineDescription) -> Units:
    group_size = launch.ndrange.work_group_size
    notes: list[str]
    if machine.kind is DeviceKind.CPU:
        # A core counts as a multiprocessor, and the work-items in the lanes of a vector as a warp.
        # Its vectors are independent: out-of-order execution and prefetching overlap their
        # requests, and go on into the next work-group. So all work-groups of a core count as
        # resident, unless barriers hold each together; then one does.
        device = read_device(machine)
        count, width = device.cores, find_execution(launch, device)[0]
        warps = ceil(group_size / width)
        barriers = launch.executed.count(OperationKind.BARRIER)
        resident = 1 if barriers else launch.ndrange.work_group_count
        bandwidth = 1 / device.levels[-1].load_s_per_byte
        clock_hz = machine.clock_hz.value if machine.clock_hz else None
        transaction_bytes, notes = device.line_bytes, [*device.notes]
        # Lanes that an instruction fills at least: a scalar one takes a whole slot.
        lanes = {"fp32": device.lanes_of(32), "fp64": device.lanes_of(64)}
    elif machine.kind is DeviceKind.GPU:
        gpu = read_machine(machine)
        occupancy = compute_occupancy(launch, gpu)
        count, width, clock_hz = gpu.compute_units, gpu.warp_width, gpu.clock_hz
        warps, resident = occupancy.warps_per_work_group, occupancy.work_groups
        bandwidth = gpu.dram_load_bytes_per_s or gpu.dram_copy_bytes_per_s or 0.0
        if not bandwidth:
            refuse_missing(machine.id, "the bandwidth of global memory", "bandwidth")
        transaction_bytes, notes, lanes = _SECTOR_BYTES, [*occupancy.notes], {}
    else:
        raise InputError(f"{machine.id} is of kind {machine.kind}; MWP-CWP is for GPUs and CPUs")
    memory = machine.memory("global")
    if memory is None or memory.latency_s is None:
        refuse_missing(machine.id, "the latency of global memory", "caches")
    # The farthest cache whose bandwidth is known paces requests as they leave a unit; MWP_peak_BW
    # limits by memory itself.
    rates = [one.load_bytes_per_s for one in machine.caches if one.name != "L1"]
    known = [one.value for one in rates if one is not None]
    if not known:
        notes.append("departure delay: no cache's bandwidth is known, that of memory is taken")
    times: dict[str, float] = {}
    for kind in ("fp32", *_SLOWER):
        facts = machine.instruction(kind)
        if facts is not None and facts.peak_per_s is not None:
            times[kind] = count * max(width, lanes.get(kind, 1)) / facts.peak_per_s.value
    if "fp32" not in times:
        refuse_missing(machine.id, "the throughput of fp32", "instructions-fp32")
    for kind, factor in _SLOWER.items():
        if kind not in times:
            times[kind] = factor * times["fp32"]
            notes.append(f"throughput of {kind}: not known, {factor:g} times slower than fp32")
    return Units(
        count=count,
        warp_width=width,
        warps_per_group=warps,
        resident_groups=resident,
        clock_hz=clock_hz or 1e9,
        bandwidth_bytes_per_s=bandwidth,
        latency_s=memory.latency_s.value,
        path_bytes_per_s=max([*known[-1:], bandwidth]) / count,
        transaction_bytes=transaction_bytes,
        instruction_s=times,
        notes=tuple(notes),
    )


MODEL = "mwp_cwp"
_FAR = (MemorySpace.GLOBAL, MemorySpace.GENERIC)


def estimate_mwp_cwp(
    launch: ModelledLaunch,
    machine: MachineDescription,
    *,
    counters: SoftwareCounters | None = None,
) -> AnalyticEstimate:
    units = read_units(launch, machine)
    coal, uncoal, per_mw, bytes_per_warp = _count_memory(launch, units)
    counts, costs = launch.executed, units.instruction_s
    executed = max(count_instructions(counts), coal + uncoal)
    warps = () if counters is None else counters.warps
    issued = next((one.issued for one in warps if one.width == units.warp_width), 0.0) or executed
    special = counts.count(OperationKind.SPECIAL, per_lane=True)
    native = counts.count(OperationKind.SPECIAL_NATIVE, per_lane=True)
    wide = sum(
        times * operation.lanes
        for operation, times in counts.operations.items()
        if operation.number is NumberClass.FLOAT
        and operation.bits == 64
        and operation.kind not in {OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE}
    )
    total_s = (
        special * costs["special"] + native * costs["native_special"] + wide * costs["fp64"]
        + max(0.0, executed - special - native - wide) * costs["fp32"]
    )  # fmt: skip
    # The mean seconds that an instruction of a warp occupies a unit.
    issue_s = total_s / executed if executed else costs["fp32"]
    groups = launch.ndrange.work_group_count
    resident = min(units.resident_groups, ceil(groups / units.count))
    active = min(units.count, groups)
    inputs = MwpCwpInputs(
        comp_insts=max(0.0, issued - coal - uncoal),
        coal_mem_insts=coal,
        uncoal_mem_insts=uncoal,
        synch_insts=launch.executed.count(OperationKind.BARRIER),
        uncoal_per_mw=per_mw,
        load_bytes_per_warp=bytes_per_warp,
        active_warps_per_sm=resident * units.warps_per_group,
        active_blocks_per_sm=resident,
        active_sms=active,
        # A unit that is not filled up takes as long as one that is.
        blocks=max(groups, resident * active),
        issue_cycles=issue_s * units.clock_hz,
        freq_hz=units.clock_hz,
        mem_bandwidth_bytes_per_s=units.bandwidth_bytes_per_s,
        mem_ld_cycles=units.latency_s * units.clock_hz,
        departure_del_coal_cycles=bytes_per_warp / units.path_bytes_per_s * units.clock_hz,
        departure_del_uncoal_cycles=(
            units.transaction_bytes / units.path_bytes_per_s * units.clock_hz
        ),
    )
    terms = model_mwp_cwp(inputs, rule=CaseRule.BY_PARALLELISM)
    published = model_mwp_cwp(inputs, rule=CaseRule.PUBLISHED)
    warps_s = inputs.active_warps_per_sm * terms.rep / units.clock_hz
    limiters = {
        "compute": terms.comp_cycles * warps_s,
        "memory": terms.mem_cycles / terms.mwp * warps_s,
        "barriers": terms.synch_cycles / units.clock_hz,
    }
    note = (
        "computes more than it waits: the published rule takes the formula of memory and says "
        f"{published.seconds:.4g} s, by MWP and CWP alone it is {terms.seconds:.4g} s"
    )
    return AnalyticEstimate(
        model=MODEL,
        machine=machine.id,
        seconds=terms.seconds,
        limiter=max(limiters, key=lambda one: limiters[one]),
        limiters=limiters,
        quantities={
            "mwp_count": terms.mwp,
            "cwp_count": terms.cwp,
            "active_warps_count": inputs.active_warps_per_sm,
            "repetitions_count": terms.rep,
            "mem_latency_s": terms.mean_cycles / units.clock_hz,
            "departure_delay_s": terms.departure_delay_cycles / units.clock_hz,
            "coalesced_count": inputs.coal_mem_insts,
            "uncoalesced_count": inputs.uncoal_mem_insts,
            "computation_count": inputs.comp_insts,
            "published_rule_s": published.seconds,
            "by_parallelism_s": terms.seconds,
        },
        notes=(*launch.notes, *units.notes, *([] if published.case is terms.case else [note])),
    )


def add_mwp_cwp(
    estimate: AnalyticEstimate,
    launch: ModelledLaunch,
    machine: MachineDescription,
    counters: SoftwareCounters | None = None,
) -> AnalyticEstimate:
    """Put this model's seconds beside another model's answer, as the quantity ``mwp_cwp_s``."""
    try:
        found = estimate_mwp_cwp(launch, machine, counters=counters)
    except KernelcastError as error:
        return replace(estimate, notes=(*estimate.notes, f"no MWP-CWP estimate: {error}"))
    return replace(estimate, quantities={**estimate.quantities, "mwp_cwp_s": found.seconds})


def _count_memory(launch: ModelledLaunch, units: Units) -> tuple[float, float, float, float]:
    """Count a thread's coalesced and uncoalesced memory instructions, the transactions of one of
    the latter, and the bytes that a warp asks for in one, mean of both."""
    width = units.warp_width
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
