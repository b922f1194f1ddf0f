"""Volumes between registers, L1 cache and L2 cache of an average work-group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.occupancy import Occupancy
from kernelcast.analytic.gpu.volumes.affine import Clip, Grid
from kernelcast.analytic.gpu.volumes.families import Family
from kernelcast.analytic.gpu.volumes.record import L1Volumes, Reload
from kernelcast.analytic.gpu.volumes.spread import USABLE_SHARE, share_reused_lines
from kernelcast.analytic.gpu.volumes.warps import WarpCosts, cost_warps
from kernelcast.analytic.gpu.volumes.work_groups import (
    count_per_group,
    list_classes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCosts:
    """What the accesses of one family cost an average work-group."""

    buffer: str
    """Name of the buffer."""
    costs: WarpCosts
    """Per warp instruction."""
    instructions: float
    """Warp instructions of a work-group."""
    sectors: tuple[float, ...]
    """Sectors of a work-group if nothing were shared but within one iteration of all loops, within
    the innermost loop, and so on; the last one are the unique sectors."""
    lines: tuple[float, ...]
    """Unique lines of one iteration of all loops, of the innermost loop, and so on; nothing for
    stores, which L1 does not keep."""
    reused_share: float
    """Share of an iteration's lines that several instructions need."""
    is_common: bool = False
    """Whether every work-group loads the same."""

    @property
    def requested_sectors(self) -> float:
        """Sectors that all instructions ask for: full warps tell of those that are cut too little.

        A row of 18 work-items is more than 18/32 of a full warp's sectors.
        """
        return max(self.costs.sectors * self.instructions, self.sectors[-1])

    def sectors_at(self, level: int) -> float:
        """Give the sectors if data is shared within so many innermost loops."""
        return self.sectors[min(level, len(self.sectors) - 1)]

    def lines_at(self, level: int) -> float:
        """Give the lines that so many innermost loops touch."""
        return self.lines[min(level, len(self.lines) - 1)] if self.lines else 0.0


def cost_family(family: Family, grid: Grid, machine: GpuMachine, *, is_kept: bool) -> FamilyCosts:
    """Cost the accesses of one family."""
    classes = list_classes(family, grid)
    full = max(classes, key=lambda one: one.work_groups)
    warps = -(-(grid.local[0] * grid.local[1] * grid.local[2]) // machine.warp_width)
    shares = {clip: _share_active(clip, grid) for clip in {one.clip for one in family}}
    sectors, lines = [], []
    depth = len(family[0].loops)
    for level in range(depth + 1):
        own = family.keep_inner(level)
        times = family[0].executions / max(1, own[0].executions)
        unique = count_per_group(own, classes, grid, machine.l1_sector_bytes)
        sectors.append(times * unique)
        if is_kept:
            # Work-groups that are cut fill less; full ones decide what the cache loses.
            lines.append(count_per_group(own, [full], grid, machine.l1_line_bytes))
    return FamilyCosts(
        buffer=family[0].access.buffer or "",
        costs=cost_warps(family, full.box, grid, machine),
        instructions=warps * sum(one.executions * shares[one.clip] for one in family),
        sectors=tuple(sectors),
        lines=tuple(lines),
        reused_share=share_reused_lines(family, full.box, grid, machine) if is_kept else 0.0,
        is_common=is_kept and not any(family[0].group_strides),
    )


def keep_common(
    loads: Sequence[FamilyCosts],
    occupancy: Occupancy,
    machine: GpuMachine,
    work_groups: int,
) -> list[FamilyCosts]:
    """Load what all work-groups share once per compute unit, as far as L1 keeps it between them.

    That needs room for it beside what the work-groups load again that run meanwhile. What they load
    once streams through, while what is common is met all the time.
    """
    lines = sum(
        (1 if one.is_common else occupancy.work_groups * one.reused_share)
        * one.lines_at(len(one.lines) - 1)
        for one in loads
    )
    room = USABLE_SHARE * machine.l1_bytes
    kept = min(1.0, room / (lines * machine.l1_line_bytes)) if lines else 1.0
    share = 1 - kept * (1 - min(1.0, machine.compute_units / work_groups))
    return [
        replace(one, sectors=(*one.sectors[:-1], one.sectors[-1] * share)) if one.is_common else one
        for one in loads
    ]


def _share_active(clip: Clip, grid: Grid) -> float:
    """Give the share of all work-items that exist and meet the guard."""
    share = 1.0
    for axis, (low, high) in enumerate(clip):
        active = min(high, grid.items[axis]) - max(low, 0)
        share *= max(active, 0) / (grid.counts[axis] * grid.local[axis])
    return share


def sum_l1(
    loads: Sequence[FamilyCosts],
    stores: Sequence[FamilyCosts],
    occupancy: Occupancy,
    machine: GpuMachine,
    reloads: tuple[Reload, ...],
) -> L1Volumes:
    """Add up families to the volumes of an average work-group."""
    line, sector = machine.l1_line_bytes, machine.l1_sector_bytes
    warps = occupancy.warps_per_work_group
    depth = len(reloads) - 1

    def per_warp(name: str) -> float:
        return sum(
            float(getattr(one.costs, name)) * one.instructions / warps for one in (*loads, *stores)
        )

    return L1Volumes(
        warp_cycles=per_warp("cycles"),
        data_cycles=per_warp("data_cycles"),
        tag_cycles=per_warp("tag_cycles"),
        half_warp_cycles=per_warp("half_warp_cycles"),
        load_lines=sum(one.costs.lines * one.instructions for one in loads) / warps,
        load_requests=sum(one.instructions for one in loads) / warps,
        store_requests=sum(one.instructions for one in stores) / warps,
        requested_bytes=sum(one.requested_sectors for one in loads) * sector,
        allocated_bytes=sum(one.lines_at(depth) for one in loads) * line,
        compulsory_bytes=sum(one.sectors_at(depth) for one in loads) * sector,
        reloads=reloads,
        stored_bytes=sum(one.requested_sectors for one in stores) * sector,
    )


def list_reloads(
    loads: Sequence[FamilyCosts], occupancy: Occupancy, machine: GpuMachine, rates: HitRates
) -> tuple[Reload, ...]:
    """List what is loaded again since L1 has not kept it, by the loop across which it is reused.

    Within an iteration, only lines that several instructions of a work-group need compete: the
    others stream. From one iteration to the next, all lines of an iteration lie in between, and
    those of the other work-groups of the compute unit.
    """
    line, sector = machine.l1_line_bytes, machine.l1_sector_bytes
    depth = max((len(one.sectors) for one in loads), default=1) - 1
    wanted = sum(one.costs.sectors * one.instructions for one in loads)
    found = []
    for level in range(depth + 1):
        if level:
            touched = occupancy.work_groups * sum(one.lines_at(level - 1) for one in loads)
        else:
            touched = sum(one.lines_at(0) * one.reused_share for one in loads)
        over = touched * line / machine.l1_bytes
        shared = sum(one.sectors_at(level) for one in loads)
        redundant = max(0.0, wanted - shared) * sector
        lost = redundant * (1 - rates.l1_load.at(over))
        found.append(Reload(bytes=lost, oversubscription=over, loops=max(0, level - 1)))
        wanted = shared
    return tuple(found)
