"""Counters to what a work-item executes on average and how warps share it."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.expressions.kernel_facts import ONCE, BlockKind, KernelFacts
from kernelcast.features.counting.divergence import count_divergent_branches
from kernelcast.features.counting.instructions import count_instructions
from kernelcast.records.operations import OperationKind, add_weighted
from kernelcast.records.software_counters import (
    CounterSample,
    LoopTrips,
    RequestPattern,
    SoftwareCounters,
    WarpCounters,
)  # fmt: skip

WARP_WIDTHS = (16, 32, 64)
"""Sub-groups of Intel's GPUs, warps of NVIDIA's, wavefronts of AMD's."""

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Lane = TypeVar("Lane", bound=np.generic)


def summarise(
    facts: KernelFacts,
    sample: CounterSample,
    *,
    warp_widths: Sequence[int] = WARP_WIDTHS,
    patterns: Sequence[RequestPattern] = (),
) -> SoftwareCounters:
    """Summarise the counters of sampled work-groups.

    Parameters
    ----------
    warp_widths : sequence of int
        Work-items that run in step, for each `WarpCounters`.
    patterns : sequence of RequestPattern
        Passed on, see `compute_requests`.

    Returns
    -------
    SoftwareCounters
        Instructions of warps are those of `count_instructions`. The last warp of a work-group
        may lack lanes; they do no useful work.
    """
    is_present = sample.is_present
    counts = count_blocks(facts, sample)
    means = counts[is_present].mean(axis=0) if is_present.any() else np.zeros(len(facts.blocks))
    block_counts = tuple(float(mean) for mean in means)
    executed = add_weighted(
        (block.operations, count)
        for block, count in zip(facts.blocks, block_counts, strict=True)
        if count
    )
    sizes = np.array([count_instructions(block.operations) for block in facts.blocks])
    return SoftwareCounters(
        work_groups=len(sample.work_groups),
        work_items=int(is_present.sum()),
        executed=executed,
        block_counts=block_counts,
        warps=tuple(
            _count_warps(facts, counts, is_present, (sizes, width)) for width in warp_widths
        ),
        loops=_count_loops(facts, counts[is_present]),
        patterns=tuple(patterns),
        is_exact=all(sample.is_exact),
    )


def count_blocks(facts: KernelFacts, sample: CounterSample) -> FloatArray:
    """Count how often each work-item executes each block.

    Returns
    -------
    ndarray of float64, shape (work-groups, work-items, blocks)
        0 for work-items that a remainder work-group lacks.
    """
    return count_sums(sample, [block.count for block in facts.blocks])


def count_sums(sample: CounterSample, sums: Sequence[tuple[tuple[int, int], ...]]) -> FloatArray:
    """Add up counters times factors, as `BlockFacts.count` has them; shape as of `count_blocks`."""
    factors = np.zeros((sample.counts.shape[2], len(sums)))
    constant = np.zeros(len(sums))
    for place, terms in enumerate(sums):
        for counter, factor in terms:
            if counter == ONCE:
                constant[place] += factor
            else:
                factors[counter, place] += factor
    is_whole = bool(sample.is_present.all())
    counters = sample.counts if is_whole else np.nan_to_num(sample.counts)
    counts: FloatArray = counters @ factors
    counts += constant
    # Differences of estimated counters may come out below zero.
    np.maximum(counts, 0, out=counts)
    return counts if is_whole else counts * sample.is_present[..., None]


def split_lanes(values: npt.NDArray[Lane], width: int) -> npt.NDArray[Lane]:
    """Put work-items that run in step side by side.

    Parameters
    ----------
    values : ndarray, shape (work-groups, work-items, any)
        Of work-items in the order of their local ids.
    width : int
        Work-items of a warp or vector.

    Returns
    -------
    ndarray, shape (work-groups, warps, width, any)
        0 for lanes that the last warp of a work-group lacks.
    """
    groups, items, columns = values.shape
    missing = -items % width
    filled = np.pad(values, ((0, 0), (0, missing), (0, 0))) if missing else values
    return filled.reshape(groups, -1, width, columns)


def _count_warps(
    facts: KernelFacts, counts: FloatArray, is_present: BoolArray, warps: tuple[FloatArray, int]
) -> WarpCounters:
    sizes, width = warps
    lanes = split_lanes(counts, width).reshape(-1, width, counts.shape[2])
    present = split_lanes(is_present[..., None], width).reshape(-1, width)
    kept = present.any(axis=1)
    lanes, present = lanes[kept], present[kept]
    if len(lanes) and (lanes == lanes[0]).all() and present.all():
        lanes, present = lanes[:1], present[:1]
    branches = np.array(
        [block.operations.count(OperationKind.BRANCH) for block in facts.blocks], dtype=np.float64
    )
    passes = lanes.max(axis=1)
    parted = count_divergent_branches(facts, lanes, present)
    return WarpCounters(
        width=width,
        issued=_mean(passes @ sizes),
        executed=_mean(lanes.sum(axis=1) @ sizes),
        branches=_mean(passes @ branches),
        divergent_branches=_mean(parted),
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else 0.0


def _count_loops(facts: KernelFacts, counts: FloatArray) -> tuple[LoopTrips, ...]:
    """Give iterations per entry; `counts` has one row per work-item."""
    found = []
    for block in facts.blocks:
        if block.kind != BlockKind.LOOP_BODY or block.parent is None:
            continue
        entries = counts[:, block.parent]
        inside = entries > 0
        trips = counts[inside, block.id] / entries[inside] if inside.any() else np.zeros(1)
        found.append(
            LoopTrips(
                line=block.line,
                function=block.function,
                mean=float(trips.mean()),
                least=float(trips.min()),
                median=float(np.median(trips)),
                most=float(trips.max()),
            )
        )
    return tuple(found)
