"""Volumes of a launch from its parts: those of L1 caches, and those between L2 cache and DRAM.

Work-groups run in dispatch order. What a row of them shares with the row before was last touched a
row ago, what a layer shares with the layer before, a layer ago (the paper's y- and z-layer sets,
section 4.4.2). What is touched in between, over the capacity of the L2 cache, decides how much of
it is still there. All footprints are sums over the whole launch, edges included.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.hit_rates import HitRate, HitRates, find_hit_rates
from kernelcast.analytic.gpu.machine import GpuMachine, Occupancy, compute_occupancy
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Clip, Grid, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.boxes import Family, group_families
from kernelcast.analytic.gpu.volumes.footprints import (
    Footprint,
    count_pages,
    count_run,
    divide_by_buffer,
    list_levels,
    list_stretches,
)
from kernelcast.analytic.gpu.volumes.l1 import FirstCache
from kernelcast.analytic.gpu.volumes.listed import (
    Accesses,
    ListedAccess,
    keep_boxes,
    keep_listed,
    list_access,
)
from kernelcast.analytic.gpu.volumes.record import GpuVolumes, L1Volumes, Overlap, WaveVolumes
from kernelcast.expressions import Condition
from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace

_CACHED = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC)
RELOAD_DISTANCE = 1.5
"""Work-groups per compute unit between two loads of a line that a full L1 cache evicts; of 1, 1.25
to 2 the one with which V100 counters are predicted best."""
FloatArray = npt.NDArray[np.float64]
# Folded work-items touch every second, third or eighth layer and row; neighbours in a layer that
# are less than a sixteenth of it apart are of the same layer, those in a row less than a 32nd
# apart are the same data.
_LAYER_PARTS, _ROW_PARTS = 8, 16
# Touches of layers that do not share any.
_NEVER = 1e9


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
    loaded_boxes = keep_boxes(loads)
    # Whether what a work-item loads outside loops exceeds its registers, so that loads are spread
    # over its life.
    spreads = (
        not keep_listed(accesses)
        and rates.l2_reload is None
        and launch.registers is not None
        and not any(one.loops for one in loaded_boxes)
        and sum(one.access.bytes for one in loaded_boxes) > 4 * launch.registers
    )
    cache = FirstCache(grid, machine, occupancy, rates)
    store_costs = cache.cost(stores, is_kept=False)
    l1 = cache.compute(loads, store_costs, is_spread=spreads)
    group_stores = sum(one.sectors[-1] for one in store_costs) * machine.l1_sector_bytes
    traffic = Traffic(
        accesses, grid, machine, rates, group_stores * grid.work_groups, is_spread=spreads
    )
    wave = traffic.compute_wave(occupancy, l1)
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
        for one in keep_boxes(stores)
    )
    results = max(active, default=launch.ndrange.work_item_count)
    mixed = {id(one.access) for one in keep_listed(accesses) if one.is_random}
    placed = [one.keep_inner(0) for one in accesses if id(one.access) not in mixed]
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


class Traffic:
    """What a launch moves between L2 cache and DRAM.

    `group_store_bytes` are the unique written sectors of every single work-group, added up.
    """

    def __init__(
        self,
        accesses: Accesses,
        grid: Grid,
        machine: GpuMachine,
        rates: HitRates,
        group_store_bytes: float,
        *,
        is_spread: bool,
    ) -> None:
        self._machine, self._rates, self._grid = machine, rates, grid
        self._group_store_bytes, self._is_spread = group_store_bytes, is_spread
        loads = [one for one in accesses if one.access.kind is not AccessKind.STORE]
        stores = [one for one in accesses if one.access.kind is not AccessKind.LOAD]
        self._load_boxes, self._store_boxes = keep_boxes(loads), keep_boxes(stores)
        self._loads, self._stores = divide_by_buffer(loads, grid), divide_by_buffer(stores, grid)
        whole = (*self._loads, *self._stores)
        if {one.access.buffer for one in loads} & {one.access.buffer for one in stores}:
            whole = divide_by_buffer(accesses, grid)
        # Loads and stores of one iteration of all loops, of the innermost loop, and so on; last, of
        # all.
        depth = max(len(one.access.loops) for one in accesses)
        self._touched = [
            *(
                divide_by_buffer([one.keep_inner(loops) for one in accesses], grid)
                for loops in range(depth)
            ),
            whole,
        ]
        # Those whose data any work-group may have touched before.
        self._random_loads = [one for one in keep_listed(loads) if one.is_random]
        self._random_stores = [one for one in keep_listed(stores) if one.is_random]
        self._are_stores_listed = bool(keep_listed(stores))
        # Across which dimension layers of work-groups follow one another.
        self._axis = max((one for one in range(3) if grid.counts[one] > 1), default=0)
        self._is_ordered = (
            machine.architecture.name == "cdna"
            and not keep_listed(accesses)
            and self._axis > 0
            and bool(self._load_boxes)
            and not any(one.loops for one in keep_boxes(accesses))
            and all(one.local_strides[self._axis] > 0 for one in self._load_boxes)
        )

    def oversubscribe(self, work_groups: int, *, loops: int | None = None) -> float:
        """Compute what consecutive work-groups touch over the capacity of all L2 caches."""
        touched = self._touched[-1 if loops is None else min(loops, len(self._touched) - 1)]
        fetch = self._machine.dram_fetch_bytes
        return count_run(touched, work_groups, fetch) / self._machine.l2_total_bytes

    def compute_wave(self, occupancy: Occupancy, l1: L1Volumes) -> WaveVolumes:
        grid, touched, machine = self._grid, self._touched[-1], self._machine
        count, layer = grid.work_groups, grid.counts[0] * grid.counts[1]
        wave = min(count, occupancy.work_groups * machine.compute_units)
        waves = count / wave
        fetch, sector = machine.dram_fetch_bytes, machine.l1_sector_bytes
        levels = list_levels(self._loads, wave, fetch)
        stores = list_levels(self._stores, wave, sector)
        unique = stores[-1]
        if not self._are_stores_listed:  # seams of short rows count twice in boxes
            unique = min(unique, self._group_store_bytes)
        overlaps, lost = self._meet_again(levels, unique, wave, l1)
        skew = self.oversubscribe(machine.compute_units)
        repeated = self._count_repeated(self._random_stores, sector)
        partial = self._group_store_bytes - stores[0] - repeated
        scattered = self._lose(self._random_stores, sector) / waves
        pages = count_pages(touched, wave)
        if wave < layer < count:
            # Mean of waves inside a layer and those that run into the next.
            share = (wave - 1) / layer
            pages = (1 - share) * pages + share * 2 * count_pages(touched, -(-wave // 2))
        return WaveVolumes(
            work_groups=wave,
            waves=waves,
            row_load_bytes=levels[0] / waves,
            unique_store_bytes=unique / waves,
            overlaps=tuple(overlaps),
            oversubscription=self.oversubscribe(wave),
            skew_oversubscription=skew,
            capacity_load_bytes=lost + self._lose(self._random_loads, fetch) / waves,
            partial_store_bytes=max(0.0, partial) / waves * (1 - self._rates.l2_store.at(skew))
            + scattered,
            tlb_pages=pages,
        )

    def _list_overlaps(self, levels: Sequence[float], wave: int, lead: float) -> list[Overlap]:
        stretches = list_stretches(self._grid, wave)
        found = []
        for (_, nearer), (name, _), (before, behind) in zip(
            stretches, stretches[1:], pairwise(levels), strict=False
        ):
            over = self.oversubscribe(nearer)
            if nearer < wave:
                # When the second of two work-groups of one wave starts, the first is on its way.
                over = min(over, nearer / wave * self.oversubscribe(wave))
            # Work-groups that run at once go through their loops side by side.
            near = min(over, self.oversubscribe(nearer, loops=0))
            together = max(0.0, 1 - nearer / wave)
            rate = (self._rates.l2_layer if name == "z" else None) or self._rates.l2_overlap
            hits = together * _hit_ahead(rate, near, lead)
            hits += (1 - together) * _hit_ahead(rate, over, lead)
            shared = (before - behind) / (self._grid.work_groups / wave)
            found.append(Overlap(shared_bytes=shared, oversubscription=over, hit_rate=hits))
        return found

    def _meet_again(
        self, levels: Sequence[float], stored_bytes: float, wave: int, l1: L1Volumes
    ) -> tuple[list[Overlap], float]:
        """List what work-groups of a wave share with others, and add up what it loads again."""
        count, machine, rates = self._grid.work_groups, self._machine, self._rates
        waves = count / wave
        overlaps = self._list_overlaps(levels, wave, 0.0)
        row_bytes = levels[0] / waves
        if rates.l2_reload is not None:
            reused = sum(one.shared_bytes * one.hit_rate for one in overlaps)
            redundant = max(0.0, l1.loaded_bytes * wave - (row_bytes - reused))
            return overlaps, redundant * (1 - rates.l2_reload.at(self.oversubscribe(wave)))
        if self._is_ordered:
            again = self._lose_in_order(wave, stored_bytes)
            again = min(again, max(l1.loaded_bytes * count - levels[-1], 0.0)) / waves
            shared = sum(one.shared_bytes for one in overlaps)
            hit = max(0.0, 1 - again / shared) if shared > 0 else 0.0
            return [replace(one, hit_rate=hit) for one in overlaps], max(0.0, again - shared)
        lead = 0.0
        if self._is_spread:  # Work-groups of a wave run ahead of one another.
            moved = row_bytes - sum(one.shared_bytes * one.hit_rate for one in overlaps)
            lead = RELOAD_DISTANCE * (moved + stored_bytes / waves) / machine.l2_total_bytes
            overlaps = self._list_overlaps(levels, wave, lead)
        lost = 0.0
        for level, (reloaded, competing) in enumerate(l1.reloads):
            # Between two loads of a line lies the more of a work-group's life, the more it
            # oversubscribes its L1 cache; meanwhile every unit loads that share of a work-group.
            skew = self.oversubscribe(machine.compute_units, loops=max(0, level - 1))
            over = 0.0 if lead else RELOAD_DISTANCE * skew * min(1.0, competing)
            lost += reloaded * (1 - _hit_ahead(rates.l2_overlap, over, lead))
        return overlaps, lost * wave

    def _count_repeated(self, accesses: Sequence[ListedAccess], granularity: int) -> float:
        """Count the bytes that a work-group touches and another one as well, whole launch."""
        every = self._grid.work_groups
        return granularity * sum(
            one.count_group(granularity) * every - one.count_stretch(every, granularity)
            for one in accesses
        )

    def _lose(self, accesses: Sequence[ListedAccess], granularity: int) -> float:
        """Estimate the bytes of scattered accesses that L2 has lost since another work-group had
        them.

        Data that is met again anywhere hits as often as it is among what the cache holds: what the
        work-groups touch that together touch its capacity (Che's approximation of an LRU cache).
        """
        every = self._grid.work_groups
        if not accesses or self.oversubscribe(every) <= 1:
            return 0.0
        one = self.oversubscribe(1)
        if one >= 1:
            held = 1 / one
        else:
            held, many = 1.0, float(every)
            while many - held > max(1.0, 0.01 * held):
                middle = (held + many) / 2
                if self.oversubscribe(int(middle)) > 1:
                    many = middle
                else:
                    held = middle
        own, all_bytes = (
            sum(one.count_stretch(groups, granularity) for one in accesses)
            for groups in (max(held, 1.0), every)
        )
        hit = min(held, 1.0) * min(1.0, own / all_bytes)
        return max(0.0, self._count_repeated(accesses, granularity)) * (1 - hit)

    def _lose_in_order(self, wave: int, stored_bytes: float) -> float:
        """Estimate what DRAM sends again of loads without loops, in bytes of the whole launch.

        On AMD's GPUs a work-item's loads spread over its life in the order of the program: a
        stencil that loads the layer before first and the one behind last comes back to data sooner
        than one that begins with its own layer. Nothing in this is fitted: the hit rate is that of
        all caches.
        """
        layers, depth = self._grid.counts[self._axis], self._grid.local[self._axis]
        life = wave * layers / self._grid.work_groups
        families = group_families(self._load_boxes)
        gaps = [self._list_gaps(one, life) for one in families]
        loaded = []
        for family in families:
            # Layers of data beyond those of work-groups: a star's ghost layers.
            bases = [one.base_bytes for one in family]
            pitch = family[0].local_strides[self._axis] * depth
            levels = Footprint(boxes=family, grid=self._grid).list_levels(
                wave, self._machine.dram_fetch_bytes
            )
            loaded.append(levels[-1] / (layers + (max(bases) - min(bases)) // pitch))
        lost = 0.0
        for own, own_bytes in zip(gaps, loaded, strict=True):
            finite = own[own < _NEVER]
            if not finite.size:
                continue
            times, counts = np.unique(np.round(finite, 6), return_counts=True)
            touched = stored_bytes / layers * times
            for other, other_bytes in zip(gaps, loaded, strict=True):
                # Loads that follow one another by a gap touch the same layers but for that gap.
                known = np.where(other < _NEVER, other, 0.0)
                later = np.minimum(known[None], times[:, None, None]).sum(axis=2).mean(axis=1)
                touched = touched + other_bytes * (times + later)
            overs = (touched / self._machine.l2_total_bytes).tolist()
            missed = [1 - self._rates.l2_overlap.at(one) for one in overs]
            lost += own_bytes * float(np.dot(missed, counts)) / len(own)
        return lost * layers

    def _list_gaps(self, family: Family, life: float) -> FloatArray:
        """List the times between touches of data, in layers, one row per kind of data."""
        origin = min(one.base_bytes for one in family)
        place = {id(one): number for number, one in enumerate(self._load_boxes)}
        instructions = len(self._load_boxes) + len(self._store_boxes)
        depth = self._grid.local[self._axis]
        layers: FloatArray = np.arange(depth, dtype=np.float64)
        kinds: dict[tuple[int, int], list[FloatArray]] = {}
        for one in family:
            # Which of the layers and rows that a work-item owns it leads to.
            offset, pitch = one.base_bytes - origin, one.local_strides[self._axis]
            parts = round(offset / pitch * _LAYER_PARTS)
            shift, residue = divmod(parts, _LAYER_PARTS)
            row = one.local_strides[1] if self._axis > 1 else 0
            rest = offset - parts * pitch / _LAYER_PARTS
            part = round(rest / row * _ROW_PARTS) % _ROW_PARTS if row else 0
            when = (place[id(one)] + 0.5) / instructions * life
            times: FloatArray = (layers - shift) // depth + np.float64(when)
            kinds.setdefault((residue, part), []).append(times)
        most = max(len(one) for one in kinds.values())
        rows = np.full((len(kinds) * depth, max(most - 1, 1)), _NEVER)
        for number, touches in enumerate(kinds.values()):
            ordered = np.sort(np.stack(touches, axis=1), axis=1)
            own = rows[number * depth : (number + 1) * depth]
            own[:, : len(touches) - 1] = np.diff(ordered, axis=1)
        return rows


def _hit_ahead(rate: HitRate, over: float, lead: float) -> float:
    """Average a hit rate where the second of two work-items may be ahead or behind."""
    # Two of which each may stand anywhere in its life are apart by a triangularly distributed share
    # of what is loaded meanwhile, the lead.
    if not lead:
        return rate.at(over)
    shares = [(2 * place + 1) / 16 - 1 for place in range(16)]
    hits = sum((1 - abs(one)) * rate.at(abs(over + one * lead)) for one in shares)
    return hits / sum(1 - abs(one) for one in shares)
