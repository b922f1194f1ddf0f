"""The CPU model's answer for an OpenCL launch: seconds, and what bounds them."""

from collections.abc import Mapping, Sequence
from math import ceil

from kernelcast.analytic.cpu.opencl.constants import FITTED, WorkItemConstants
from kernelcast.analytic.cpu.opencl.core import CoreTimes, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, DeviceCache, read_device
from kernelcast.analytic.cpu.opencl.execution import Execution, find_execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern, find_patterns
from kernelcast.analytic.cpu.opencl.traffic import LevelTraffic, count_traffic
from kernelcast.analytic.cpu.opencl.waiting import time_waiting
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import OperationKind

MODEL = "cpu"
REVISION = 3
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
    overlaps with transfers from farther levels, as in the ECM model; transfers of different
    levels overlap. Where lanes of a vector part, all of them go through what any of them does.
    Barriers, atomics, the dispatch of work-groups and the launch come on top.
    """
    device = read_device(machine)
    execution = find_execution(launch, device)
    patterns = find_patterns(launch, execution)
    traffic = count_traffic(launch, device, execution, patterns)
    core = time_core(launch.executed, device, execution, patterns, constants)
    waiting = time_waiting(launch, device, execution, patterns, constants)
    limiters = _list_limiters(launch, device, core, waiting, traffic)
    limiters |= _list_overheads(launch, device, patterns, constants)
    cores = _share(launch, device)
    near = max(core.seconds, waiting) * cores
    # Farther levels were measured with the core's own loads and stores in their times.
    beyond = [_time_transfers(one, device, device.levels[0]) for one in traffic]
    far = max(beyond, default=0.0)
    rest = sum(limiters[one] for one in ("atomics", "barriers", "dispatch", "launch"))
    seconds = near + far + rest
    updates = launch.ndrange.work_item_count * launch.updates_per_work_item
    return AnalyticEstimate(
        model=MODEL,
        machine=machine.id,
        seconds=seconds,
        limiter=max(limiters, key=lambda one: limiters[one]),
        limiters=limiters,
        volumes=_list_volumes(traffic),
        quantities={
            **_list_quantities(launch, execution, traffic, core, device.line_bytes),
            "updates_per_s": updates / seconds,
        },
        notes=tuple(dict.fromkeys((*launch.notes, *device.notes, *core.notes))),
    )


def _share(launch: ModelledLaunch, device: CpuDevice) -> float:
    """Give the work-items of the core that has most work-groups."""
    groups = launch.ndrange.work_group_count
    rounds = ceil(groups / device.cores)
    return rounds / groups * launch.ndrange.work_item_count


def _list_limiters(
    launch: ModelledLaunch,
    device: CpuDevice,
    core: CoreTimes,
    waiting: float,
    traffic: Sequence[LevelTraffic],
) -> dict[str, float]:
    items = _share(launch, device)
    times = {name: seconds * items for name, seconds in core.ports.items()}
    times["chain"] = core.chain_s * items
    times["latency"] = waiting * items
    times |= {one.name: _time_transfers(one, device) for one in traffic}
    return times


def _time_transfers(
    traffic: LevelTraffic, device: CpuDevice, beside: DeviceCache | None = None
) -> float:
    """Give the time of what crosses a boundary, less that of a nearer cache where one is given."""
    level = next(one for one in device.levels if one.name == traffic.name)
    load_s, store_s = level.load_s_per_byte, level.store_s_per_byte
    if beside is not None:
        load_s = max(0.0, load_s - beside.load_s_per_byte)
        store_s = max(0.0, store_s - beside.store_s_per_byte)
    return traffic.loaded_bytes * load_s + traffic.stored_bytes * store_s


def _list_overheads(
    launch: ModelledLaunch,
    device: CpuDevice,
    patterns: Sequence[AccessPattern],
    constants: WorkItemConstants,
) -> dict[str, float]:
    costs = device.costs
    barriers = launch.executed.count(OperationKind.BARRIER)
    by_item = constants.barrier_adds_per_work_item * device.add_s * launch.ndrange.work_group_size
    barrier_s = max(by_item, costs.get("barrier_s", 0.0))
    per_item = barrier_s / launch.ndrange.work_group_size
    return {
        "atomics": _time_atomics(launch, costs, patterns),
        "barriers": barriers * per_item * _share(launch, device),
        "dispatch": launch.ndrange.work_group_count * costs.get("work_group_dispatch_s", 0.0),
        "launch": costs.get("launch_s", 0.0),
    }


def _time_atomics(
    launch: ModelledLaunch, costs: Mapping[str, float], patterns: Sequence[AccessPattern]
) -> float:
    """Give the time of all atomics: those of one address wait for each other."""
    counted = launch.executed.count(OperationKind.ATOMIC)
    found = [one for one in patterns if one.access.kind is AccessKind.ATOMIC]
    total = sum(one.executions for one in found)
    seconds = 0.0
    for one in found:
        space = "local" if one.is_local else "global"
        rate = costs.get(f"atomic_{space}_distinct_per_s")
        if rate and total:
            seconds += counted * one.executions / total / rate
    return seconds * launch.ndrange.work_item_count


def _list_volumes(traffic: Sequence[LevelTraffic]) -> dict[str, float]:
    nearer = ["L1", *(one.name for one in traffic)]
    volumes = {}
    for near, one in zip(nearer, traffic, strict=False):
        volumes[f"{one.name}_to_{near}"] = one.loaded_bytes
        volumes[f"{near}_to_{one.name}"] = one.stored_bytes
    return volumes


def _list_quantities(
    launch: ModelledLaunch,
    execution: Execution,
    traffic: Sequence[LevelTraffic],
    core: CoreTimes,
    line_bytes: int,
) -> dict[str, float]:
    groups = launch.ndrange.work_group_count
    counts = launch.executed
    issued = sum(counts.operations.values()) + sum(counts.memory.values())
    found = {}
    # Lines over instructions, as the sampling paper's Table 1 counts misses.
    for name, one in zip(("l1_miss_ratio", "l2_miss_ratio"), traffic, strict=False):
        if issued:
            lines = one.loaded_bytes / line_bytes
            found[name] = lines / issued / launch.ndrange.work_item_count
    for one in traffic:
        name = one.name.lower()
        found[f"{name}_load_bytes_per_work_group"] = one.loaded_bytes / groups
        found[f"{name}_store_bytes_per_work_group"] = one.stored_bytes / groups
    return {
        **found,
        "vector_work_items_count": float(execution.width),
        "core_s_per_work_item": core.seconds,
        "updates_per_work_item": float(launch.updates_per_work_item),
    }
