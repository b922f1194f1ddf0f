"""How a CPU runtime runs a launch: which work-items go through the vector lanes together."""

from dataclasses import dataclass
from math import log2

import numpy as np

from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import NumberClass, OperationKind

_BRANCHES_PER_BARRIER = 1.5
"""A loop whose every iteration passes a barrier has one branch per barrier; with an if in each
iteration, compilers no longer vectorise what lies between."""
_MOST_GUARDS = 8
"""Branches of a work-item that compilers turn into masks where there is no loop."""
_MOST_COPIES = 32
"""Iterations of nested loops that compilers write out one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The loop over work-items."""

    width: int
    """Neighbours along dimension 0 that run in the lanes of one vector; 1 if they run one after the
    other."""
    barriers: float = 0.0
    """Barriers that a work-item passes."""
    efficiency: float = 1.0
    """Share of the lanes that do useful work: all alternatives that some lane takes are issued for
    all of them."""

    @property
    def steps_together(self) -> bool:
        """Whether all work-items of a work-group do one part of the kernel before the next.

        Else a work-item (or a vector of them) runs to its end first.
        """
        return self.barriers > 0


def find_execution(launch: ModelledLaunch, device: CpuDevice) -> Execution:
    """Find how a launch is run."""
    barriers = launch.executed.count(OperationKind.BARRIER)
    width = _choose_width(launch, device, barriers)
    efficiency = 1.0
    narrowest = min(launch.warps, key=lambda one: one.width, default=None)
    if narrowest is not None and width > 1:
        # The logarithm is linear in the width's.
        share = min(1.0, log2(width) / log2(narrowest.width))
        efficiency = max(narrowest.lane_efficiency, 1 / narrowest.width) ** share
    return Execution(width=width, barriers=barriers, efficiency=efficiency)


def _choose_width(launch: ModelledLaunch, device: CpuDevice, barriers: float) -> int:
    if _is_wide_already(launch, device):
        return 1
    width = device.width
    if width == 1:
        branches = launch.executed.count(OperationKind.BRANCH)
        written_out = _count_written_out(launch)
        has_loops = barriers or written_out is None or branches - written_out > _MOST_GUARDS
        if has_loops and branches > _BRANCHES_PER_BARRIER * barriers:
            return 1
        if not barriers and _is_refused(launch, device):
            return 1
        width = device.lanes
    return 1 if launch.ndrange.known_local_size[0] % width else width


def _is_refused(launch: ModelledLaunch, device: CpuDevice) -> bool:
    """Tell whether LLVM makes no vectors of a loop over work-items, as its remarks say.

    It takes no loop that holds vectors of the kernel's own already, or calls a function of which
    there is no vector version. Barriers part a kernel into loops, most of which hold neither.
    """
    by_lane = () if device.functions is None else device.functions.by_lane
    return any(one.lanes > 1 for one in launch.accesses) or any(
        one.lanes > 1 or one.name in by_lane for one in launch.executed.operations
    )


def _count_written_out(launch: ModelledLaunch) -> int | None:
    """Count the iterations of a work-item's loops if compilers write all of them out."""
    copies: dict[tuple[str, ...], int] = {(): 0}
    for nest in {one.loops for one in launch.accesses}:
        path: tuple[str, ...] = ()
        times = 1
        for loop in nest:
            if loop.trip_count is None or loop.trip_count.symbols():
                return None
            times *= int(np.max(loop.trip_count.evaluate({})))
            path = (*path, loop.name)
            copies[path] = times
    return sum(copies.values()) if max(copies.values()) <= _MOST_COPIES else None


def _is_wide_already(launch: ModelledLaunch, device: CpuDevice) -> bool:
    """Tell whether most arithmetic is on vectors that fill half a register or more.

    Intel's runtime tells by its sub-group size that it leaves such kernels as they are.
    """
    wide = total = 0.0
    register_bits = 32 * max(device.lanes, device.width)
    for operation, times in launch.executed.operations.items():
        if operation.number is NumberClass.FLOAT:
            fills = 2 * operation.lanes * max(32, operation.bits) >= register_bits
            wide += times * (operation.lanes > 1 and fills)
            total += times
    return total > 0 and wide > total / 2
