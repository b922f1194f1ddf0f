"""Asks Hong and Kim's model for a launch on a GPU, and on a CPU as far as that has a meaning."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelcast.analytic.mwp_cwp.model import (
    CaseRule,
    MwpCwpLaunch,
    MwpCwpMachine,
    MwpCwpTerms,
    model_mwp_cwp,
)
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.counting.instructions import count_instructions
from kernelcast.features.counting.requests import compute_requests, measure_requests
from kernelcast.launches.modelling.launches import find_unknown, model_launch
from kernelcast.launches.modelling.mwp_cwp_units import Units, read_units
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import MemorySpace, NumberClass, OperationKind
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters

MODEL = "mwp_cwp"
_FAR = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_SECTOR_BYTES = 32
_WIDE_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Memory instructions of a thread, by how its warp touches memory."""

    coal: float
    uncoal: float
    """Of one thread."""
    per_mw: float
    """Transactions of an uncoalesced one."""
    bytes: float
    """Bytes that a warp asks for in one, mean of both."""


def estimate_mwp_cwp(
    launch: Problem | ModelledLaunch,
    machine: MachineDescription,
    *,
    counters: SoftwareCounters | None = None,
    rule: CaseRule = CaseRule.BY_PARALLELISM,
) -> AnalyticEstimate:
    """Estimate the time of a launch by Hong and Kim's model."""
    modelled = model_launch(launch) if isinstance(launch, Problem) else launch
    units = read_units(modelled, machine)
    memory = _count_memory(modelled, units)
    issued, issue_s = _count_instructions(modelled, units, memory, counters)
    inputs = _make_launch(modelled, units, memory, issued)
    device = MwpCwpMachine(
        issue_cycles=issue_s * units.clock_hz,
        freq_hz=units.clock_hz,
        mem_bandwidth_bytes_per_s=units.bandwidth_bytes_per_s,
        mem_ld_cycles=units.latency_s * units.clock_hz,
        departure_del_coal_cycles=memory.bytes / units.path_bytes_per_s * units.clock_hz,
        departure_del_uncoal_cycles=(
            units.transaction_bytes / units.path_bytes_per_s * units.clock_hz
        ),
    )
    found = {one: model_mwp_cwp(inputs, device, rule=one) for one in CaseRule}
    terms = found[rule]
    limiters = _list_limiters(terms, inputs, units.clock_hz)
    return AnalyticEstimate(
        model=MODEL,
        machine=machine.id,
        seconds=terms.seconds,
        limiter=max(limiters, key=lambda one: limiters[one]),
        limiters=limiters,
        quantities={
            **_list_quantities(terms, inputs, units.clock_hz),
            "published_rule_s": found[CaseRule.PUBLISHED].seconds,
            "by_parallelism_s": found[CaseRule.BY_PARALLELISM].seconds,
        },
        notes=(*modelled.notes, *units.notes, *_note(found)),
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


def _make_launch(
    launch: ModelledLaunch, units: Units, memory: _Memory, issued: float
) -> MwpCwpLaunch:
    groups = launch.ndrange.work_group_count
    resident = min(units.resident_groups, math.ceil(groups / units.count))
    active = min(units.count, groups)
    return MwpCwpLaunch(
        comp_insts=max(0.0, issued - memory.coal - memory.uncoal),
        coal_mem_insts=memory.coal,
        uncoal_mem_insts=memory.uncoal,
        synch_insts=launch.executed.count(OperationKind.BARRIER),
        uncoal_per_mw=memory.per_mw,
        load_bytes_per_warp=memory.bytes,
        active_warps_per_sm=resident * units.warps_per_group,
        active_blocks_per_sm=resident,
        active_sms=active,
        # A unit that is not filled up takes as long as one that is.
        blocks=max(groups, resident * active),
    )


def _count_memory(launch: ModelledLaunch, units: Units) -> _Memory:
    """Divide a thread's memory instructions into coalesced and uncoalesced ones."""
    patterns = [one for one in _find_patterns(launch, units.warp_width) if one.space in _FAR]
    coal = sum(one.requests for one in patterns if one.is_coalesced)
    scattered = [one for one in patterns if not one.is_coalesced]
    uncoal = sum(one.requests for one in scattered)
    per_mw = _average(scattered) or 1.0
    executed = sum(
        launch.executed.count_memory(space, is_store=is_store)
        for space in _FAR
        for is_store in (True, False)
    )
    known = coal + uncoal
    if any(one.space in _FAR for one in find_unknown(launch.accesses, launch.recorded)):
        # Nobody knows where they go: every work-item for itself.
        unknown = max(0.0, executed - known)
        if unknown:
            per_mw = (per_mw * uncoal + units.warp_width * unknown) / (uncoal + unknown)
            uncoal += unknown
    elif executed and known:
        # Conditions on data count as met in patterns, but not in what is executed.
        coal, uncoal = (one * executed / known for one in (coal, uncoal))
    return _Memory(
        coal=coal, uncoal=uncoal, per_mw=per_mw, bytes=_count_bytes(launch, units, patterns)
    )


def _find_patterns(launch: ModelledLaunch, width: int) -> list[RequestPattern]:
    """Give how warps touch memory: by addresses where they are known, as recorded elsewhere."""
    facts = KernelFacts(
        kernel=launch.kernel, line=0, parameters=(), local_arrays=(), blocks=(), counter_count=0,
        reaches=(), accesses=launch.accesses, loops=(), gaps=(),
    )  # fmt: skip
    computed = compute_requests(facts, launch.ndrange, launch.scalars, warp_width=width)
    if launch.recorded is None:
        return list(computed)
    sites = {one.site for one in computed}
    measured = measure_requests(facts, launch.recorded, warp_width=width)
    return [*computed, *(one for one in measured if one.site not in sites)]


def _average(patterns: Sequence[RequestPattern]) -> float:
    """Give the transactions of a request, mean of all."""
    requests = sum(one.requests for one in patterns)
    if not requests:
        return 0.0
    return sum(one.requests * one.sectors_per_request for one in patterns) / requests


def _count_bytes(launch: ModelledLaunch, units: Units, patterns: Sequence[RequestPattern]) -> float:
    """Give the bytes that a warp asks for at once; work-items at one address ask together."""
    counts = launch.executed
    moved = times = 0.0
    for space in _FAR:
        for is_store in (True, False):
            moved += counts.memory_bytes(space, is_store=is_store)
            times += counts.count_memory(space, is_store=is_store)
    touched = _average(patterns) * _SECTOR_BYTES
    asked = moved / times * units.warp_width if times else touched
    return min(asked, touched) if asked and touched else max(asked, touched, 1.0)


def _count_instructions(
    launch: ModelledLaunch, units: Units, memory: _Memory, counters: SoftwareCounters | None
) -> tuple[float, float]:
    """Give a warp's issued instructions, and the mean seconds that one occupies a unit."""
    counts = launch.executed
    executed = max(count_instructions(counts), memory.coal + memory.uncoal)
    issued = executed
    if counters is not None:
        own = next((one for one in counters.warps if one.width == units.warp_width), None)
        if own is not None and own.issued:
            issued = own.issued
    special = counts.count(OperationKind.SPECIAL, per_lane=True)
    native = counts.count(OperationKind.SPECIAL_NATIVE, per_lane=True)
    wide = sum(
        times * operation.lanes
        for operation, times in counts.operations.items()
        if operation.number is NumberClass.FLOAT
        and operation.bits == _WIDE_BITS
        and operation.kind not in {OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE}
    )
    costs = units.instruction_s
    rest = max(0.0, executed - special - native - wide)
    total = (
        special * costs["special"] + native * costs["native_special"] + wide * costs["fp64"]
        + rest * costs["fp32"]
    )  # fmt: skip
    return issued, total / executed if executed else costs["fp32"]


def _list_limiters(terms: MwpCwpTerms, launch: MwpCwpLaunch, clock_hz: float) -> dict[str, float]:
    warps = launch.active_warps_per_sm * terms.rep / clock_hz
    return {
        "compute": terms.comp_cycles * warps,
        "memory": terms.mem_cycles / terms.mwp * warps,
        "barriers": terms.synch_cycles / clock_hz,
    }


def _list_quantities(terms: MwpCwpTerms, launch: MwpCwpLaunch, clock_hz: float) -> dict[str, float]:
    return {
        "mwp_count": terms.mwp,
        "cwp_count": terms.cwp,
        "active_warps_count": launch.active_warps_per_sm,
        "repetitions_count": terms.rep,
        "mem_latency_s": terms.memory.mean_cycles / clock_hz,
        "departure_delay_s": terms.memory.departure_delay_cycles / clock_hz,
        "coalesced_count": launch.coal_mem_insts,
        "uncoalesced_count": launch.uncoal_mem_insts,
        "computation_count": launch.comp_insts,
    }


def _note(found: Mapping[CaseRule, MwpCwpTerms]) -> list[str]:
    published, other = found[CaseRule.PUBLISHED], found[CaseRule.BY_PARALLELISM]
    if published.case is other.case:
        return []
    return [
        "computes more than it waits: the published rule takes the formula of memory and says "
        f"{published.seconds:.4g} s, by MWP and CWP alone it is {other.seconds:.4g} s"
    ]
