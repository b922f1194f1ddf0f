"""What work-items execute on average, how warps share it, and how their requests touch memory."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import TRUE, EvaluationError, Symbol, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_ids, bind_names
from kernelcast.expressions.kernel_facts import BlockKind, KernelFacts
from kernelcast.expressions.symbols import BoolArray, IntArray
from kernelcast.features.counting.static import (
    ASSUMED_TRIPS,
    FloatArray,
    Points,
    choose_work_groups,
    known_part,
    run_guarded,
    widen,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
    add_weighted,
)
from kernelcast.records.software_counters import (
    CounterSample,
    LoopTrips,
    RecordedAddresses,
    RequestPattern,
    SoftwareCounters,
    WarpCounters,
)

WIDEST_ACCESS_BYTES = 16
"""What one memory instruction moves per work-item at most."""

_FREE = frozenset({OperationKind.ADDRESS, OperationKind.JUMP})


def count_instructions(counts: OperationCounts) -> float:
    """Count instructions, one per lane or 16 bytes, without jumps, addresses and private memory."""
    total: float = sum(
        times * one.lanes
        for one, times in counts.operations.items()
        if one.kind not in _FREE
        and (one.kind is not OperationKind.CONVERT or one.number is NumberClass.FLOAT)
    )
    return total + sum(
        times * math.ceil(access.bytes / WIDEST_ACCESS_BYTES)
        for access, times in counts.memory.items()
        if access.space is not MemorySpace.PRIVATE
    )


def count_divergent_branches(
    facts: KernelFacts, counts: FloatArray, is_present: BoolArray
) -> FloatArray:
    """Bound branches at which lanes part from below, by counts of shape (warps, lanes, blocks)."""
    total = np.zeros(counts.shape[0])
    for block in facts.blocks:
        if block.parent is None:
            continue
        reached, taken = counts[..., block.parent], counts[..., block.id]
        around = facts.blocks[block.parent].kind
        if block.kind == BlockKind.THEN and around != BlockKind.LOOP_CONDITION:
            # t taken of b need max(t) + max(b - t) - max(b) executions in which lanes part.
            passed = np.maximum(reached - taken, 0)
            bound = taken.max(axis=1) + passed.max(axis=1) - reached.max(axis=1)
            total += np.maximum(bound, 0)
        elif block.kind == BlockKind.LOOP_BODY:
            # Lanes leave a loop entered once at as many places as there are trip counts but for
            # the last; entered more often, n places may make 2**n different sums of them.
            ordered = np.sort(np.where(is_present & (reached > 0), taken, np.inf), axis=1)
            is_new = np.isfinite(ordered[:, 1:]) & (ordered[:, 1:] > ordered[:, :-1])
            places = is_new.sum(axis=1).astype(np.float64)
            is_entered_once = reached.max(axis=1) <= 1
            total += np.where(is_entered_once, places, np.ceil(np.log2(places + 1)))
    return total


WARP_WIDTHS = (16, 32, 64)
"""Sub-groups of Intel's GPUs, warps of NVIDIA's, wavefronts of AMD's."""

Lane = TypeVar("Lane", bound=np.generic)


def summarise(
    facts: KernelFacts, sample: CounterSample, *, patterns: Sequence[RequestPattern] = ()
) -> SoftwareCounters:
    """Summarise counts as counters per work-item and per warp of each width."""
    is_present = sample.is_present
    counts = count_blocks(facts, sample)
    present = counts[is_present]
    block_counts = tuple(present.mean(axis=0).tolist())
    executed = add_weighted(
        (block.operations, count)
        for block, count in zip(facts.blocks, block_counts, strict=True)
        if count
    )
    sizes = np.array([count_instructions(block.operations) for block in facts.blocks])
    loops = []
    for block in facts.blocks:
        if block.kind != BlockKind.LOOP_BODY or block.parent is None:
            continue
        entries = present[:, block.parent]
        inside = entries > 0
        per_entry = present[inside, block.id] / entries[inside]
        trips = per_entry if per_entry.size else np.zeros(1)
        loops.append(LoopTrips(
            line=block.line, function=block.function, mean=float(trips.mean()),
            least=float(trips.min()), median=float(np.median(trips)), most=float(trips.max()),
        ))  # fmt: skip
    branches = np.array(
        [block.operations.count(OperationKind.BRANCH) for block in facts.blocks], dtype=np.float64
    )

    warps = []
    for width in WARP_WIDTHS:
        lanes = split_lanes(counts, width).reshape(-1, width, counts.shape[2])
        takes_part = split_lanes(is_present[..., None], width).reshape(-1, width)
        kept = takes_part.any(axis=1)
        lanes, takes_part = lanes[kept], takes_part[kept]
        passes = lanes.max(axis=1)
        warps.append(WarpCounters(
            width=width,
            issued=float((passes @ sizes).mean()),
            executed=float((lanes.sum(axis=1) @ sizes).mean()),
            branches=float((passes @ branches).mean()),
            divergent_branches=float(count_divergent_branches(facts, lanes, takes_part).mean()),
        ))  # fmt: skip
    return SoftwareCounters(
        work_groups=len(sample.work_groups),
        work_items=int(is_present.sum()),
        executed=executed,
        block_counts=block_counts,
        warps=tuple(warps),
        loops=tuple(loops),
        patterns=tuple(patterns),
        is_exact=all(sample.is_exact) and not facts.gaps,
    )


def count_blocks(facts: KernelFacts, sample: CounterSample) -> FloatArray:
    """Count executions of blocks, of shape (work-groups, work-items, blocks)."""
    return add_once(sample)[..., [block.counter for block in facts.blocks]]


def add_once(sample: CounterSample) -> FloatArray:
    """Add the counter `ONCE` behind the others; shape (work-groups, work-items, counters)."""
    return np.concatenate([sample.counts, sample.is_present[..., None]], axis=2)


def split_lanes(values: npt.NDArray[Lane], width: int) -> npt.NDArray[Lane]:
    """Split work-items into warps, filled up with zeros: (work-groups, warps, width, any)."""
    groups, items, columns = values.shape
    missing = -items % width
    filled = np.pad(values, ((0, 0), (0, missing), (0, 0))) if missing else values
    return filled.reshape(groups, -1, width, columns)


_REPEATED = (BlockKind.LOOP_BODY, BlockKind.LOOP_STEP, BlockKind.LOOP_CONDITION)


def count_unjumped(facts: KernelFacts, counters: SoftwareCounters) -> OperationCounts:
    """Count what a work-item goes through on both sides of every condition, loops at least once."""
    times: list[float] = []
    for block, executions in zip(facts.blocks, counters.block_counts, strict=True):
        around = 1.0 if block.parent is None else times[block.parent]
        if block.parent is not None and block.kind in _REPEATED:
            idle = around - counters.block_counts[block.parent]
            around = max(around, executions + idle)
        times.append(around)
    found = add_weighted((one.operations, n) for one, n in zip(facts.blocks, times, strict=True))
    executed = counters.executed  # lanes that are masked out neither store nor do atomics
    return OperationCounts(
        operations={
            one: executed.operations.get(one, 0.0) if one.kind is OperationKind.ATOMIC else n
            for one, n in found.operations.items()
        },
        memory={
            one: executed.memory.get(one, 0.0) if one.is_store else n
            for one, n in found.memory.items()
        },
    )


_LEFT_EARLY = 2.9
"""Logarithm of bounds over what loops really do that data may end earlier: what 9 of 10 counts of
the corpus stay below (1.2 to 26 times as many; they are never too few)."""
_ENDLESS = math.log(1000.0)
"""The same of loops without any bound, either way: one element of a list, or a search of ten
thousands, where `ASSUMED_TRIPS` are assumed."""


def doubt_counts(facts: KernelFacts, counters: SoftwareCounters) -> tuple[float, tuple[str, ...]]:
    """Tell by how much the logarithm of the work may be off where data end loops, and why."""
    unsure = {one.name: one for one in facts.loops if not one.is_exact}
    if counters.is_exact or not unsure:
        return 0.0, ()
    endless = {name for name, one in unsure.items()
               if one.trip_count is None and known_part(one.condition) == TRUE}  # fmt: skip
    # The work by its counter, and the loops within which that counts: what is last is `ONCE`.
    work = [0.0] * (len(facts.reaches) + 1)
    for block, times in zip(facts.blocks, counters.block_counts, strict=True):
        work[block.counter] += times * count_instructions(block.operations)
    around = [*({loop.name for loop in one.loops} for one in facts.reaches), set[str]()]
    every = sum(work)
    half_width = 0.0
    for names, width in ((unsure.keys() - endless, -_LEFT_EARLY), (endless, _ENDLESS)):
        within = sum(amount for amount, own in zip(work, around, strict=True) if own & names)
        share = within / every if every else 0.0
        half_width += abs(math.log(1.0 - share + share * math.exp(width)))
    notes = [
        f"line {one.line}: loop ends depend on data; " + (
            f"{ASSUMED_TRIPS} iterations are assumed, and it may be any number"
            if one.name in endless
            else "it is taken to run to its bound, and may end much earlier"
        )
        for one in unsure.values()
    ]  # fmt: skip
    return half_width, tuple(dict.fromkeys(notes))


SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4

_NOWHERE = np.iinfo(np.int64).max
_PIECES = (16, 8, 4)


def find_touches(
    offsets_bytes: IntArray, is_active: BoolArray, size_bytes: int, *, is_local: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Count by request distinct sectors, those that the bytes would fill, and extra local passes;
    offsets and activity are of shape (requests, lanes)."""
    first, last = offsets_bytes // SECTOR_BYTES, (offsets_bytes + size_bytes - 1) // SECTOR_BYTES
    across = int((last - first).max(initial=0, where=is_active))
    touched = first[..., None] + np.arange(across + 1)
    _, is_new = _mark_distinct(touched, is_active[..., None] & (touched <= last[..., None]))
    conflicts = np.zeros(len(offsets_bytes), dtype=np.int64)
    if is_local:
        piece = next((one for one in _PIECES if size_bytes % one == 0), size_bytes)
        words = -(-piece // BANK_BYTES)
        at_once = BANKS // words
        missing = ((0, 0), (0, -offsets_bytes.shape[1] % at_once))
        starts = np.pad(offsets_bytes, missing)
        parts = len(starts), starts.shape[1] // at_once
        starts = starts.reshape(-1, at_once)
        takes_part = np.pad(is_active, missing).reshape(-1, at_once, 1)
        rows = np.arange(len(starts))[:, None]
        for begin in range(0, size_bytes, piece):
            word = (starts + begin)[..., None] // BANK_BYTES + np.arange(words)
            ordered, is_new_word = _mark_distinct(word, takes_part)
            place = (rows * BANKS + ordered % BANKS)[is_new_word]
            counts = np.bincount(place, minlength=rows.size * BANKS).reshape(*parts, BANKS)
            conflicts += np.maximum(counts.max(axis=2) - 1, 0).sum(axis=1)
    ideal = -(-is_active.sum(axis=1) * size_bytes // SECTOR_BYTES)
    return is_new.sum(axis=1), ideal, conflicts


def _mark_distinct(values: IntArray, is_used: BoolArray) -> tuple[IntArray, BoolArray]:
    """Sort what each row holds and mark the first of equal values, those not used left out."""
    ordered = np.where(is_used, values, _NOWHERE).reshape(len(values), math.prod(values.shape[1:]))
    ordered.sort(axis=1)
    is_new = ordered != _NOWHERE
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, is_new


WARP_WIDTH = 32

_MOST_ADDRESSES = 65_536
"""Addresses evaluated per access, at most: about 10 ms. Beyond, some iterations stand for all."""

_Requests = tuple[MemoryAccess, FloatArray, IntArray, BoolArray]
"""Requests of one access: numbers that they stand for, offsets and activity of their lanes."""


def compute_requests(
    accesses: Iterable[MemoryAccess],
    ndrange: NDRange,
    scalars: Mapping[str, int],
    *,
    warp_width: int = WARP_WIDTH,
    work_groups: Sequence[int] | None = None,
) -> tuple[RequestPattern, ...]:
    """Compute patterns of warps' requests from addresses; conditions on data count as met."""
    groups = work_groups or choose_work_groups(ndrange)
    ids, is_present = bind_ids(ndrange, groups)
    # Ids by warp and lane; missing lanes repeat some other's.
    missing = (0, 0), (0, -is_present.shape[1] % warp_width)
    is_present = np.pad(is_present, missing).reshape(-1, warp_width)
    kept = np.asarray(is_present.any(axis=1))
    is_present = is_present[kept]
    bindings: dict[Symbol, Value] = {
        symbol: np.pad(value, missing, mode="edge").reshape(-1, warp_width)[kept]
        if isinstance(value, np.ndarray)
        else value
        for symbol, value in ids.items()
    }
    start = Points.start(bindings | bind_names(scalars), is_present)
    run = cache(partial(run_guarded, start, budget=_MOST_ADDRESSES))
    found: list[_Requests] = []
    for access in accesses:
        offset = access.offset_bytes
        if offset is None or not access.bytes:  # the size of an undeclared type is not known
            continue
        own = frozenset(loop.symbol for loop in access.loops)
        if not offset.symbols() - own <= start.bindings.keys():
            continue
        points, share = run(access.guard, access.loops, offset.symbols())
        is_active = share > 0
        try:
            offsets = widen(offset.evaluate_where(is_active, points.bindings), share.shape)
        except EvaluationError:
            continue
        found.append((access, points.weights, offsets, is_active))
    return _merge(found, warps=len(is_present))


def measure_requests(
    accesses: Sequence[MemoryAccess], recorded: RecordedAddresses, *, warp_width: int = WARP_WIDTH
) -> tuple[RequestPattern, ...]:
    """Measure patterns from recordings: n-th executions of a warp's lanes are one request."""
    # Accesses that make up one request go into one row.
    warp, lane = np.divmod(recorded.local_ids, warp_width)
    _, group = np.unique(recorded.groups, return_inverse=True)
    keys = recorded.sites, group, warp, recorded.sequences
    key = np.ravel_multi_index(keys, [int(one.max(initial=0)) + 1 for one in keys])
    _, first, row = np.unique(key, return_index=True, return_inverse=True)
    rows = recorded.sites[first]
    offsets = np.zeros((rows.size, warp_width), dtype=np.int64)
    is_active = np.zeros(offsets.shape, dtype=np.bool_)
    offsets[row, lane] = recorded.offsets_bytes
    is_active[row, lane] = True
    by_site = {access.site: access for access in reversed(accesses)}
    warps = sum(-(-size // warp_width) for size in recorded.work_items)
    found = []
    for site in np.unique(rows):
        access = by_site.get(int(site))
        if access is None or not access.bytes:
            continue
        mine = rows == site
        found.append((access, np.ones(int(mine.sum())), offsets[mine], is_active[mine]))
    return _merge(found, warps=warps, is_measured=True)


def _merge(
    found: Iterable[_Requests], *, warps: int, is_measured: bool = False
) -> tuple[RequestPattern, ...]:
    places: dict[tuple[int, str | None], list[_Requests]] = defaultdict(list)
    for one in found:
        places[one[0].site, one[0].buffer].append(one)
    patterns = []
    for parts in places.values():
        access = parts[0][0]
        weights, offsets, is_active = map(np.concatenate, list(zip(*parts, strict=True))[1:])
        total = float(weights.sum())
        is_local = access.space is MemorySpace.LOCAL
        sectors, ideal_sectors, conflicts = (
            float(weights @ column) / total if total else 0.0
            for column in find_touches(offsets, is_active, access.bytes, is_local=is_local)
        )
        patterns.append(RequestPattern(
            site=access.site, line=access.line, buffer=access.buffer, space=access.space,
            is_store=access.kind is not AccessKind.LOAD, requests=total / max(1, warps),
            sectors_per_request=sectors, ideal_sectors_per_request=ideal_sectors,
            bank_conflicts_per_request=conflicts, is_measured=is_measured,
        ))  # fmt: skip
    return tuple(patterns)
