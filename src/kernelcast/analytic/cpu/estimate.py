"""The CPU model's answer for an OpenCL launch: seconds, and what bounds them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import ABSENT
from kernelcast.analytic.cpu.opencl.core import find_execution, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern, find_patterns
from kernelcast.analytic.cpu.opencl.traffic import LevelTraffic, count_traffic
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import OperationCounts, OperationKind

MODEL = "cpu"
REVISION = 12
"""Grows when estimates change, so that stored ones tell which model they are of."""


def estimate_cpu(launch: ModelledLaunch, machine: MachineDescription) -> AnalyticEstimate:
    """Estimate the time of an OpenCL launch on a CPU device.

    Cores compute, or wait for data at addresses that depend on data, while nothing of that
    overlaps with transfers from farther levels, nor these with each other, as in the ECM model.
    Where lanes of a vector part, all of them go through what any of them does.
    Barriers, atomics, the dispatch of work-groups and the launch come on top.
    """
    device = read_device(machine)
    if device.never_jumps and launch.unjumped != NOTHING:
        launch = replace(launch, executed=launch.unjumped)
    counts, ndrange = launch.executed, launch.ndrange
    execution = find_execution(launch, device)
    gathers = device.functions is not None and device.functions.gathers_narrowed
    patterns = find_patterns(launch, execution.width, gathers_narrowed=gathers)
    core = time_core(counts, device, execution, patterns)
    waiting = sum(_wait(launch, device, one) for one in patterns)
    traffic = count_traffic(launch, patterns, device)
    groups, all_items = prod(ndrange.group_counts), ndrange.work_item_count
    # The core that has most work-groups is waited for.
    items = ceil(groups / device.cores) / groups * all_items
    barrier_s = counts.count(OperationKind.BARRIER) * device.costs.get("barrier_s", 0.0)
    overheads = {
        "atomics": _time_atomics(counts, device.costs, patterns) * all_items,
        "barriers": barrier_s / ndrange.work_group_size * items,
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    rates = {**core.ports, "chain": core.chain_s, "latency": waiting}
    limiters = {name: seconds * items for name, seconds in rates.items()}
    limiters |= {one.name: one.seconds for one in traffic} | overheads
    near = max(core.seconds, waiting) * items
    seconds = near + sum(one.added_s for one in traffic) + sum(overheads.values())
    volumes, nearer = {}, "L1"
    for one in traffic:
        volumes[f"{one.name}_to_{nearer}"] = one.loaded_bytes
        volumes[f"{nearer}_to_{one.name}"] = one.stored_bytes
        nearer = one.name
    issued = sum(counts.operations.values()) + sum(counts.memory.values())
    return AnalyticEstimate(
        model=MODEL,
        machine=device.id,
        seconds=seconds,
        limiter=max(limiters, key=limiters.__getitem__),
        limiters=limiters,
        volumes=volumes,
        quantities={
            **_list_quantities(traffic, groups, issued * all_items * device.line_bytes),
            "vector_work_items_count": float(execution.width),
            "core_s_per_work_item": core.seconds,
            "updates_per_work_item": float(launch.updates_per_work_item),
            "updates_per_s": all_items * launch.updates_per_work_item / seconds,
        },
        notes=tuple(dict.fromkeys((*launch.notes, *device.notes, *core.notes))),
    )


def _wait(launch: ModelledLaunch, device: CpuDevice, pattern: AccessPattern) -> float:
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
    # Cache misses that a core waits for at once, of independent loads.
    return jumps * latency / 12.0


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
