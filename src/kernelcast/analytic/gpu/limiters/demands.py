"""What a launch asks of a GPU: volumes, instructions, waits, atomics, bank conflicts, pages."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.analytic.gpu.volumes.listed import evaluate_groups
from kernelcast.analytic.gpu.volumes.warps import count_conflicts
from kernelcast.expressions import TRUE, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch, WarpWork
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace, OperationCounts, OperationKind


def count_atomics(accesses: Sequence[MemoryAccess], executed: OperationCounts) -> dict[str, float]:
    """Count the atomics of a work-item by where they go: ``global_same``, all work-items to one
    address, ``global_distinct`` and ``local_distinct``."""
    # Places that call the same function count as executed equally often; an atomic whose place is
    # not known counts as a global one on distinct addresses.
    sites = [one for one in accesses if one.kind is AccessKind.ATOMIC]
    found: dict[str, float] = defaultdict(float)
    for operation, times in executed.operations.items():
        if operation.kind is not OperationKind.ATOMIC:
            continue
        called = [one for one in sites if one.text.startswith(f"{operation.name}(")]
        own = called if operation.name and called else sites
        for site in own:
            is_same = site.offset_bytes is not None and site.offset_bytes.is_parameter
            place = "global_same" if is_same else "global_distinct"
            place = "local_distinct" if site.space is MemorySpace.LOCAL else place
            found[place] += times / len(own)
        if not own:
            found["global_distinct"] += times
    return found


SECTOR_BYTES = 32
_UNROLLED = 4
"""Iterations whose loads compilers keep in flight together."""
_THROUGH_L1 = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Work of a launch by the part of the GPU that does it."""

    work_groups: int
    work_group_size: int
    warps_per_work_group: int
    resident: int
    """Work-groups of the launch, and those that a compute unit holds at once."""
    l1_cycles: float
    """Per warp; bytes are of the launch, operations and atomics means of a work-item."""
    l2_load_bytes: float
    l2_store_bytes: float
    dram_load_bytes: float
    dram_store_bytes: float
    kept_share: float = 0.0
    behind_share: float = 0.0
    """Part of the bytes of the DRAM that do not move, since L2 has them from the launch before, and
    part of the others that a cache behind L2 has."""
    half_warp_cycles: float = 0.0
    hit_share: float = 1.0
    """Part of the sectors that warps ask L1 for which it has."""
    lines: float = 0.0
    """Lines of L1 that the loads of a warp look up, each instruction for itself."""
    local_ways: float = 1.0
    """Cycles of local memory per access of a warp over those without bank conflicts."""
    pages: float = 0.0
    """Pages of 2 MiB that a work-group uses at once."""
    rounds: float = 1.0
    """Times that a work-item waits for loads, one after the other."""
    work: WarpWork | None = None
    executed: OperationCounts = NOTHING
    atomics: Mapping[str, float] = field(default_factory=dict)

    @property
    def work_items(self) -> int:
        """Work-items of the launch, the last work-group counted as full."""
        return self.work_groups * self.work_group_size

    @property
    def warps(self) -> int:
        return self.work_groups * self.warps_per_work_group


def make_demands(launch: ModelledLaunch, volumes: GpuVolumes, warp_width: int) -> Demands:
    """Collect what a launch asks of a GPU; `assess` tells how long that takes."""
    return Demands(
        work_groups=volumes.work_groups,
        work_group_size=volumes.work_group_size,
        warps_per_work_group=volumes.occupancy.warps_per_work_group,
        resident=volumes.occupancy.work_groups,
        l1_cycles=volumes.l1.warp_cycles,
        half_warp_cycles=volumes.l1.half_warp_cycles,
        hit_share=max(1 - volumes.l1.loaded_bytes / max(volumes.l1.requested_bytes, 1.0), 0.0),
        l2_load_bytes=volumes.l2_load_bytes,
        l2_store_bytes=volumes.l2_store_bytes,
        dram_load_bytes=volumes.dram_load_bytes,
        dram_store_bytes=volumes.dram_store_bytes,
        kept_share=volumes.kept_share,
        behind_share=volumes.behind_share,
        lines=volumes.l1.load_lines,
        local_ways=count_local_ways(launch, warp_width),
        pages=min(
            volumes.group_pages,
            volumes.wave.tlb_pages,
            (volumes.l1.compulsory_bytes + volumes.l1.stored_bytes) / SECTOR_BYTES,
        ),
        rounds=count_rounds(launch.accesses, volumes.l1.load_requests)
        if launch.work is None
        else max(launch.work.load_rounds, 1.0),
        work=launch.work,
        executed=launch.executed,
        atomics=count_atomics(launch.accesses, launch.executed),
    )


def count_rounds(accesses: Sequence[MemoryAccess], load_requests: float) -> float:
    """Count how often a work-item waits for loads, one wait after the other."""
    # Loads of straight-line code are in flight together, as are those of a few iterations of a
    # loop; a load whose address was loaded waits for that one first. In a loop where a load gives
    # the address of the next one, as along a linked list, every iteration waits for the one before.
    loads = [one for one in accesses if one.kind is AccessKind.LOAD and one.space in _THROUGH_L1]
    looped = [one for one in loads if one.loops]
    straight = [one for one in loads if not one.loops]
    iterations = max(load_requests - len(straight), 0.0) / len(looped) if looped else 0.0
    depth, is_endless = _measure_depth(looped)
    batches = max(iterations / (1 if is_endless else _UNROLLED), 1.0)
    return max(_measure_depth(straight)[0] + batches * depth, 1.0)


def _measure_depth(loads: Sequence[MemoryAccess]) -> tuple[int, bool]:
    """Count the loads of the longest chain in which each gives the next one's address.

    And tell whether it has no end, since a load's address depends on what it loads.
    """
    names = {one.buffer for one in loads}
    depth, most = 0, len(names)
    while names and depth <= most:
        depth += 1
        names = {
            one.buffer
            for one in loads
            if one.pattern is AddressPattern.INDIRECT and names.intersection(one.sources)
        }
    return min(depth, most), depth > most


def count_local_ways(launch: ModelledLaunch, warp_width: int) -> float:
    """Count how often banks of local memory are read per access, mean over the accesses."""
    known = []
    local = [one for one in launch.accesses if one.space is MemorySpace.LOCAL and one.offset_bytes]
    for one in local[:16]:  # more hardly change a kernel's mean
        first = {Symbol(SymbolKind.LOOP, loop.name): 0 for loop in one.loops}
        offset = one.offset_bytes.substitute(first) if one.offset_bytes else None
        bare = replace(one, offset_bytes=offset, loops=(), guard=TRUE)
        with suppress(InputError):
            groups, _ = evaluate_groups(bare, launch, warp_width)
            rows = next(iter(groups.values()))[:1]
            word = max(one.bytes, _BANK_BYTES)
            banks = max(_BANKS * _BANK_BYTES // word, 1)
            parts = max(np.unique(rows // word).size / banks, 1.0)
            known.append(max(float(count_conflicts(rows, word, banks)[0]) / parts, 1.0))
    return sum(known) / len(known) if known else 1.0


_BANKS, _BANK_BYTES = 32, 4
