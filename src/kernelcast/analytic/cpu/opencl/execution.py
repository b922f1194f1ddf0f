"""How a CPU runtime runs a launch: which work-items go through the vector lanes together."""

from dataclasses import dataclass
from math import log2

from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The loop over work-items."""

    width: int
    """Neighbours along dimension 0 that run in the lanes of one vector; 1 if they run one after the
    other."""
    efficiency: float = 1.0
    """Share of the lanes that do useful work: all alternatives that some lane takes are issued for
    all of them."""


def find_execution(launch: ModelledLaunch, device: CpuDevice) -> Execution:
    """Find how a launch is run."""
    width = device.width
    if width == 1 and not _is_refused(launch, device):
        width = device.lanes
    if launch.ndrange.known_local_size[0] % width:
        width = 1
    efficiency = 1.0
    narrowest = min(launch.warps, key=lambda one: one.width, default=None)
    if narrowest is not None and width > 1:
        # The logarithm is linear in the width's.
        share = min(1.0, log2(width) / log2(narrowest.width))
        efficiency = max(narrowest.lane_efficiency, 1 / narrowest.width) ** share
    return Execution(width=width, efficiency=efficiency)


def _is_refused(launch: ModelledLaunch, device: CpuDevice) -> bool:
    """Tell whether LLVM makes no vectors of a loop over work-items, as its remarks say.

    It takes no loop that holds another loop or a branch, vectors of the kernel's own, or calls of a
    function of which there is no vector version. Barriers part a kernel into loops, most of which
    hold neither vectors nor calls.
    """
    executed = launch.executed
    if executed.count(OperationKind.BRANCH) > 0:
        return True
    if executed.count(OperationKind.BARRIER) > 0:
        return False
    by_lane = () if device.functions is None else device.functions.by_lane
    return any(one.lanes > 1 for one in launch.accesses) or any(
        one.lanes > 1 or one.name in by_lane for one in executed.operations
    )
