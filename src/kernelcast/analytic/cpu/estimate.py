"""The CPU model's answer for an OpenCL launch: seconds, and what bounds them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.addresses import ABSENT, Groups, list_distinct
from kernelcast.analytic.cpu.opencl.core import (
    AccessPattern,
    add_up,
    find_execution,
    find_patterns,
    time_core,
)
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.expressions.accesses import NOTHING, AccessKind, ModelledLaunch
from kernelcast.expressions.symbols import IntArray
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import OperationKind

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class LevelTraffic(NamedTuple):
    """What a level sends to and gets from the nearer one, over the whole launch."""

    name: str
    """The farther level: ``L2``, ``L3``, ``DRAM``."""
    loaded_bytes: float
    stored_bytes: float
    """Towards the cores and away from them."""
    seconds: float
    """All of its time, as farther levels were measured: with what nearer ones take in it."""
    added_s: float
    """The same without that."""


def count_traffic(
    launch: ModelledLaunch, patterns: Sequence[AccessPattern], device: CpuDevice
) -> list[LevelTraffic]:
    """Count what crosses each boundary on a launch's way through its work-groups."""
    grid, line_bytes, buffers = Groups(launch.ndrange), device.line_bytes, launch.buffers
    jumps: list[tuple[str, float, bool]] = []  # buffer, lines of a work-group, whether a load
    by_buffer: dict[tuple[str, bool], list[AccessPattern]] = defaultdict(list)
    for one in patterns:
        buffer, is_load = one.access.buffer or "", one.access.kind is AccessKind.LOAD
        if one.is_local:
            continue
        if one.access.offset_bytes is not None:
            by_buffer[buffer, is_load].append(one)
        else:
            size = one.access.bytes
            touched = [each.list_lines(size, line_bytes).size for each in one.groups.values()]
            jumps.append((buffer, float(np.mean(touched)), is_load))
    # Loads and stores: all lines of a work-group, those that its neighbour along x has not
    # touched, neither the one along y, neither the one along z.
    fresh: dict[bool, npt.NDArray[np.float64]] = {True: np.zeros(4), False: np.zeros(4)}
    for (_, is_load), accesses in by_buffer.items():
        fresh[is_load] += _count_fresh(accesses, grid, line_bytes)
    both = fresh[True] + fresh[False]
    x, y, z = grid.counts
    scale = x * y * z * line_bytes
    group, row, plane = both[0] + both[1], both[1] * x, both[2] * x * y
    # What the whole launch touches at most.
    total_bytes = both[3] * scale
    if total := sum(buffers.get(one, 0) for one in {one.buffer or "" for one in launch.accesses}):
        jumping = {one.buffer or "" for one in launch.accesses if one.offset_bytes is None}
        total_bytes = min(total_bytes + sum(buffers.get(one, 0) for one in jumping), total)
    found = []
    for nearer, level in pairwise(device.levels):
        # A share of the lines is there for neighbours along x, y and z.
        held = [_share_held(nearer.size_bytes, one * line_bytes) for one in (group, row, plane)]
        loaded, stored = (
            float(fresh[is_load][0] + np.dot(held, np.diff(fresh[is_load])))
            for is_load in (True, False)
        )
        for buffer, lines, is_load in jumps:
            known = buffers.get(buffer)
            missed = lines * (1 - (min(1.0, nearer.size_bytes / known) if known else 0.0))
            loaded += missed
            stored += 0.0 if is_load else missed
        # A launch that is repeated finds what the last one has left.
        moved = scale * (1 - _share_held(nearer.reach_bytes, total_bytes))
        load, store = loaded * moved, stored * moved
        found.append(
            LevelTraffic(
                level.name,
                load,
                store,
                load * level.load_s_per_byte + store * level.store_s_per_byte,
                load * max(0.0, level.load_s_per_byte - nearer.load_s_per_byte)
                + store * max(0.0, level.store_s_per_byte - nearer.store_s_per_byte),
            )
        )
    return found


def _count_fresh(
    accesses: Sequence[AccessPattern], grid: Groups, line_bytes: int
) -> npt.NDArray[np.float64]:
    """Count a buffer's lines that are new to a work-group, averaged over the places looked at."""

    def unite(place: int) -> IntArray:
        parts = [one.groups[place].list_lines(one.access.bytes, line_bytes) for one in accesses]
        return parts[0] if len(parts) == 1 else list_distinct(np.concatenate(parts))

    fresh = np.zeros(4)
    for place in grid.places:
        repeats = max(one.groups[place].repeats for one in accesses) / len(grid.places)
        own = unite(place)
        new, known = own.size, _NOTHING
        fresh[0] += own.size * repeats
        for axis in range(3):
            other = grid.before(place, axis)
            if other is not None:
                known = list_distinct(np.concatenate([known, unite(other)]))
                new = int(list_distinct(np.concatenate([own, known])).size - known.size)
            fresh[axis + 1] += new * repeats
    return fresh


def _share_held(size_bytes: float, needed_bytes: float) -> float:
    """Compute 1 for what fits, 0 for twice as much, and a share between."""
    return min(1.0, max(0.0, 2 - needed_bytes / size_bytes))


MODEL = "cpu"
REVISION = 12
"""Grows when estimates change, so that stored ones tell which model they are of."""


def estimate_cpu(launch: ModelledLaunch, machine: MachineDescription) -> AnalyticEstimate:
    """Estimate the time of an OpenCL launch on a CPU device."""
    # Cores compute, or wait for data at addresses that depend on data, while nothing of that
    # overlaps with transfers from farther levels, nor these with each other, as in the ECM model.
    # Where lanes of a vector part, all of them go through what any of them does.
    device = read_device(machine)
    if device.never_jumps and launch.unjumped != NOTHING:
        launch = replace(launch, executed=launch.unjumped)
    counts, ndrange = launch.executed, launch.ndrange
    width, efficiency = find_execution(launch, device)
    gathers = device.functions is not None and device.functions.gathers_narrowed
    patterns = find_patterns(launch, width, gathers_narrowed=gathers)
    core, notes = time_core(counts, device, width, patterns, efficiency)
    core_s = add_up(core)
    waiting = sum(_wait(launch, device, one) for one in patterns)
    traffic = count_traffic(launch, patterns, device)
    groups, all_items = prod(ndrange.group_counts), ndrange.work_item_count
    # The core that has most work-groups is waited for.
    items = ceil(groups / device.cores) / groups * all_items
    atomics = [one for one in patterns if one.access.kind is AccessKind.ATOMIC]
    all_atomics, atomics_s = sum(one.executions for one in atomics), 0.0
    for one in atomics:
        rate = device.costs.get(f"atomic_{'local' if one.is_local else 'global'}_distinct_per_s")
        if rate and all_atomics:
            executed = counts.count(OperationKind.ATOMIC) * one.executions
            atomics_s += executed / all_atomics / rate
    barrier_s = counts.count(OperationKind.BARRIER) * device.costs.get("barrier_s", 0.0)
    overheads = {
        "atomics": atomics_s * all_items,
        "barriers": barrier_s / ndrange.work_group_size * items,
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    rates = {**core, "latency": waiting}
    limiters = {name: seconds * items for name, seconds in rates.items()}
    limiters |= {one.name: one.seconds for one in traffic} | overheads
    near = max(core_s, waiting) * items
    seconds = near + sum(one.added_s for one in traffic) + sum(overheads.values())
    volumes, nearer, quantities = {}, "L1", {}
    issued = sum(counts.operations.values()) + sum(counts.memory.values())
    for level in traffic:
        volumes[f"{level.name}_to_{nearer}"] = level.loaded_bytes
        volumes[f"{nearer}_to_{level.name}"] = level.stored_bytes
        if nearer in {"L1", "L2"} and issued:
            # Lines over instructions, as the sampling paper's Table 1 counts misses.
            issued_bytes = issued * all_items * device.line_bytes
            quantities[f"{nearer.lower()}_miss_ratio"] = level.loaded_bytes / issued_bytes
        nearer = level.name
        name = f"{nearer.lower()}_%s_bytes_per_work_group"
        quantities[name % "load"] = level.loaded_bytes / groups
        quantities[name % "store"] = level.stored_bytes / groups
    return AnalyticEstimate(
        model=MODEL,
        machine=device.id,
        seconds=seconds,
        limiter=max(limiters, key=limiters.__getitem__),
        limiters=limiters,
        volumes=volumes,
        quantities={
            **quantities,
            "vector_work_items_count": float(width),
            "core_s_per_work_item": core_s,
            "updates_per_work_item": float(launch.updates_per_work_item),
            "updates_per_s": all_items * launch.updates_per_work_item / seconds,
        },
        notes=tuple(dict.fromkeys((*launch.notes, *device.notes, *notes))),
        doubt=launch.doubt,
    )


def _wait(launch: ModelledLaunch, device: CpuDevice, pattern: AccessPattern) -> float:
    """Time that a core waits, per work-item, for data at addresses that depend on data."""
    access = pattern.access
    # A wait is counted for each line that a work-group has not touched before, not for each access.
    # Nothing waits for what is stored.
    is_known = access.offset_bytes is not None
    if is_known or pattern.is_local or access.kind is AccessKind.STORE:
        return 0.0
    lines = sum(np.unique(one.table[one.table != ABSENT] // device.line_bytes).size
                for one in pattern.groups.values())  # fmt: skip
    jumps = lines / sum(len(one.table) for one in pattern.groups.values())
    size = launch.buffers.get(access.buffer or "")
    latency = held = 0.0
    for level in device.levels:
        reach = min(1.0, level.reach_bytes / size) if size else 1.0
        latency += max(0.0, reach - held) * level.latency_s
        held = max(held, reach)
    # Cache misses that a core waits for at once, of independent loads.
    return jumps * latency / 12.0
