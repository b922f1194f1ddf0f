"""Volumes between registers, L1 cache and L2 cache of an average work-group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernelcast.analytic.addresses import drop_repeated
from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.analytic.gpu.machine import GpuMachine, Occupancy
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, GroupRange
from kernelcast.analytic.gpu.volumes.boxes import (
    Family,
    count_groups,
    count_per_group,
    list_classes,
    spread_alignments,
)
from kernelcast.analytic.gpu.volumes.record import L1Volumes, Reload
from kernelcast.analytic.gpu.volumes.warps import WarpCosts, cost_warps, list_lanes
from kernelcast.expressions.modelled_launch import ModelledLaunch

USABLE_SHARE = 0.75
"""Share of a cache within which data that is met all the time is found again."""
_BETWEEN = {False: 1 / 2, True: 3 / 4}
"""Share of another work-group's loads that lies between two of a work-group: where all its loads
are on their way at once, and where they are spread over its life. Both from V100 counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCosts:
    """What the accesses of one family cost an average work-group."""

    buffer: str
    costs: WarpCosts
    """Per warp instruction."""
    instructions: float
    sectors: tuple[float, ...]
    """Sectors of a work-group if nothing were shared but within one iteration of all loops, within
    the innermost loop, and so on; the last one are the unique sectors."""
    lines: tuple[float, ...]
    """Unique lines of one iteration of all loops, of the innermost loop, and so on; nothing for
    stores, which L1 does not keep."""
    reused_share: float
    """Share of an iteration's lines that several instructions need."""
    warp_sectors: float
    """Sectors of a work-group if data were shared within one warp's iteration of all loops only."""
    is_common: bool = False

    @property
    def requested_sectors(self) -> float:
        # Full warps tell of those that are cut too little: a row of 18 work-items is more than
        # 18/32 of a full warp's sectors.
        return max(self.costs.sectors * self.instructions, self.sectors[-1])

    def sectors_at(self, level: int) -> float:
        """Look up the sectors if data is shared within so many innermost loops."""
        return self.sectors[min(level, len(self.sectors) - 1)]

    def lines_at(self, level: int) -> float:
        """Look up the lines that so many innermost loops touch."""
        return self.lines[min(level, len(self.lines) - 1)] if self.lines else 0.0


def cost_family(family: Family, grid: Grid, machine: GpuMachine, *, is_kept: bool) -> FamilyCosts:
    classes = list_classes(family, grid)
    full = max(classes, key=count_groups)
    warps = -(-(grid.local[0] * grid.local[1] * grid.local[2]) // machine.warp_width)
    # Of all work-items those that exist and meet the guard.
    shares = {
        clip: prod(
            max(min(high, items) - max(low, 0), 0) / (count * size)
            for (low, high), items, count, size in zip(
                clip, grid.items, grid.counts, grid.local, strict=True
            )
        )
        for clip in {one.clip for one in family}
    }
    sectors, lines = [], []
    depth = len(family[0].loops)
    for level in range(depth + 1):
        own = tuple(one.keep_inner(level) for one in family)
        times = family[0].executions / max(1, own[0].executions)
        unique = count_per_group(own, classes, grid, machine.l1_sector_bytes)
        sectors.append(times * unique)
        if is_kept:
            # Work-groups that are cut fill less; full ones decide what the cache loses.
            lines.append(count_per_group(own, [full], grid, machine.l1_line_bytes))
    instructions = warps * sum(one.executions * shares[one.clip] for one in family)
    reused_share, warp_sectors = (
        _examine_reuse(family, full, grid, machine) if is_kept else (0.0, 0.0)
    )
    return FamilyCosts(
        buffer=family[0].access.buffer or "",
        costs=cost_warps(family, full, grid, machine),
        instructions=instructions,
        sectors=tuple(sectors),
        lines=tuple(lines),
        reused_share=reused_share,
        warp_sectors=warp_sectors * instructions / (warps * len(family)),
        is_common=is_kept and not any(family[0].group_strides),
    )


def _examine_reuse(
    accesses: Sequence[BoxAccess], box: GroupRange, grid: Grid, machine: GpuMachine
) -> tuple[float, float]:
    """Measure the share of lines that several instructions need, and the sectors of all warps."""
    # Loops run once: what an iteration shares with the next is looked at elsewhere.
    line, sector = machine.l1_line_bytes, machine.l1_sector_bytes
    bases = np.array([one.base_bytes for one in accesses], dtype=np.int64)
    lanes = bases[:, None, None] + list_lanes(accesses[0].local_strides, grid, machine.warp_width)
    shifts, _ = spread_alignments(accesses[0].group_strides, box, line)
    chosen = shifts[:: max(1, -(-shifts.size // 4))]
    parts = np.arange(0, max(accesses[0].access.bytes, 1), sector)
    reused = lines = sectors = 0
    for shift in chosen:
        touched = np.sort(drop_repeated(np.sort((lanes + shift) // line, axis=-1)))
        again = touched[1:] == touched[:-1]
        lines += touched.size - int(again.sum())
        # Of a line's repetitions, the first says that it is needed again.
        reused += int(again[:1].sum()) + int((again[1:] & ~again[:-1]).sum())
        by_warp = (lanes[..., None] + shift + parts).swapaxes(0, 1).reshape(lanes.shape[1], -1)
        sectors += drop_repeated(np.sort(by_warp // sector, axis=-1)).size
    return reused / lines, sectors / chosen.size


def is_spread(launch: ModelledLaunch, loads: Sequence[BoxAccess]) -> bool:
    """Tell whether what a work-item loads outside loops exceeds its registers."""
    if launch.registers is None or any(one.loops for one in loads):
        return False
    return sum(one.access.bytes for one in loads) > 4 * launch.registers


def keep_common(
    loads: Sequence[FamilyCosts],
    occupancy: Occupancy,
    machine: GpuMachine,
    work_groups: int,
) -> list[FamilyCosts]:
    """Load what all work-groups share once per compute unit, as far as L1 keeps it between them."""
    # That needs room for it beside what the work-groups load again that run meanwhile. What they
    # load once streams through, while what is common is met all the time.
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
    loads: Sequence[FamilyCosts],
    occupancy: Occupancy,
    machine: GpuMachine,
    rates: HitRates,
    *,
    is_spread: bool,
) -> tuple[Reload, ...]:
    """List what is loaded again since L1 has not kept it, by the loop across which it is reused."""
    line, sector = machine.l1_line_bytes, machine.l1_sector_bytes
    depth = max((len(one.sectors) for one in loads), default=1) - 1
    others = _BETWEEN[is_spread] * (occupancy.work_groups - 1)
    wanted = sum(max(one.warp_sectors, one.sectors_at(0)) for one in loads)
    if rates.by_instruction:
        others, wanted = 0.0, sum(one.costs.sectors * one.instructions for one in loads)
    found = []
    for level in range(depth + 1):
        if level:
            # From one iteration to the next, all lines of an iteration lie in between, and those of
            # the other work-groups.
            touched = occupancy.work_groups * sum(one.lines_at(level - 1) for one in loads)
        else:
            # Lines that only one instruction needs stream through; the others are those of the
            # work-group, and a share of what the other work-groups of the compute unit load.
            touched = sum(
                one.lines_at(0) * one.reused_share * (1 if one.is_common else 1 + others)
                for one in loads
            )
        over = touched * line / machine.l1_bytes
        shared = sum(one.sectors_at(level) for one in loads)
        redundant = max(0.0, wanted - shared) * sector
        lost = redundant * (1 - rates.l1_load.at(over))
        found.append(Reload(bytes=lost, oversubscription=over, loops=max(0, level - 1)))
        wanted = shared
    return tuple(found)
