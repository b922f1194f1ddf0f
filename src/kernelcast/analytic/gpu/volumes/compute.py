"""Composes the volumes of a launch from its parts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kernelcast.analytic.gpu.hit_rates import HitRates, find_hit_rates
from kernelcast.analytic.gpu.machine import GpuMachine, Occupancy, compute_occupancy
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Clip, Grid, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.boxes import group_families
from kernelcast.analytic.gpu.volumes.dram import Traffic, compute_wave, order_loads
from kernelcast.analytic.gpu.volumes.footprints import BoxFootprint, Footprint, SumFootprint
from kernelcast.analytic.gpu.volumes.l1 import (
    FamilyCosts,
    cost_family,
    is_spread,
    keep_common,
    list_reloads,
    sum_l1,
)
from kernelcast.analytic.gpu.volumes.listed import (
    ListedAccess,
    Scatter,
    cost_listed,
    divide_by_buffer,
    list_access,
    share_windows,
)
from kernelcast.analytic.gpu.volumes.record import GpuVolumes, WaveVolumes
from kernelcast.expressions import Condition
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace

_CACHED = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accesses:
    """The accesses of a launch, in the two forms that can be counted."""

    boxes: tuple[BoxAccess, ...]
    listed: tuple[ListedAccess, ...]

    @property
    def every(self) -> list[MemoryAccess]:
        """What both forms were made of."""
        return [one.access for one in self.boxes] + [one.access for one in self.listed]

    def select(self, is_wanted: Callable[[MemoryAccess], bool]) -> "_Accesses":
        """Keep some."""
        return _Accesses(
            boxes=tuple(one for one in self.boxes if is_wanted(one.access)),
            listed=tuple(one for one in self.listed if is_wanted(one.access)),
        )

    def footprint(self, grid: Grid) -> Footprint:
        """Give what they touch together."""
        if not self.listed:
            return BoxFootprint(accesses=self.boxes, grid=grid)
        return SumFootprint(parts=divide_by_buffer(self.boxes, self.listed, grid))

    def scatter(self, grid: Grid) -> Scatter | None:
        """Give the accesses whose addresses mix, if there are any."""
        mixed = tuple(one for one in self.listed if one.is_random)
        return Scatter(accesses=mixed, work_groups=grid.work_groups) if mixed else None

    def keep_inner(self, loops: int) -> "_Accesses":
        """Run some innermost loops only, and the others once."""
        return _Accesses(
            boxes=tuple(one.keep_inner(loops) for one in self.boxes),
            listed=tuple(one.keep_inner(loops) for one in self.listed),
        )

    def cost(self, grid: Grid, machine: GpuMachine, *, is_kept: bool) -> list[FamilyCosts]:
        """Give what they cost an average work-group."""
        families = group_families(self.boxes)
        return [
            *(cost_family(one, grid, machine, is_kept=is_kept) for one in families),
            *cost_listed(self.listed, machine),
        ]


def compute_volumes(
    launch: ModelledLaunch, machine: GpuMachine, rates: HitRates | None = None
) -> GpuVolumes:
    """Compute what a launch moves through the memory hierarchy."""
    rates = rates or find_hit_rates()
    grid = Grid.of(launch.ndrange)
    occupancy = compute_occupancy(launch, machine)
    accesses, notes = _sort_accesses(launch, machine)
    loads = accesses.select(lambda one: one.kind is not AccessKind.STORE)
    stores = accesses.select(lambda one: one.kind is not AccessKind.LOAD)
    # Cost loads, those of what all share once per compute unit as far as L1 keeps it.
    costs = loads.cost(grid, machine, is_kept=True)
    windows = share_windows(loads.listed, costs, grid, machine)
    load_costs = min(
        (keep_common(one, occupancy, machine, grid.work_groups) for one in (windows, costs)),
        key=lambda kept: sum(one.sectors[-1] for one in kept),
    )
    store_costs = stores.cost(grid, machine, is_kept=False)
    spreads = not accesses.listed and rates.l2_reload is None and is_spread(launch, loads.boxes)
    reloads = list_reloads(load_costs, occupancy, machine, rates, is_spread=spreads)
    l1 = replace(
        sum_l1(load_costs, store_costs, occupancy, machine, reloads),
        neighbour_bytes=_meet_neighbours(loads, load_costs, grid, machine, occupancy, rates),
    )
    parts = loads.footprint(grid), stores.footprint(grid)
    whole: Footprint = SumFootprint(parts=parts)
    if {one.buffer for one in loads.every} & {one.buffer for one in stores.every}:
        whole = accesses.footprint(grid)
    depth = max(len(one.loops) for one in accesses.every)
    once = [accesses.keep_inner(loops).footprint(grid) for loops in range(depth)]
    mixed = {id(one.access) for one in accesses.listed if one.is_random}
    placed = accesses.select(lambda one: id(one) not in mixed)
    traffic = Traffic(
        loads=parts[0],
        stores=parts[1],
        touched=[*once, whole],
        group_store_bytes=sum(one.sectors[-1] for one in store_costs)
        * machine.l1_sector_bytes
        * grid.work_groups,
        work_groups=grid.work_groups,
        layer=grid.counts[0] * grid.counts[1],
        scattered_loads=loads.scatter(grid),
        scattered_stores=stores.scatter(grid),
        are_stores_listed=bool(stores.listed),
        is_spread=spreads,
        ordered=order_loads(loads.boxes, stores.boxes, grid)
        if machine.architecture.spreads_loads and not accesses.listed
        else None,
    )
    wave = compute_wave(traffic, machine, rates, occupancy.work_groups, l1)
    return GpuVolumes(
        work_groups=grid.work_groups,
        work_group_size=launch.ndrange.work_group_size,
        updates=_count_updates(launch, grid, stores.boxes),
        occupancy=occupancy,
        l1=l1,
        wave=wave,
        kept_share=_keep(traffic, machine.l2_total_bytes, machine, rates),
        behind_share=_find_behind(traffic, wave, machine, rates) if machine.l3_bytes else 0.0,
        # Of a random walk over 1.7 GB a load takes 314 ns on a V100, over 24 MB 308 ns.
        group_pages=placed.keep_inner(0).footprint(grid).count_pages(1),
        rates=rates.name,
        notes=(*machine.notes, *occupancy.notes, *notes),
    )


def _keep(traffic: Traffic, capacity_bytes: float, machine: GpuMachine, rates: HitRates) -> float:
    """Give the part of a launch's data that a cache holds when the launch is repeated at once.

    All that the launch touches lies between two meetings with a datum.
    """
    over = traffic.oversubscribe(traffic.work_groups, machine)
    return rates.l2_overlap.at(over * machine.l2_total_bytes / capacity_bytes)


def _find_behind(
    traffic: Traffic, wave: WaveVolumes, machine: GpuMachine, rates: HitRates
) -> float:
    """Give the part of what L2 asks for that the cache behind it has, when a launch is repeated.

    What is met for the first time it has from the launch before, what L2 has lost since it was met
    in this launch from a layer of work-groups before.
    """
    moved = wave.loaded_bytes + wave.stored_bytes
    again = wave.loaded_bytes - wave.row_load_bytes + sum(one.shared_bytes for one in wave.overlaps)
    distance = max((one.oversubscription for one in wave.overlaps), default=0.0)
    first_hit = _keep(traffic, machine.l3_bytes, machine, rates)
    again_hit = rates.l2_overlap.at(distance * machine.l2_total_bytes / machine.l3_bytes)
    return (first_hit * (moved - again) + again_hit * again) / moved if moved else 0.0


def _is_in(buffer: str | None, access: MemoryAccess) -> bool:
    return access.buffer == buffer


def _meet_neighbours(
    loads: _Accesses,
    costs: Sequence[FamilyCosts],
    grid: Grid,
    machine: GpuMachine,
    occupancy: Occupancy,
    rates: HitRates,
) -> float:
    """Count what a work-group finds in L1 since another one of the same unit has loaded it.

    The work-groups of a wave go to the units as places become free. Of those that touch the same
    sector, the first on each unit loads it, while all go through their loops side by side.
    """
    units, sector = machine.compute_units, machine.l1_sector_bytes
    wave = min(grid.work_groups, occupancy.work_groups * units)
    if wave <= units or rates.by_instruction:
        return 0.0
    lines = occupancy.work_groups * sum(one.lines_at(0) for one in costs)
    kept = rates.l1_load.at(lines * machine.l1_line_bytes / machine.l1_bytes)
    found = 0.0
    for buffer in dict.fromkeys(one.buffer for one in loads.every):
        own = [one for one in costs if one.buffer == (buffer or "") and not one.is_common]
        touched = sum(one.sectors[-1] for one in own) * sector
        if not touched:
            continue
        own_loads = loads.select(partial(_is_in, buffer))
        together = own_loads.footprint(grid).count_run(wave, sector)
        sharers = touched * wave / max(together, touched)
        if sharers > 1:
            loading = units * (1 - (1 - 1 / units) ** sharers) / sharers
            found += touched * max(0.0, 1 - loading)
    return found * kept


def _count_updates(launch: ModelledLaunch, grid: Grid, stores: Sequence[BoxAccess]) -> int:
    """Count results: work-items that store, where guards cut some off."""
    active = [
        math.prod(
            max(0, min(high, items) - max(low, 0))
            for (low, high), items in zip(one.clip, grid.items, strict=True)
        )
        for one in stores
    ]
    return max(active, default=launch.ndrange.work_item_count) * launch.updates_per_work_item


def _sort_accesses(launch: ModelledLaunch, machine: GpuMachine) -> tuple[_Accesses, list[str]]:
    """Turn accesses into boxes where that is exact, and list the addresses of the others."""
    bound = bind_sizes(launch)
    boxes: list[BoxAccess] = []
    listed: list[ListedAccess] = []
    notes: list[str] = []
    clips: dict[Condition, Clip | None] = {}
    for access in launch.accesses:
        if access.space not in _CACHED:
            continue
        box = to_box(access, launch, bound, clips)
        if box is not None:
            boxes.append(box)
        else:
            found = list_access(access, launch, machine, bound)
            if found is None:
                notes.append(f"{_name(access)}: no sampled work-group executes it, left out")
                continue
            listed.append(found)
            notes.append(f"{_name(access)}: estimated from the addresses of some work-groups")
        if not access.guard.is_exact:
            notes.append(f"{_name(access)}: its guard depends on data and counts as met")
    if not boxes and not listed:
        raise InputError(
            f"{launch.kernel}: no access to global memory, so there are no volumes to compute; "
            "give its accesses"
        )
    return _Accesses(boxes=tuple(boxes), listed=tuple(listed)), notes


def _name(access: MemoryAccess) -> str:
    return access.text or access.buffer or f"access in line {access.line}"
