"""The CPU model's answer for an OpenCL launch: seconds, and what bounds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import ABSENT
from kernelcast.analytic.cpu.opencl.core import time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.analytic.cpu.opencl.execution import find_execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern, find_patterns
from kernelcast.analytic.cpu.opencl.traffic import LevelTraffic, Traffic
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts, OperationKind

MODEL = "cpu"
REVISION = 11
"""Grows when estimates change, so that stored ones tell which model they are of."""
_MISSES_AT_ONCE = 12.0
"""Cache misses that a core waits for at once, of independent loads."""


def estimate_cpu(launch: ModelledLaunch, machine: MachineDescription) -> AnalyticEstimate:
    """Estimate the time of an OpenCL launch on a CPU device.

    Cores compute, or wait for data at addresses that depend on data, while nothing of that
    overlaps with transfers from farther levels, nor these with each other, as in the ECM model.
    Where lanes of a vector part, all of them go through what any of them does.
    Barriers, atomics, the dispatch of work-groups and the launch come on top.
    """
    device = read_device(machine)
    return estimate_work(study_work(launch, device), device, launch.ndrange, launch.buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuWork:
    """What a launch does per work-item and work-group on a device, however many there are."""

    traffic: Traffic
    """What crosses each boundary."""
    rates: dict[str, float]
    """Seconds of a core per work-item, by limiter."""
    near_s: float
    """Seconds of a core per work-item whose data is near."""
    atomics_s: float
    barriers_s: float
    """Seconds per work-item: of the launch, and of a core."""
    issued: float
    """Operations of a work-item, memory included."""
    updates: int
    """Results of a work-item."""
    quantities: dict[str, float]
    """Those that do not depend on how many there are."""
    notes: tuple[str, ...]
    """What is estimated or missing."""


def study_work(launch: ModelledLaunch, device: CpuDevice) -> CpuWork:
    """Find what a launch does per work-item and work-group: nearly all that an estimate costs."""
    if device.never_jumps and launch.unjumped != NOTHING:
        launch = replace(launch, executed=launch.unjumped)
    counts = launch.executed
    execution = find_execution(launch, device)
    gathers = device.functions is not None and device.functions.gathers_narrowed
    patterns = find_patterns(launch, execution.width, gathers_narrowed=gathers)
    core = time_core(counts, device, execution, patterns)
    waiting = sum(_wait(launch, device, one, execution.width) for one in patterns)
    traffic = Traffic(launch, execution, patterns, device)
    # The last step of a walk finds its entry in L2, which lines that crowd leave to it.
    walking = traffic.count_walks() * device.levels[1].latency_s
    barrier_s = device.costs.get("barrier_s", 0.0)
    return CpuWork(
        traffic=traffic,
        rates={**core.ports, "chain": core.chain_s, "latency": waiting + walking},
        near_s=max(core.seconds, waiting) + walking,
        atomics_s=_time_atomics(counts, device.costs, patterns),
        barriers_s=execution.barriers * barrier_s / launch.ndrange.work_group_size,
        issued=sum(counts.operations.values()) + sum(counts.memory.values()),
        updates=launch.updates_per_work_item,
        quantities={
            "vector_work_items_count": float(execution.width),
            "core_s_per_work_item": core.seconds,
            "updates_per_work_item": float(launch.updates_per_work_item),
        },
        notes=tuple(dict.fromkeys((*launch.notes, *device.notes, *core.notes))),
    )


def estimate_work(
    work: CpuWork, device: CpuDevice, ndrange: NDRange, buffers: Mapping[str, int]
) -> AnalyticEstimate:
    """Estimate the time of so many work-items; see `estimate_cpu`."""
    counts, all_items = ndrange.group_counts, ndrange.work_item_count
    groups = prod(counts)
    traffic = work.traffic.count(counts, buffers)
    # The core that has most work-groups is waited for.
    items = ceil(groups / device.cores) / groups * all_items
    overheads = {
        "atomics": work.atomics_s * all_items,
        "barriers": work.barriers_s * items,
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    limiters = {name: seconds * items for name, seconds in work.rates.items()}
    limiters |= {one.name: one.seconds for one in traffic} | overheads
    far = sum(one.added_s for one in traffic)
    seconds = work.near_s * items + far + sum(overheads.values())
    volumes, near = {}, "L1"
    for one in traffic:
        volumes[f"{one.name}_to_{near}"] = one.loaded_bytes
        volumes[f"{near}_to_{one.name}"] = one.stored_bytes
        near = one.name
    return AnalyticEstimate(
        model=MODEL,
        machine=device.id,
        seconds=seconds,
        limiter=max(limiters, key=limiters.__getitem__),
        limiters=limiters,
        volumes=volumes,
        quantities={
            **_list_quantities(traffic, groups, work.issued * all_items * device.line_bytes),
            **work.quantities,
            "updates_per_s": all_items * work.updates / seconds,
        },
        notes=work.notes,
    )


def _wait(launch: ModelledLaunch, device: CpuDevice, pattern: AccessPattern, width: int) -> float:
    """Time that a core waits, per work-item, for data at addresses that depend on data.

    A wait is counted for each line that a work-group has not touched before, not for each access.
    Nothing waits for what is stored.
    """
    access = pattern.access
    if not pattern.recorded or pattern.is_local or access.kind is AccessKind.STORE:
        return 0.0
    lines = sum(np.unique(one.table[one.table != ABSENT] // device.line_bytes).size
                for one in pattern.recorded)  # fmt: skip
    jumps = lines / sum(len(one.table) for one in pattern.recorded)
    size = launch.buffers.get(access.buffer or "")
    latency = held = 0.0
    for level in device.levels:
        reach = min(1.0, level.reach_bytes / size) if size else 1.0
        latency += max(0.0, reach - held) * level.latency_s
        held = max(held, reach)
    is_chained = access.buffer in access.sources and width == 1
    return jumps * latency / (1.0 if is_chained else _MISSES_AT_ONCE)


def _time_atomics(
    executed: OperationCounts, costs: Mapping[str, float], patterns: Sequence[AccessPattern]
) -> float:
    """Time a work-item's atomics: those of one address wait for each other."""
    counted = executed.count(OperationKind.ATOMIC)
    found = [one for one in patterns if one.access.kind is AccessKind.ATOMIC]
    total = sum(one.executions for one in found)
    seconds = 0.0
    for one in found:
        space = "local" if one.is_local else "global"
        rate = costs.get(f"atomic_{space}_distinct_per_s")
        if rate and total:
            seconds += counted * one.executions / total / rate
    return seconds


def _list_quantities(
    traffic: Sequence[LevelTraffic], groups: int, issued_line_bytes: float
) -> dict[str, float]:
    found = {}
    # Lines over instructions, as the sampling paper's Table 1 counts misses.
    for name, one in zip(("l1_miss_ratio", "l2_miss_ratio"), traffic, strict=False):
        if issued_line_bytes:
            found[name] = one.loaded_bytes / issued_line_bytes
    for one in traffic:
        name = one.name.lower()
        found[f"{name}_load_bytes_per_work_group"] = one.loaded_bytes / groups
        found[f"{name}_store_bytes_per_work_group"] = one.stored_bytes / groups
    return found
