"""What a whole launch asks of a GPU, before anything is divided by a rate."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelcast.analytic.gpu.limiters.atomics import Atomics, count_atomics
from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch, WarpWork
from kernelcast.records.operations import MemorySpace, OperationCounts

SECTOR_BYTES = 32
_UNROLLED = 4
"""Iterations whose loads compilers keep in flight together."""
_THROUGH_L1 = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """What the addresses of single warps and work-groups tell, beyond volumes."""

    lines: float = 0.0
    """Lines of L1 that the loads of a warp look up, each instruction for itself."""
    local_ways: float = 1.0
    """Cycles of local memory per access of a warp over those without bank conflicts."""
    pages: float = 0.0
    """Pages of 2 MiB that a work-group uses at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Work of a launch by the part of the GPU that does it.

    Parameters
    ----------
    work_groups, work_group_size : int
        Of the launch.
    warps_per_work_group : int
        The last one perhaps partial.
    resident : int
        Work-groups that a compute unit holds at once.
    l1_cycles, half_warp_cycles : float
        Cycles of the L1 cache per warp: all accesses, by banks and tags or by the paper's count.
    l2_load_bytes, l2_store_bytes, dram_load_bytes, dram_store_bytes : float
        Bytes of the whole launch.
    patterns : Patterns
        What single warps and work-groups touch.
    rounds : float
        Times that a work-item waits for loads, one after the other.
    executed : OperationCounts
        Mean per work-item.
    atomics : Atomics
        Mean per work-item.
    """

    work_groups: int
    work_group_size: int
    warps_per_work_group: int
    resident: int
    l1_cycles: float
    l2_load_bytes: float
    l2_store_bytes: float
    dram_load_bytes: float
    dram_store_bytes: float
    half_warp_cycles: float = 0.0
    patterns: Patterns = Patterns()
    rounds: float = 1.0
    work: WarpWork | None = None
    executed: OperationCounts = NOTHING
    atomics: Atomics = field(default_factory=Atomics)

    @property
    def work_items(self) -> int:
        """Work-items of the launch, the last work-group counted as full."""
        return self.work_groups * self.work_group_size

    @property
    def warps(self) -> int:
        """Warps of the launch."""
        return self.work_groups * self.warps_per_work_group


def make_demands(launch: ModelledLaunch, volumes: GpuVolumes, patterns: Patterns) -> Demands:
    """Collect what a launch asks for."""
    return Demands(
        work_groups=volumes.work_groups,
        work_group_size=volumes.work_group_size,
        warps_per_work_group=volumes.occupancy.warps_per_work_group,
        resident=volumes.occupancy.work_groups,
        l1_cycles=volumes.l1.warp_cycles,
        half_warp_cycles=volumes.l1.half_warp_cycles,
        l2_load_bytes=volumes.l2_load_bytes,
        l2_store_bytes=volumes.l2_store_bytes,
        # Times are those of launches that are repeated: what L2 has kept comes from there.
        dram_load_bytes=(1 - volumes.kept_share) * volumes.dram_load_bytes,
        dram_store_bytes=(1 - volumes.kept_share) * volumes.dram_store_bytes,
        patterns=patterns,
        rounds=count_rounds(launch.accesses, volumes.l1.load_requests)
        if launch.work is None
        else max(launch.work.load_rounds, 1.0),
        work=launch.work,
        executed=launch.executed,
        atomics=count_atomics(launch.accesses, launch.executed),
    )


def count_rounds(accesses: Sequence[MemoryAccess], load_requests: float) -> float:
    """Count how often a work-item waits for loads, one wait after the other.

    Loads of straight-line code are in flight together, as are those of a few iterations of a
    loop; a load whose address was loaded waits for that one first. In a loop where a load gives the
    address of the next one, as along a linked list, every iteration waits for the one before.

    Parameters
    ----------
    load_requests : float
        Loads that a warp executes, iterations counted.

    Returns
    -------
    float
        At least 1.
    """
    loads = [one for one in accesses if one.kind is AccessKind.LOAD and one.space in _THROUGH_L1]
    looped = [one for one in loads if one.loops]
    straight = [one for one in loads if not one.loops]
    iterations = max(load_requests - len(straight), 0.0) / len(looped) if looped else 0.0
    together = 1 if _have_chain(looped) else _UNROLLED
    batches = max(iterations / together, 1.0) if looped else 0.0
    return max(_measure_depth(straight) + batches * _measure_depth(looped), 1.0)


def _have_chain(loads: Sequence[MemoryAccess]) -> bool:
    """Tell whether a load's address depends on what it loads, directly or by other loads."""
    needed: dict[str | None, set[str]] = {}
    for one in loads:
        if one.pattern is AddressPattern.INDIRECT:
            needed.setdefault(one.buffer, set()).update(one.sources)
    for start in needed:
        reached: set[str] = set()
        new = set(needed[start])
        while new:
            reached |= new
            new = set().union(*(needed.get(one, set()) for one in new)) - reached
        if start in reached:
            return True
    return False


def _measure_depth(loads: Sequence[MemoryAccess]) -> int:
    """Count the loads of the longest chain in which each gives the next one's address."""
    names = {one.buffer for one in loads}
    depth, most = (1, len(names)) if loads else (0, 0)
    while depth < most:
        names = {
            one.buffer
            for one in loads
            if one.pattern is AddressPattern.INDIRECT and names.intersection(one.sources)
        }
        if not names:
            break
        depth += 1
    return depth
