"""Volumes between registers, L1 cache and L2 cache of an average work-group."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from kernelcast.analytic.addresses import drop_repeated
from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.analytic.gpu.machine import GpuMachine, Occupancy
from kernelcast.analytic.gpu.volumes.affine import Grid
from kernelcast.analytic.gpu.volumes.boxes import (
    Family,
    count_groups,
    count_per_group,
    group_families,
    list_classes,
    spread_alignments,
)
from kernelcast.analytic.gpu.volumes.footprints import Footprint, count_run, divide_by_buffer
from kernelcast.analytic.gpu.volumes.listed import (
    Accesses,
    cost_listed,
    keep_boxes,
    keep_listed,
)
from kernelcast.analytic.gpu.volumes.record import L1Volumes
from kernelcast.analytic.gpu.volumes.warps import FamilyCosts, cost_warps, list_lanes

USABLE_SHARE = 0.75
"""Share of a cache within which data that is met all the time is found again."""
_BETWEEN = {False: 1 / 2, True: 3 / 4}
"""Share of another work-group's loads that lies between two of a work-group: where all its loads
are on their way at once, and where they are spread over its life. Both from V100 counters."""


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
    reused_share = warp_sectors = 0.0
    if is_kept:
        # Measure the share of lines that several instructions need, and the sectors of all warps.
        # Loops run once: what an iteration shares with the next is looked at elsewhere.
        line, sector = machine.l1_line_bytes, machine.l1_sector_bytes
        bases = np.array([one.base_bytes for one in family], dtype=np.int64)
        lanes = bases[:, None, None] + list_lanes(family[0].local_strides, grid, machine.warp_width)
        shifts, _ = spread_alignments(family[0].group_strides, full, line)
        chosen = shifts[:: max(1, -(-shifts.size // 4))]
        parts = np.arange(0, max(family[0].access.bytes, 1), sector)
        reused = every = sectors_of_all = 0
        for shift in chosen:
            touched = drop_repeated(np.sort((lanes + shift) // line, axis=-1))
            _, needs = np.unique(touched, return_counts=True)
            every, reused = every + needs.size, reused + int((needs > 1).sum())
            by_warp = (lanes[..., None] + shift + parts).swapaxes(0, 1).reshape(lanes.shape[1], -1)
            sectors_of_all += drop_repeated(np.sort(by_warp // sector, axis=-1)).size
        reused_share, warp_sectors = reused / every, sectors_of_all / chosen.size
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


class FirstCache:
    """The L1 cache of a compute unit, with the work-groups of a launch that run there at once."""

    def __init__(
        self, grid: Grid, machine: GpuMachine, occupancy: Occupancy, rates: HitRates
    ) -> None:
        self._grid, self._machine = grid, machine
        self._occupancy, self._rates = occupancy, rates

    def cost(self, accesses: Accesses, *, is_kept: bool) -> list[FamilyCosts]:
        grid, machine = self._grid, self._machine
        families = group_families(keep_boxes(accesses))
        return [
            *(cost_family(one, grid, machine, is_kept=is_kept) for one in families),
            *cost_listed(keep_listed(accesses), machine),
        ]

    def _cost_loads(self, loads: Accesses) -> list[FamilyCosts]:
        """Cost loads, those of what all share once per compute unit as far as L1 keeps it."""
        costs = self.cost(loads, is_kept=True)
        # Accesses that lead all work-groups to the same part of a buffer count as common.
        windows, listed = [*costs], keep_listed(loads)
        first = len(costs) - len(listed)
        for name in {one.access.buffer for one in listed}:
            places = [n for n, one in enumerate(listed) if one.access.buffer == name]
            hulls = [listed[place].hull for place in places]
            boxes = tuple(one for one in hulls if one is not None and not any(one.group_strides))
            if len(boxes) < len(places):
                continue
            touched = Footprint(boxes=boxes, grid=self._grid)
            lines, sectors = (
                touched.count_run(1, unit) / unit / len(places)
                for unit in (self._machine.l1_line_bytes, self._machine.l1_sector_bytes)
            )
            for place in places:
                own = windows[first + place]
                windows[first + place] = replace(
                    own, is_common=True, lines=(*own.lines[:-1], lines),
                    sectors=(*own.sectors[:-1], sectors),
                )  # fmt: skip
        return min(
            (self._keep_common(one) for one in (windows, costs)),
            key=lambda kept: sum(one.sectors[-1] for one in kept),
        )

    def _keep_common(self, loads: Sequence[FamilyCosts]) -> list[FamilyCosts]:
        """Load what all work-groups share once per unit, as far as L1 keeps it between them."""
        # That needs room for it beside what the work-groups load again that run meanwhile. What
        # they load once streams through, while what is common is met all the time.
        machine, resident = self._machine, self._occupancy.work_groups
        lines = sum(
            (1 if one.is_common else resident * one.reused_share) * one.lines_at(len(one.lines) - 1)
            for one in loads
        )
        room = USABLE_SHARE * machine.l1_bytes
        kept = min(1.0, room / (lines * machine.l1_line_bytes)) if lines else 1.0
        share = 1 - kept * (1 - min(1.0, machine.compute_units / self._grid.work_groups))
        return [
            replace(one, sectors=(*one.sectors[:-1], one.sectors[-1] * share))
            if one.is_common
            else one
            for one in loads
        ]

    def compute(
        self, accesses: Accesses, stores: Sequence[FamilyCosts], *, is_spread: bool
    ) -> L1Volumes:
        line, sector = self._machine.l1_line_bytes, self._machine.l1_sector_bytes
        loads = self._cost_loads(accesses)
        warps = self._occupancy.warps_per_work_group
        depth = max((len(one.sectors) for one in loads), default=1) - 1

        def per_warp(name: str) -> float:
            return sum(
                float(getattr(one.costs, name)) * one.instructions / warps
                for one in (*loads, *stores)
            )

        # What is loaded again since L1 has not kept it, by the loop across which it is reused.
        resident, reloads = self._occupancy.work_groups, []
        others = _BETWEEN[is_spread] * (resident - 1)
        wanted = sum(max(one.warp_sectors, one.sectors_at(0)) for one in loads)
        if self._rates.by_instruction:
            others, wanted = 0.0, sum(one.costs.sectors * one.instructions for one in loads)
        for level in range(depth + 1):
            if level:
                # From one iteration to the next, all lines of an iteration lie in between, and
                # those of the other work-groups.
                touched = resident * sum(one.lines_at(level - 1) for one in loads)
            else:
                # Lines that only one instruction needs stream through; the others are those of the
                # work-group, and a share of what the other work-groups of the unit load.
                touched = sum(
                    one.lines_at(0) * one.reused_share * (1 if one.is_common else 1 + others)
                    for one in loads
                )
            over = touched * line / self._machine.l1_bytes
            shared = sum(one.sectors_at(level) for one in loads)
            redundant = max(0.0, wanted - shared) * sector
            lost = redundant * (1 - self._rates.l1_load.at(over))
            reloads.append((lost, over))
            wanted = shared
        return L1Volumes(
            warp_cycles=per_warp("cycles"),
            half_warp_cycles=per_warp("half_warp_cycles"),
            load_lines=sum(one.costs.lines * one.instructions for one in loads) / warps,
            load_requests=sum(one.instructions for one in loads) / warps,
            store_requests=sum(one.instructions for one in stores) / warps,
            requested_bytes=sum(one.requested_sectors for one in loads) * sector,
            allocated_bytes=sum(one.lines_at(depth) for one in loads) * line,
            compulsory_bytes=sum(one.sectors_at(depth) for one in loads) * sector,
            reloads=tuple(reloads),
            stored_bytes=sum(one.requested_sectors for one in stores) * sector,
            neighbour_bytes=self._meet_neighbours(accesses, loads),
        )

    def _meet_neighbours(self, accesses: Accesses, loads: Sequence[FamilyCosts]) -> float:
        """Count what a work-group finds in L1 since another one of the unit has loaded it."""
        # The work-groups of a wave go to the units as places become free. Of those that touch the
        # same sector, the first on each unit loads it, while all go through their loops side by
        # side.
        grid, resident, machine = self._grid, self._occupancy.work_groups, self._machine
        units, sector = machine.compute_units, machine.l1_sector_bytes
        wave = min(grid.work_groups, resident * units)
        if wave <= units or self._rates.by_instruction:
            return 0.0
        lines = resident * sum(one.lines_at(0) for one in loads)
        kept = self._rates.l1_load.at(lines * machine.l1_line_bytes / machine.l1_bytes)
        found = 0.0
        for buffer in dict.fromkeys(one.access.buffer for one in accesses):
            own = [one for one in loads if one.buffer == (buffer or "") and not one.is_common]
            touched = sum(one.sectors[-1] for one in own) * sector
            if not touched:
                continue
            own_loads = [one for one in accesses if one.access.buffer == buffer]
            together = count_run(divide_by_buffer(own_loads, grid), wave, sector)
            sharers = touched * wave / max(together, touched)
            if sharers > 1:
                loading = units * (1 - (1 - 1 / units) ** sharers) / sharers
                found += touched * max(0.0, 1 - loading)
        return found * kept
