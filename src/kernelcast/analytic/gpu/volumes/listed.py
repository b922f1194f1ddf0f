"""Accesses whose addresses are listed for some work-groups, and what that says of all.

Addresses that divide, choose or multiply variables are evaluated; addresses that depend on data
were recorded. Pairs of neighbouring work-groups tell how much a further work-group adds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from kernelcast.analytic.addresses import (
    ABSENT,
    GroupAddresses,
    GroupEvaluator,
    drop_repeated,
    list_lines,
    read_recorded,
)
from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.analytic.gpu.volumes.affine import BoxAccess, IntArray, find_hull
from kernelcast.analytic.gpu.volumes.warps import (
    FamilyCosts,
    count_different,
    measure_addresses,
)
from kernelcast.expressions import Expr, Symbol
from kernelcast.expressions.accesses import MemoryAccess, ModelledLaunch

_PLACES = (1 / 6, 1 / 2, 5 / 6)
_ITERATIONS = 256
"""Iterations of all loops together that are listed; more are extrapolated."""


def evaluate_groups(access: MemoryAccess, launch: ModelledLaunch) -> dict[int, GroupAddresses]:
    """Evaluate an address for pairs of neighbouring work-groups at three places of the grid."""
    assert access.offset_bytes is not None
    count = launch.ndrange.work_group_count
    chosen = sorted({min(count - 1, int(one * count) + by) for one in _PLACES for by in (0, 1)})
    return GroupEvaluator(launch, chosen, _ITERATIONS).evaluate(access, access.offset_bytes)


def divide_warps(table: IntArray, width: int) -> IntArray:
    """Divide addresses by work-item and iteration into instructions by lane."""
    size, iterations = table.shape
    whole = np.full((-(-size // width) * width, iterations), ABSENT, dtype=np.int64)
    whole[:size] = table
    rows: IntArray = whole.reshape(-1, width, iterations).transpose(0, 2, 1).reshape(-1, width)
    kept: IntArray = rows[(rows != ABSENT).any(axis=1)]
    return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedAccess:
    access: MemoryAccess
    groups: Mapping[int, IntArray]
    """Instructions by lanes, of each listed work-group; `ABSENT` for lanes that take no part."""
    repeats: Mapping[int, float]
    """How many instructions each listed one stands for: long loops are cut short."""
    buffer_bytes: int | None
    is_random: bool
    """Whether a work-group may hit what any other has touched: addresses depend on data."""
    warps: int
    hull: BoxAccess | None = None
    share: float = 1.0
    """Part of all iterations that counts."""
    counted: dict[int, list[float]] = field(default_factory=dict, repr=False)
    growth: dict[int, float] = field(default_factory=dict, repr=False)

    def keep_inner(self, loops: int) -> "ListedAccess":
        """Take an iteration's share of the addresses, unless all loops run."""
        if loops >= len(self.access.loops):
            return self
        hull = None if self.hull is None else self.hull.keep_inner(loops)
        return replace(self, share=1 / max(1.0, self._count_instructions() / self.warps), hull=hull)

    def _count_instructions(self) -> float:
        executed = sum(rows.shape[0] * self.repeats[group] for group, rows in self.groups.items())
        return float(executed / len(self.groups))

    def cost(self, machine: GpuMachine) -> FamilyCosts:
        rows = np.concatenate(list(self.groups.values()))
        instructions = self._count_instructions()
        # As if all lanes had taken part in each iteration.
        iterations = max(1.0, instructions / self.warps)
        costs = measure_addresses(rows, np.ones(len(rows)), self.access.bytes, machine)
        unique = self.count_group(machine.l1_sector_bytes)
        lines = self.count_group(machine.l1_line_bytes)
        warp_sectors = costs.sectors * instructions
        unshared = max(unique, warp_sectors)
        reused = total = 0
        for rows in self.groups.values():
            units = np.where(rows == ABSENT, ABSENT, rows // machine.l1_line_bytes)
            different = drop_repeated(np.sort(units, axis=1))
            _, times = np.unique(different[different != ABSENT], return_counts=True)
            reused, total = reused + int((times > 1).sum()), total + times.size
        return FamilyCosts(
            buffer=self.access.buffer or "",
            costs=costs,
            instructions=instructions,
            sectors=(unshared, unique) if self.access.loops else (unique,),
            lines=(lines / iterations, lines) if self.access.loops else (lines,),
            reused_share=(reused / total if total else 0.0),
            warp_sectors=warp_sectors,
        )

    def count_group(self, granularity: int) -> float:
        each = self.count_each(granularity)
        return min(sum(each) / len(each), self.count_buffer(granularity))

    def count_each(self, granularity: int) -> list[float]:
        if granularity not in self.counted:
            self.counted[granularity] = [
                self._count_units(granularity, group) * self.repeats[group] for group in self.groups
            ]
        return self.counted[granularity]

    def count_buffer(self, granularity: int) -> float:
        """Count the sectors of the whole buffer; infinitely many if its size is not known."""
        shift = self.access.bytes - 1  # a buffer need not begin with a sector
        if not self.buffer_bytes:
            return math.inf
        return float(-(-(self.buffer_bytes + shift) // granularity))

    def count_stretch(self, work_groups: float, granularity: int) -> float:
        """Estimate the unique sectors of consecutive work-groups."""
        own = self.count_group(granularity)
        room = max(0.0, self.count_buffer(granularity) - own)
        if granularity not in self.growth:
            # What a work-group adds to the one before. Neighbours often share the sector between
            # them, at every place alike: then the bytes that it adds tell more than the sectors.
            size = self.access.bytes
            pairs = [(one, one + 1) for one in self.groups if one + 1 in self.groups]
            whole, exact = (
                sum(
                    (self._count_units(unit, one, other) - self._count_units(unit, one))
                    * self.repeats[other]
                    for one, other in pairs
                )
                / max(len(pairs), 1)
                for unit in (granularity, size)
            )
            added = max(whole, exact * size / granularity)
            self.growth[granularity] = added if pairs else own
        linear = max(0.0, work_groups - 1) * self.growth[granularity]
        if not self.is_random or math.isinf(room):
            return own + min(linear, room)
        return own + (room * -math.expm1(-linear / room) if room else 0.0)

    def _count_units(self, granularity: int, *groups: int) -> int:
        """Count the different sectors of some of the listed work-groups."""
        flat = np.concatenate([self.groups[one].ravel() for one in groups])
        return list_lines(flat[flat != ABSENT], self.access.bytes, granularity).size


Accesses = Sequence[BoxAccess | ListedAccess]
"""Boxes first, then those that are no boxes."""


def keep_boxes(accesses: Accesses) -> list[BoxAccess]:
    return [one for one in accesses if isinstance(one, BoxAccess)]


def keep_listed(accesses: Accesses) -> list[ListedAccess]:
    return [one for one in accesses if isinstance(one, ListedAccess)]


def list_access(
    access: MemoryAccess,
    launch: ModelledLaunch,
    machine: GpuMachine,
    bound: Mapping[Symbol, Expr | Symbol | int],
) -> ListedAccess | None:
    is_known = access.offset_bytes is not None
    found = evaluate_groups(access, launch) if is_known else read_recorded(access, launch)
    if not any(one.count for one in found.values()):
        if is_known:
            return None
        raise access.refuse_unknown(launch.kernel)
    groups = {group: divide_warps(one.table, machine.warp_width) for group, one in found.items()}
    # Work-groups far apart that touch the same part of a buffer may hit what any has touched; a
    # single place tells nothing, and what depends on data is mostly spread.
    used = {group: rows[rows != ABSENT] for group, rows in groups.items()}
    spans = {group: (rows.min(), rows.max()) for group, rows in used.items() if rows.size}
    apart = [pair for pair in combinations(sorted(spans), 2) if pair[1] > pair[0] + 1]
    is_random = not is_known and not apart
    for one, other in () if is_known else apart:
        (low, high), (start, end) = spans[one], spans[other]
        shared = min(high, end) - max(low, start)
        is_random |= bool(2 * shared > min(high - low, end - start))
    return ListedAccess(
        access=access,
        groups=groups,
        repeats={group: one.repeats for group, one in found.items()},
        buffer_bytes=launch.buffers.get(access.buffer or ""),
        is_random=is_random,
        warps=-(-launch.ndrange.work_group_size // machine.warp_width),
        hull=find_hull(access, launch, bound),
    )


def cost_listed(listed: Sequence[ListedAccess], machine: GpuMachine) -> list[FamilyCosts]:
    """Cost accesses for an average work-group; a warp finds what others of a buffer have loaded."""
    costs = [one.cost(machine) for one in listed]
    sector = machine.l1_sector_bytes
    for name in {one.access.buffer for one in listed}:
        places = [number for number, one in enumerate(listed) if one.access.buffer == name]
        tables = [
            np.concatenate([listed[place].groups[group] for group in sorted(listed[place].groups)])
            for place in places
        ]
        if len({one.shape for one in tables}) > 1 or len(places) == 1:
            continue  # other warps, or other iterations, take part in each
        units = [np.where(one == ABSENT, ABSENT, one // sector) for one in tables]
        alone = sum(count_different(np.sort(one, axis=1)).sum() for one in units)
        together = count_different(np.sort(np.concatenate(units, axis=1), axis=1)).sum()
        share = float(together / max(alone, 1))
        for place in places:
            costs[place] = replace(costs[place], warp_sectors=costs[place].warp_sectors * share)
    return costs
