"""Time that cores wait for data at addresses that depend on data."""

from collections.abc import Sequence

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import ABSENT
from kernelcast.analytic.cpu.opencl.constants import WorkItemConstants
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch


def time_waiting(
    launch: ModelledLaunch,
    device: CpuDevice,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    constants: WorkItemConstants,
) -> float:
    """Give the seconds of one core per work-item.

    A wait is counted for each line that a work-group has not touched before, not for each access.
    Neighbouring lines of one work-item's stream are found by prefetchers, and nobody waits for
    what is stored.
    """
    total = 0.0
    for one in patterns:
        if one.groups or one.is_local or not one.recorded or one.access.kind is AccessKind.STORE:
            continue
        is_chained = one.access.buffer in one.access.sources
        total += (
            _count_jumps(one, device.line_bytes)
            * _expect_latency(launch, device, one)
            / _overlap(execution, constants, one.issued, is_chained=is_chained)
        )
    return total


def _count_jumps(pattern: AccessPattern, line_bytes: int) -> float:
    """Give the lines per work-item that are new to its work-group and far from the last one."""
    jumps = items = 0
    for one in pattern.recorded:
        valid = one.table != ABSENT
        lines = one.table[valid] // line_bytes
        first = np.zeros(lines.shape, dtype=np.bool_)
        first[np.unique(lines, return_index=True)[1]] = True
        steps = np.diff(lines, prepend=lines[:1] - 2)
        jumps += int((first & ((steps < 0) | (steps > 1))).sum())
        items += len(one.table)
    return jumps / items if items else 0.0


def _expect_latency(launch: ModelledLaunch, device: CpuDevice, pattern: AccessPattern) -> float:
    size = launch.buffers.get(pattern.access.buffer or "")
    expected, held = 0.0, 0.0
    for level in device.levels:
        reach = min(1.0, level.reach_bytes / size) if size else 1.0
        expected += max(0.0, reach - held) * level.latency_s
        held = max(held, reach)
    return expected


def _overlap(
    execution: Execution, constants: WorkItemConstants, issued: float, *, is_chained: bool
) -> float:
    """Give the misses that are waited for at once; lanes that have ended wait for nothing."""
    if execution.width == 1:
        return 1.0 if is_chained else constants.scalar_misses
    return min(float(execution.width), constants.gather_misses) / issued
