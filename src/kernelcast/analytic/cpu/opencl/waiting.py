"""Time that cores wait for data at addresses that depend on data."""

from collections.abc import Sequence

from kernelcast.analytic.cpu.opencl.constants import WorkItemConstants
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions.modelled_launch import ModelledLaunch


def time_waiting(
    launch: ModelledLaunch,
    device: CpuDevice,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    constants: WorkItemConstants,
) -> float:
    """Give the seconds of one core per work-item.

    Neighbouring lines of one work-item's stream are found by prefetchers: a wait is counted for
    each different line of a work-group, not for each access.
    """
    total = 0.0
    for one in patterns:
        if one.groups or one.is_local or not one.recorded:
            continue
        is_chained = one.access.buffer in one.access.sources
        total += (
            _count_jumps(one, device.line_bytes)
            * _expect_latency(launch, device, one)
            / _overlap(execution, constants, one.issued, is_chained=is_chained)
        )
    return total


def _count_jumps(pattern: AccessPattern, line_bytes: int) -> float:
    """Give the accesses of a work-item that leave the line of the one before, and the next."""
    jumps = items = 0
    for one in pattern.recorded:
        lines = one.table // line_bytes
        step = lines[:, 1:] - lines[:, :-1]
        valid = one.table[:, 1:] >= 0
        jumps += int((((step < 0) | (step > 1)) & valid).sum()) + int((one.table[:, :1] >= 0).sum())
        items += len(one.table)
    return jumps / items if items else 0.0


def _expect_latency(launch: ModelledLaunch, device: CpuDevice, pattern: AccessPattern) -> float:
    size = launch.buffers.get(pattern.access.buffer or "")
    expected, held = 0.0, 0.0
    for level in device.levels:
        reach = min(1.0, level.total_bytes / size) if size else 1.0
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
