"""Volumes between L2 cache and DRAM: footprints of waves, rows and layers of work-groups.

Work-groups run in dispatch order. What a row of them shares with the row before was last touched a
row ago, what a layer shares with the layer before, a layer ago (the paper's y- and z-layer sets,
section 4.4.2). What is touched in between, over the capacity of the L2 cache, decides how much of
it is still there. All footprints are sums over the whole launch, edges included.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.hit_rates import HitRate, HitRates
from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid
from kernelcast.analytic.gpu.volumes.boxes import Family, group_families
from kernelcast.analytic.gpu.volumes.footprints import (
    Footprint,
    count_pages,
    count_run,
    list_levels,
    list_stretches,
)
from kernelcast.analytic.gpu.volumes.listed import ListedAccess
from kernelcast.analytic.gpu.volumes.record import L1Volumes, Overlap, WaveVolumes

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedLoads:
    """Loads of a launch without loops, in the order of the program, and what L2 loses between them.

    On AMD's GPUs a work-item's loads spread over its life in that order: a stencil that loads the
    layer before first and the one behind last comes back to data sooner than one that begins with
    its own layer. Nothing in this is fitted: the hit rate is that of all caches.
    """

    loads: tuple[BoxAccess, ...]
    stores: int
    grid: Grid
    axis: int
    """Dimension across which layers of work-groups follow one another."""

    def lose(
        self,
        wave: int,
        granularity: int,
        stored_bytes: float,
        capacity_bytes: float,
        hit_rate: Callable[[float], float],
    ) -> float:
        """Estimate what DRAM sends again, in bytes of the whole launch."""
        layers, depth = self.grid.counts[self.axis], self.grid.local[self.axis]
        life = wave * layers / self.grid.work_groups
        families = group_families(self.loads)
        gaps = [self._list_gaps(one, life) for one in families]
        loaded = []
        for family in families:
            # Layers of data beyond those of work-groups: a star's ghost layers.
            bases = [one.base_bytes for one in family]
            pitch = family[0].local_strides[self.axis] * depth
            levels = Footprint(boxes=family, grid=self.grid).list_levels(wave, granularity)
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
            missed = [1 - hit_rate(one / capacity_bytes) for one in touched.tolist()]
            lost += own_bytes * float(np.dot(missed, counts)) / len(own)
        return lost * layers

    def _list_gaps(self, family: Family, life: float) -> FloatArray:
        """List the times between touches of data, in layers, one row per kind of data."""
        origin = min(one.base_bytes for one in family)
        place = {id(one): number for number, one in enumerate(self.loads)}
        instructions = len(self.loads) + self.stores
        depth = self.grid.local[self.axis]
        layers: FloatArray = np.arange(depth, dtype=np.float64)
        kinds: dict[tuple[int, int], list[FloatArray]] = {}
        for one in family:
            # Which of the layers and rows that a work-item owns it leads to.
            offset, pitch = one.base_bytes - origin, one.local_strides[self.axis]
            parts = round(offset / pitch * _LAYER_PARTS)
            shift, residue = divmod(parts, _LAYER_PARTS)
            row = one.local_strides[1] if self.axis > 1 else 0
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


def order_loads(
    loads: Sequence[BoxAccess], stores: Sequence[BoxAccess], grid: Grid
) -> OrderedLoads | None:
    """Order the loads of a launch; None where there are loops, or no layers that share data."""
    axis = max((one for one in range(3) if grid.counts[one] > 1), default=0)
    if axis == 0 or not loads or any(one.loops for one in (*loads, *stores)):
        return None
    if any(one.local_strides[axis] <= 0 for one in loads):
        return None
    return OrderedLoads(loads=tuple(loads), stores=len(stores), grid=grid, axis=axis)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a launch loads, what it stores, and both together, between L2 cache and DRAM."""

    machine: GpuMachine
    rates: HitRates
    grid: Grid
    loads: Sequence[Footprint]
    stores: Sequence[Footprint]
    touched: Sequence[Sequence[Footprint]]
    """Both together: of one iteration of all loops, of the innermost loop, and so on; last, of
    all."""
    group_store_bytes: float
    """Unique written sectors of every single work-group, added up."""
    random_loads: Sequence[ListedAccess] = ()
    random_stores: Sequence[ListedAccess] = ()
    """Those whose data any work-group may have touched before."""
    are_stores_listed: bool = False
    """Whether stores are known from addresses of some work-groups only."""
    is_spread: bool = False
    """Whether loads are spread over the lives of work-items, which do not fit into registers."""
    ordered: OrderedLoads | None = None

    def oversubscribe(self, work_groups: int, *, loops: int | None = None) -> float:
        """Compute what consecutive work-groups touch over the capacity of all L2 caches."""
        touched = self.touched[-1 if loops is None else min(loops, len(self.touched) - 1)]
        fetch = self.machine.dram_fetch_bytes
        return count_run(touched, work_groups, fetch) / self.machine.l2_total_bytes

    def compute_wave(self, work_groups_per_unit: int, l1: L1Volumes) -> WaveVolumes:
        """Compute what an average wave moves between L2 cache and DRAM."""
        grid, touched, machine = self.grid, self.touched[-1], self.machine
        count, layer = grid.work_groups, grid.counts[0] * grid.counts[1]
        wave = min(count, work_groups_per_unit * machine.compute_units)
        waves = count / wave
        fetch, sector = machine.dram_fetch_bytes, machine.l1_sector_bytes
        levels = list_levels(self.loads, wave, fetch)
        stores = list_levels(self.stores, wave, sector)
        unique = stores[-1]
        if not self.are_stores_listed:  # seams of short rows count twice in boxes
            unique = min(unique, self.group_store_bytes)
        overlaps, lost = self._meet_again(levels, unique, wave, l1)
        skew = self.oversubscribe(machine.compute_units)
        repeated = self._count_repeated(self.random_stores, sector)
        partial = self.group_store_bytes - stores[0] - repeated
        scattered = self._lose(self.random_stores, sector) / waves
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
            capacity_load_bytes=lost + self._lose(self.random_loads, fetch) / waves,
            partial_store_bytes=max(0.0, partial) / waves * (1 - self.rates.l2_store.at(skew))
            + scattered,
            tlb_pages=pages,
        )

    def _list_overlaps(self, levels: Sequence[float], wave: int, lead: float) -> list[Overlap]:
        stretches = list_stretches(self.grid, wave)
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
            rate = (self.rates.l2_layer if name == "z" else None) or self.rates.l2_overlap
            hits = together * _hit_ahead(rate, near, lead)
            hits += (1 - together) * _hit_ahead(rate, over, lead)
            shared = (before - behind) / (self.grid.work_groups / wave)
            found.append(Overlap(shared_bytes=shared, oversubscription=over, hit_rate=hits))
        return found

    def _meet_again(
        self, levels: Sequence[float], stored_bytes: float, wave: int, l1: L1Volumes
    ) -> tuple[list[Overlap], float]:
        """List what work-groups of a wave share with others, and add up what it loads again."""
        count, machine, rates = self.grid.work_groups, self.machine, self.rates
        waves = count / wave
        overlaps = self._list_overlaps(levels, wave, 0.0)
        row_bytes = levels[0] / waves
        if rates.l2_reload is not None:
            reused = sum(one.shared_bytes * one.hit_rate for one in overlaps)
            redundant = max(0.0, l1.loaded_bytes * wave - (row_bytes - reused))
            return overlaps, redundant * (1 - rates.l2_reload.at(self.oversubscribe(wave)))
        if self.ordered is not None:
            again = self.ordered.lose(
                wave, machine.dram_fetch_bytes, stored_bytes, machine.l2_total_bytes,
                rates.l2_overlap.at,
            )  # fmt: skip
            again = min(again, max(l1.loaded_bytes * count - levels[-1], 0.0)) / waves
            shared = sum(one.shared_bytes for one in overlaps)
            hit = max(0.0, 1 - again / shared) if shared > 0 else 0.0
            return [replace(one, hit_rate=hit) for one in overlaps], max(0.0, again - shared)
        lead = 0.0
        if self.is_spread:  # Work-groups of a wave run ahead of one another.
            moved = row_bytes - sum(one.shared_bytes * one.hit_rate for one in overlaps)
            lead = RELOAD_DISTANCE * (moved + stored_bytes / waves) / machine.l2_total_bytes
            overlaps = self._list_overlaps(levels, wave, lead)
        lost = 0.0
        for one in l1.reloads:
            # Between two loads of a line lies the more of a work-group's life, the more it
            # oversubscribes its L1 cache; meanwhile every unit loads that share of a work-group.
            skew = self.oversubscribe(machine.compute_units, loops=one.loops)
            over = 0.0 if lead else RELOAD_DISTANCE * skew * min(1.0, one.oversubscription)
            lost += one.bytes * (1 - _hit_ahead(rates.l2_overlap, over, lead))
        return overlaps, lost * wave

    def _count_repeated(self, accesses: Sequence[ListedAccess], granularity: int) -> float:
        """Count the bytes that a work-group touches and another one as well, whole launch."""
        every = self.grid.work_groups
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
        every = self.grid.work_groups
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


def _hit_ahead(rate: HitRate, over: float, lead: float) -> float:
    """Average a hit rate where the second of two work-items may be ahead or behind."""
    # Two of which each may stand anywhere in its life are apart by a triangularly distributed share
    # of what is loaded meanwhile, the lead.
    if not lead:
        return rate.at(over)
    shares = [(2 * place + 1) / 16 - 1 for place in range(16)]
    hits = sum((1 - abs(one)) * rate.at(abs(over + one * lead)) for one in shares)
    return hits / sum(1 - abs(one) for one in shares)
