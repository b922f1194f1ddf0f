"""At how many branches the work-items of a warp part, at least, to judge by their counts."""

import numpy as np
import numpy.typing as npt

from kernelcast.expressions.kernel_facts import BlockFacts, BlockKind, KernelFacts

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def count_divergent_branches(
    facts: KernelFacts, counts: FloatArray, is_present: BoolArray
) -> FloatArray:
    """Count branches at which work-items part.

    Parameters
    ----------
    counts : ndarray of float64, shape (warps, lanes, blocks)
        How often each work-item executes each block.
    is_present : ndarray of bool, shape (warps, lanes)
        Which lanes hold a work-item.

    Returns
    -------
    ndarray of float64, shape (warps,)
        A lower bound: counts do not say which executions coincide. A branch taken t times of b
        needs max(t) + max(b - t) - max(b) executions in which lanes part. Of a loop
        entered once, lanes leave at as many places as there are trip counts, but for the last;
        of one entered more often, n places may make 2**n different sums of trip counts.
    """
    total = np.zeros(counts.shape[0])
    for block in facts.blocks:
        parent = block.parent
        if block.kind == BlockKind.THEN and parent is not None and (
            facts.blocks[parent].kind != BlockKind.LOOP_CONDITION
        ):  # fmt: skip
            total += _bound_branch(counts, block)
    for block in facts.blocks:
        if block.kind == BlockKind.LOOP_BODY and block.parent is not None:
            entries, trips = counts[..., block.parent], counts[..., block.id]
            total += _bound_loop(entries, trips, is_present & (entries > 0))
    return total


def _bound_branch(counts: FloatArray, block: BlockFacts) -> FloatArray:
    reached, taken = counts[..., block.parent], counts[..., block.id]
    passed = np.maximum(reached - taken, 0)
    bound = taken.max(axis=1) + passed.max(axis=1) - reached.max(axis=1)
    result: FloatArray = np.maximum(bound, 0)
    return result


def _bound_loop(entries: FloatArray, trips: FloatArray, is_inside: BoolArray) -> FloatArray:
    ordered = np.sort(np.where(is_inside, trips, np.inf), axis=1)
    is_new = np.isfinite(ordered[:, 1:]) & (ordered[:, 1:] > ordered[:, :-1])
    places = is_new.sum(axis=1).astype(np.float64)
    is_entered_once = entries.max(axis=1) <= 1
    result: FloatArray = np.where(is_entered_once, places, np.ceil(np.log2(places + 1)))
    return result
