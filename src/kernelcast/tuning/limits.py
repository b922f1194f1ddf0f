"""Which configurations a device cannot take, told without asking its compiler."""

import re

from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.problem import Problem

_MODERN_LANGUAGE = re.compile(r"-cl-std=CL[23]\.\d")


def find_obstacle(
    problem: Problem, device: DeviceDescription, *, local_bytes: int = 0
) -> str | None:
    """Say why a device cannot take a launch; None if nothing speaks against it."""
    return _check_sizes(problem, device) or _check_memory(problem, device, local_bytes)


def _check_sizes(problem: Problem, device: DeviceDescription) -> str | None:
    ndrange = problem.ndrange
    if ndrange.local_size is None:
        return None
    if ndrange.work_group_size > device.max_work_group_size:
        return (
            f"{ndrange.work_group_size} work-items a work-group, the device allows "
            f"{device.max_work_group_size}"
        )
    for size, most in zip(ndrange.local_size, device.max_work_item_sizes, strict=False):
        if size > most:
            return f"local size {size} in a dimension, the device allows {most}"
    is_modern = any(_MODERN_LANGUAGE.fullmatch(one) for one in problem.kernel.build_options)
    if not ndrange.is_uniform and not (device.has_non_uniform_work_groups and is_modern):
        return f"local size {ndrange.local_size} does not divide {ndrange.global_size}"
    return None


def _check_memory(problem: Problem, device: DeviceDescription, local_bytes: int) -> str | None:
    given = sum(one.bytes for one in problem.arguments if isinstance(one, LocalArgument))
    buffers = [one.bytes for one in problem.arguments if isinstance(one, BufferArgument)]
    for what, needed, most in (
        ("of local memory", local_bytes + given, device.local_memory_bytes),
        ("in one buffer", max(buffers, default=0), device.max_allocation_bytes),
        ("of buffers", sum(buffers), device.global_memory_bytes),
    ):
        if needed > most:
            return f"{needed:,} bytes {what}, the device allows {most:,}"
    return None
