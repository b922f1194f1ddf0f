"""Counters to what a work-item executes on average and how warps share it."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import TRUE
from kernelcast.expressions.kernel_facts import BlockKind, KernelFacts
from kernelcast.expressions.symbols import BoolArray
from kernelcast.features.counting.static import ASSUMED_TRIPS, FloatArray, known_part
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
    add_weighted,
)  # fmt: skip
from kernelcast.records.software_counters import (
    CounterSample,
    LoopTrips,
    RequestPattern,
    SoftwareCounters,
    WarpCounters,
)  # fmt: skip

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
        if (lanes == lanes[0]).all() and takes_part.all():
            lanes, takes_part = lanes[:1], takes_part[:1]
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
        is_exact=all(sample.is_exact),
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
