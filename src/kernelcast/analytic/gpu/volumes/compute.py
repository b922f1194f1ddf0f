"""Composes the volumes of a launch from its parts."""

import math

from kernelcast.analytic.gpu.hit_rates import HitRates, find_hit_rates
from kernelcast.analytic.gpu.machine import GpuMachine, compute_occupancy
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Clip, Grid, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.dram import Traffic, order_loads
from kernelcast.analytic.gpu.volumes.footprints import count_pages, divide_by_buffer
from kernelcast.analytic.gpu.volumes.l1 import FirstCache
from kernelcast.analytic.gpu.volumes.listed import (
    Accesses,
    ListedAccess,
    keep_boxes,
    keep_listed,
    list_access,
)
from kernelcast.analytic.gpu.volumes.record import GpuVolumes
from kernelcast.expressions import Condition
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace

_CACHED = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC)


def compute_volumes(
    launch: ModelledLaunch, machine: GpuMachine, rates: HitRates | None = None
) -> GpuVolumes:
    """Compute what a launch moves through the memory hierarchy."""
    rates = rates or find_hit_rates()
    grid = Grid.of(launch.ndrange)
    occupancy = compute_occupancy(launch, machine)
    accesses, notes = _sort_accesses(launch, machine)
    loads = [one for one in accesses if one.access.kind is not AccessKind.STORE]
    stores = [one for one in accesses if one.access.kind is not AccessKind.LOAD]
    loaded_boxes, stored_boxes = keep_boxes(loads), keep_boxes(stores)
    loaded_lists, stored_lists = keep_listed(loads), keep_listed(stores)
    has_lists = bool(loaded_lists or stored_lists)
    cache = FirstCache(grid, machine, occupancy, rates)
    load_costs, store_costs = cache.cost_loads(loads), cache.cost(stores, is_kept=False)
    # Whether what a work-item loads outside loops exceeds its registers.
    spreads = (
        not has_lists
        and rates.l2_reload is None
        and launch.registers is not None
        and not any(one.loops for one in loaded_boxes)
        and sum(one.access.bytes for one in loaded_boxes) > 4 * launch.registers
    )
    l1 = cache.compute(loads, load_costs, store_costs, is_spread=spreads)
    parts = divide_by_buffer(loads, grid), divide_by_buffer(stores, grid)
    whole = (*parts[0], *parts[1])
    if {one.access.buffer for one in loads} & {one.access.buffer for one in stores}:
        whole = divide_by_buffer(accesses, grid)
    depth = max(len(one.access.loops) for one in accesses)
    once = [
        divide_by_buffer([one.keep_inner(loops) for one in accesses], grid)
        for loops in range(depth)
    ]
    mixed = {id(one.access) for one in keep_listed(accesses) if one.is_random}
    placed = [one.keep_inner(0) for one in accesses if id(one.access) not in mixed]
    is_ordered = machine.architecture.spreads_loads and not has_lists
    traffic = Traffic(
        machine=machine,
        rates=rates,
        grid=grid,
        loads=parts[0],
        stores=parts[1],
        touched=[*once, whole],
        group_store_bytes=sum(one.sectors[-1] for one in store_costs)
        * machine.l1_sector_bytes
        * grid.work_groups,
        random_loads=[one for one in loaded_lists if one.is_random],
        random_stores=[one for one in stored_lists if one.is_random],
        are_stores_listed=bool(stored_lists),
        is_spread=spreads,
        ordered=order_loads(loaded_boxes, stored_boxes, grid) if is_ordered else None,
    )
    wave = traffic.compute_wave(occupancy.work_groups, l1)
    # All that the launch touches lies between two meetings with a datum when it is repeated.
    over = traffic.oversubscribe(grid.work_groups)
    behind_share, moved = 0.0, wave.loaded_bytes + wave.stored_bytes
    if machine.l3_bytes and moved:
        # What is met for the first time the cache behind L2 has from the launch before, what L2 has
        # lost since it was met in this launch from a layer of work-groups before.
        shared = sum(one.shared_bytes for one in wave.overlaps)
        again = wave.loaded_bytes - wave.row_load_bytes + shared
        distance = max((one.oversubscription for one in wave.overlaps), default=0.0)
        first_hit, again_hit = (
            rates.l2_overlap.at(one * machine.l2_total_bytes / machine.l3_bytes)
            for one in (over, distance)
        )
        behind_share = (first_hit * (moved - again) + again_hit * again) / moved
    # Count results: work-items that store, where guards cut some off.
    active = (
        math.prod(
            max(0, min(high, items) - max(low, 0))
            for (low, high), items in zip(one.clip, grid.items, strict=True)
        )
        for one in stored_boxes
    )
    results = max(active, default=launch.ndrange.work_item_count)
    return GpuVolumes(
        work_groups=grid.work_groups,
        work_group_size=launch.ndrange.work_group_size,
        updates=results * launch.updates_per_work_item,
        occupancy=occupancy,
        l1=l1,
        wave=wave,
        kept_share=rates.l2_overlap.at(over),
        behind_share=behind_share,
        # Of a random walk over 1.7 GB a load takes 314 ns on a V100, over 24 MB 308 ns.
        group_pages=count_pages(divide_by_buffer(placed, grid), 1),
        rates=rates.name,
        notes=(*machine.notes, *occupancy.notes, *notes),
    )


def _sort_accesses(launch: ModelledLaunch, machine: GpuMachine) -> tuple[Accesses, list[str]]:
    """Turn accesses into boxes where that is exact, and list the addresses of the others."""
    bound = bind_sizes(launch)
    boxes: list[BoxAccess] = []
    listed: list[ListedAccess] = []
    noted: dict[str, list[str]] = {}
    clips: dict[Condition, Clip | None] = {}
    for access in launch.accesses:
        if access.space not in _CACHED:
            continue
        name = access.text or access.buffer or f"access in line {access.line}"
        box = to_box(access, launch, bound, clips)
        if box is not None:
            boxes.append(box)
        else:
            found = list_access(access, launch, machine, bound)
            if found is None:
                noted.setdefault("no sampled work-group executes it, left out", []).append(name)
                continue
            listed.append(found)
            noted.setdefault("estimated from the addresses of some work-groups", []).append(name)
        if not access.guard.is_exact:
            noted.setdefault("its guard depends on data and counts as met", []).append(name)
    if not boxes and not listed:
        raise InputError(
            f"{launch.kernel}: no access to global memory, so there are no volumes to compute; "
            "give its accesses"
        )
    notes = []
    for note, names in noted.items():
        names = list(dict.fromkeys(names))
        more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
        notes.append(f"{', '.join(names[:4])}{more}: {note}")
    return [*boxes, *listed], notes
