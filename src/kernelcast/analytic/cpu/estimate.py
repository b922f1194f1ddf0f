"""The CPU model's answer for an OpenCL launch: seconds, and what bounds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from kernelcast.analytic.cpu.opencl.constants import FITTED, WorkItemConstants
from kernelcast.analytic.cpu.opencl.core import time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.analytic.cpu.opencl.execution import Execution, find_execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern, find_patterns
from kernelcast.analytic.cpu.opencl.traffic import (
    LevelTraffic,
    Traffic,
    find_lines,
)
from kernelcast.analytic.cpu.opencl.waiting import time_waiting
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts, OperationKind

MODEL = "cpu"
REVISION = 10
"""Grows when estimates change, so that stored ones tell which model they are of."""


def estimate_cpu(
    launch: ModelledLaunch,
    machine: MachineDescription,
    *,
    constants: WorkItemConstants = FITTED,
) -> AnalyticEstimate:
    """Estimate the time of an OpenCL launch on a CPU device.

    Parameters
    ----------
    launch : ModelledLaunch
        What it touches and executes.
    machine : MachineDescription
        A calibrated CPU device.
    constants : WorkItemConstants
        What calibration does not tell.

    Returns
    -------
    AnalyticEstimate

    Raises
    ------
    InputError
        If the machine is no CPU or was not calibrated far enough, or an address depends on data
        and was not recorded.

    Notes
    -----
    Cores compute, or wait for data at addresses that depend on data, while nothing of that
    overlaps with transfers from farther levels, nor these with each other, as in the ECM model.
    Where lanes of a vector part, all of them go through what any of them does.
    Barriers, atomics, the dispatch of work-groups and the launch come on top.
    """
    device = read_device(machine)
    work = study_work(launch, device, constants=constants)
    return estimate_work(work, device, launch.ndrange, launch.buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuWork:
    """What a launch does per work-item and work-group on a device, however many there are.

    Parameters
    ----------
    traffic : Traffic
        What crosses each boundary.
    rates : dict of str to float
        Seconds of a core per work-item, by limiter.
    near_s : float
        Seconds of a core per work-item whose data is near.
    atomics_s, barriers_s : float
        Seconds per work-item: of the launch, and of a core.
    issued : float
        Operations of a work-item, memory included.
    updates : int
        Results of a work-item.
    quantities : dict of str to float
        Those that do not depend on how many there are.
    notes : tuple of str
        What is estimated or missing.
    """

    traffic: Traffic
    rates: dict[str, float]
    near_s: float
    atomics_s: float
    barriers_s: float
    issued: float
    updates: int
    quantities: dict[str, float]
    notes: tuple[str, ...]


def study_work(
    launch: ModelledLaunch,
    device: CpuDevice,
    *,
    constants: WorkItemConstants = FITTED,
) -> CpuWork:
    """Find what a launch does per work-item and work-group: nearly all that an estimate costs.

    Parameters
    ----------
    launch : ModelledLaunch
        The launch.
    device : CpuDevice
        Where it runs.
    constants : WorkItemConstants
        What calibration does not tell.

    Raises
    ------
    InputError
        If an address depends on data and was not recorded.
    """
    if device.never_jumps and launch.unjumped != NOTHING:
        launch = replace(launch, executed=launch.unjumped)
    execution = find_execution(launch, device)
    patterns = find_patterns(launch, execution)
    core = time_core(launch.executed, device, execution, patterns, constants)
    waiting = time_waiting(launch, device, execution, patterns, constants)
    exits = launch.open_exits * constants.exit_chains * device.add_latency_s / execution.width
    counts = launch.executed
    lines = find_lines(launch, execution, patterns, device)
    walks = 0.0 if execution.steps_together else lines.crowd.count_walks() / execution.width
    # The last step of a walk finds its entry in L2, which lines that crowd leave to it.
    walking = walks * device.levels[1].latency_s
    return CpuWork(
        traffic=Traffic(lines, device),
        rates={**core.ports, "chain": core.chain_s, "latency": waiting + exits + walking},
        near_s=max(core.seconds, waiting) + exits + walking,
        atomics_s=_time_atomics(counts, device.costs, patterns),
        barriers_s=_time_barriers(launch, device, execution, constants),
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
    """Estimate the time of so many work-items; see `estimate_cpu`.

    Parameters
    ----------
    work : CpuWork
        By `study_work`, of this launch or of one that does the same per work-item.
    device : CpuDevice
        The device it was studied on.
    ndrange : NDRange
        The launch.
    buffers : mapping of str to int
        Bytes of its buffers, where known.
    """
    counts, all_items = ndrange.group_counts, ndrange.work_item_count
    groups = prod(counts)
    traffic = work.traffic.count(counts, buffers)
    # The core that has most work-groups is waited for.
    items = ceil(groups / device.cores) / groups * all_items
    limiters = {name: seconds * items for name, seconds in work.rates.items()}
    for one in traffic:
        limiters[one.name] = one.seconds
    overheads = {
        "atomics": work.atomics_s * all_items,
        "barriers": work.barriers_s * items,
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    far = sum(one.added_s for one in traffic)
    seconds = work.near_s * items + far + sum(overheads.values())
    limiters |= overheads
    return AnalyticEstimate(
        model=MODEL,
        machine=device.id,
        seconds=seconds,
        limiter=max(limiters, key=limiters.__getitem__),
        limiters=limiters,
        volumes=_list_volumes(traffic),
        quantities={
            **_list_quantities(traffic, groups, work.issued * all_items * device.line_bytes),
            **work.quantities,
            "updates_per_s": all_items * work.updates / seconds,
        },
        notes=work.notes,
    )


def _time_barriers(
    launch: ModelledLaunch, device: CpuDevice, execution: Execution, constants: WorkItemConstants
) -> float:
    """Give the time of a core for the barriers of a work-item."""
    size = launch.ndrange.work_group_size
    adds = constants.barrier_adds_per_work_item
    adds = min(adds, constants.barrier_adds_per_vector / execution.width)
    by_item = adds * device.add_s * size
    return execution.barriers * max(by_item, device.costs.get("barrier_s", 0.0)) / size


def _time_atomics(
    executed: OperationCounts, costs: Mapping[str, float], patterns: Sequence[AccessPattern]
) -> float:
    """Give the time of a work-item's atomics: those of one address wait for each other."""
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


def _list_volumes(traffic: Sequence[LevelTraffic]) -> dict[str, float]:
    volumes = {}
    near = "L1"
    for one in traffic:
        volumes[f"{one.name}_to_{near}"] = one.loaded_bytes
        volumes[f"{near}_to_{one.name}"] = one.stored_bytes
        near = one.name
    return volumes


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
