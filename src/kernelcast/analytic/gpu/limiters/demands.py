"""What a launch asks of a GPU: volumes, instructions, waits, atomics, bank conflicts, pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.expressions import Bindings, EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.modelled_launch import NOTHING, ModelledLaunch, WarpWork
from kernelcast.records.operations import MemorySpace, Operation, OperationCounts, OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomics:
    """Atomic operations of a work-item, mean."""

    same: float = 0.0
    """Global, all work-items on one address."""
    distinct: float = 0.0
    """Global, on addresses that depend on the work-item or on data."""
    local: float = 0.0
    """On local memory."""


def count_atomics(accesses: Sequence[MemoryAccess], executed: OperationCounts) -> Atomics:
    """Tell executed atomics apart by the places in the source that they come from.

    Places that call the same function count as executed equally often; an atomic whose place is
    not known counts as a global one on distinct addresses.
    """
    sites = [one for one in accesses if one.kind is AccessKind.ATOMIC]
    found = {"same": 0.0, "distinct": 0.0, "local": 0.0}
    for operation, times in executed.operations.items():
        if operation.kind is not OperationKind.ATOMIC:
            continue
        own = _find_sites(operation, sites)
        for site in own:
            found[_classify(site)] += times / len(own)
        if not own:
            found["distinct"] += times
    return Atomics(same=found["same"], distinct=found["distinct"], local=found["local"])


def _find_sites(operation: Operation, sites: Sequence[MemoryAccess]) -> list[MemoryAccess]:
    called = [one for one in sites if one.text.startswith(f"{operation.name}(")]
    return called if operation.name and called else list(sites)


def _classify(access: MemoryAccess) -> str:
    if access.space is MemorySpace.LOCAL:
        return "local"
    is_same = access.offset_bytes is not None and access.offset_bytes.is_parameter
    return "same" if is_same else "distinct"


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
    hit_share: float = 1.0
    """Part of the sectors that warps ask L1 for which it has."""
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
        hit_share=max(1 - volumes.l1.loaded_bytes / max(volumes.l1.requested_bytes, 1.0), 0.0),
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


IntArray = npt.NDArray[np.int64]


def list_warp(launch: ModelledLaunch, warp_width: int) -> IntArray:
    """Give the local linear ids of a work-group's first warp."""
    return np.arange(min(warp_width, launch.ndrange.work_group_size))


def bind_lanes(launch: ModelledLaunch, lanes: IntArray, work_groups: int) -> Bindings:
    """Give the ids of some work-items of some work-groups."""
    bound: dict[Symbol, Value] = {**bind_names(launch.scalars)}
    for axis in list_axes(launch.ndrange):
        first = axis.groups // 2
        end = min(first + work_groups, axis.groups) if axis.number == 0 else first + 1
        groups = np.arange(first, end)[:, np.newaxis]
        bound |= axis.bind(groups, lanes[np.newaxis, :] % axis.local, axis.local)
        lanes = lanes // axis.local
    return bound


def find_offsets(access: MemoryAccess, ids: Bindings) -> IntArray | None:
    """Give the offsets of an access, all loops around it at their first iteration."""
    if access.offset_bytes is None:
        return None
    first = {Symbol(SymbolKind.LOOP, one.name): 0 for one in access.loops}
    try:
        return np.atleast_2d(access.offset_bytes.evaluate({**ids, **first} if first else ids))
    except EvaluationError:
        return None


_BANKS = 32
_BANK_BYTES = 4
_MOST_ACCESSES = 16
"""Beyond these a kernel's mean hardly changes, and its time limit matters."""


def count_local_ways(launch: ModelledLaunch, warp_width: int) -> float:
    """Count how often banks of local memory are read per access, mean over the accesses."""
    local = [
        one
        for one in launch.accesses
        if one.space is MemorySpace.LOCAL and one.offset_bytes is not None
    ][:_MOST_ACCESSES]
    if not local:
        return 1.0
    ids = bind_lanes(launch, list_warp(launch, warp_width), 1)
    known = [
        _count_ways(offsets, one.bytes)
        for one in local
        if (offsets := find_offsets(one, ids)) is not None
    ]
    return sum(known) / len(known) if known else 1.0


def _count_ways(offsets: IntArray, size: int) -> float:
    words = np.unique(offsets // _BANK_BYTES)
    # Wider elements are served in parts; each part's conflicts are those of its first word.
    stride = max(size // _BANK_BYTES, 1)
    per_bank = np.bincount(words // stride % max(_BANKS // stride, 1))
    parts = max(len(words) * stride / _BANKS, 1.0)
    return max(float(per_bank.max()) / parts, 1.0)


_PAGE_BYTES = 2**21
_MAPPED = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


def count_pages(launch: ModelledLaunch, volumes: GpuVolumes, enough: float) -> float:
    """Count the pages of 2 MiB that a work-group uses at once.

    The pages of its wave and the sectors it moves bound them from above; where that bound is low
    enough, it is the answer. Of a loop one iteration counts. Addresses that depend on data are
    left out: a random walk over 1.7 GB takes 314 ns a load on a V100, one over 24 MB 308 ns.
    """
    sectors = (volumes.l1.compulsory_bytes + volumes.l1.stored_bytes) / SECTOR_BYTES
    most = min(volumes.wave.tlb_pages, sectors)
    accesses = [one for one in launch.accesses if one.space in _MAPPED]
    if most <= enough:
        return most
    corners = _list_corners(launch)
    ids = bind_lanes(launch, corners.ravel(), 1)
    found: dict[str | None, list[IntArray]] = {}
    for one in accesses:
        offsets = find_offsets(one, ids)
        if offsets is not None:
            same = np.broadcast_to(offsets, (1, corners.size))
            found.setdefault(one.buffer, []).append(same)
    touched = 0
    for parts in found.values():
        places = np.stack(parts).reshape(-1, *corners.shape)
        if not _fit_pages(places):
            return most
        touched += np.unique(places // _PAGE_BYTES).size
    return min(float(touched), most)


def _list_corners(launch: ModelledLaunch) -> IntArray:
    """Give local linear ids: all of dimension 2, first and last of dimensions 1 and 0."""
    x, y, z = (*launch.ndrange.known_local_size, 1, 1)[:3]
    layers = np.arange(z)[:, np.newaxis, np.newaxis] * x * y
    rows = np.array([0, y - 1])[:, np.newaxis] * x
    corners: IntArray = layers + rows + np.array([0, x - 1])
    return corners


def _fit_pages(places: IntArray) -> bool:
    """Tell whether no page lies between corners: then corners touch every page there is."""
    return all(int(np.ptp(places, axis=axis).max()) <= _PAGE_BYTES for axis in (2, 3))
