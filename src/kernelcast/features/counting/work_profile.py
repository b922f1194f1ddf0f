"""How the work of work-groups differs, as far as the source tells.

Triangular loops, causal attention, borders that are treated apart: their work-groups execute
different numbers of instructions, and the source says how many. A sample of a few work-groups that
knows how heavy each of them is, and how heavy all are, says more than one that does not: the ratio
estimator of survey sampling.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import SymbolKind
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.symbols import IntArray
from kernelcast.features.counting.static import GOLDEN, FloatArray, Numbers, count_statically
from kernelcast.features.counting.summary import add_once, count_instructions, split_lanes
from kernelcast.records.ndrange import GroupBox, NDRange

_FEWEST_IN_ALL = 16
# Work-items counted at most, and work-groups in all and of a box: about 20 ms.
_USUALLY = (40_000, 256, 16)
# Work that contents decide has no pattern. Where a few rows hold most of the entries, the mean of
# 1024 work-groups is off by a tenth, and sixteen of a box do not stand for its hundred: 100 ms.
_WITH_CONTENTS = (400_000, 4096, 2048)
# To choose places a tenth of that is enough.
_FOR_PLACES = (100_000, 1024, 0)
# Work-items that a CPU runtime's vectors and a GPU's warps take in step, mostly.
_IN_STEP = (8, 32)
_PLACES = frozenset({SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID, SymbolKind.CONTENT})
_DECIDING = frozenset({SymbolKind.GROUP_ID, SymbolKind.CONTENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProfile:
    """Instructions of work-groups over those of the mean work-group."""

    weights: tuple[float, ...]
    """Mean work per work-group of each box, over that of all work-groups."""
    weights_in_step: tuple[tuple[float, ...], ...]
    """The same where neighbouring work-items run in step: vectors of a CPU runtime, warps."""
    spread: float
    """Standard deviation of the work of all work-groups, over its mean."""
    is_exact: bool
    typical: tuple[int, ...]
    """Numbers of work-groups, spread over the launch, whose work is nearest to the mean."""
    typical_weight: float
    """Their mean work, over that of all work-groups."""
    by_work: tuple[int, ...] = ()
    """Numbers of work-groups in the middles of equal shares of the launch's work."""
    by_work_weight: float = 1.0
    """Their median work, over that of the mean work-group."""
    everywhere: tuple[tuple[float, float], ...] = ()
    """Place, as a share of the launch, and work over the mean of some work-groups."""

    def find_imbalance(self, parts: int, total: int) -> float:
        """Find the work of the heaviest of equal contiguous parts, over that of the mean part."""
        places, weights = np.array(self.everywhere or [(0.0, 1.0)]).T
        own = (places * parts).astype(np.intp)
        counts = np.bincount(own, minlength=parts)
        if not counts.all():
            return 1.0
        means = np.bincount(own, weights, parts) / counts
        # How far means of some of all work-groups lie apart by chance is taken off (James, Stein).
        by_chance = (np.bincount(own, (weights - means[own]) ** 2, parts) / counts**2).mean()
        by_chance *= 1.0 - len(weights) / total
        apart = max(float(((means - 1.0) ** 2).mean()), np.finfo(np.float64).tiny)
        return 1.0 + (float(means.max()) - 1.0) * max(0.0, 1.0 - float(by_chance) / apart)


def may_differ(facts: KernelFacts) -> bool:
    """Tell whether the work of work-groups may depend on where they are."""
    # Conditions on the global id are mostly borders that few work-groups have.
    return any(
        any(one.kind in _DECIDING for one in reach.guard.symbols())
        or any(one.kind in _PLACES for loop in reach.loops for one in loop.count_symbols())
        for reach in facts.reaches
    )


def profile_work(
    facts: KernelFacts,
    ndrange: NDRange,
    scalars: Mapping[str, int],
    boxes: Sequence[GroupBox],
    contents: Mapping[str, Numbers] = {},
) -> WorkProfile | None:
    """Profile the work of boxes and of the launch from some work-groups of each; None if none."""
    total = ndrange.work_group_count
    limits = (_WITH_CONTENTS if boxes else _FOR_PLACES) if contents else _USUALLY
    most_items, most_in_all, most_per_box = limits
    most = max(len(boxes) + _FEWEST_IN_ALL, most_items // ndrange.work_group_size)
    per_box = min(max(1, most // 2 // max(len(boxes), 1)), most_per_box)
    count = min(max(most - per_box * len(boxes), _FEWEST_IN_ALL), most_in_all)
    everywhere: IntArray = np.arange(total)
    if total > count:
        everywhere = np.unique(((np.arange(count) + 0.5) * GOLDEN % 1.0 * total).astype(np.int64))
    inside = [_choose_inside(box, ndrange.group_counts, per_box) for box in boxes]
    numbers = np.unique(np.concatenate([everywhere, *inside])).tolist()
    sample = count_statically(facts, ndrange, scalars, numbers, budget=50_000, contents=contents)
    sizes = np.zeros(len(facts.reaches) + 1)
    for block in facts.blocks:
        sizes[block.counter] += count_instructions(block.operations)
    in_all, *in_boxes = (np.searchsorted(numbers, chosen) for chosen in (everywhere, *inside))
    counts, before, sums = add_once(sample), 1, list[FloatArray]()
    for width in (1, *_IN_STEP) if boxes else (1,):
        counts = split_lanes(counts, width // before).max(axis=2)
        before = width
        sums.append((counts @ sizes).sum(axis=1))
    work, *in_step = sums
    found = work[in_all]
    mean = float(found.mean())
    if not mean > 0:
        return None
    weights_of_boxes, *in_step_of_boxes = (
        tuple(float(one[chosen].mean()) / float(one[in_all].mean()) for chosen in in_boxes)
        for one in (work, *in_step)
    )
    weights = found / mean
    # Typical work-groups do most nearly the mean work. Those that do next to nothing are never
    # near: what a launch pays beside them hides it.
    apart = np.abs(np.log(np.maximum(weights, np.finfo(np.float64).tiny)))
    count = max(int(0.25 * len(weights)), min(16, len(weights)))
    nearest = np.argsort(apart, kind="stable")[:count]
    # None is further from the mean than the nearest one, times two.
    typical = np.sort(nearest[apart[nearest] <= apart.min() + math.log(2.0)])
    # Places by work are in the middles of equal shares of it; heavy work-groups repeat. One with
    # more than a fiftieth of the work is a sample's usual budget by itself.
    reached = np.cumsum(np.minimum(weights, max(0.02 * total, 1.0)))
    by_work = np.searchsorted(reached, (np.arange(64) + 0.5) / 64 * reached[-1])
    return WorkProfile(
        weights=weights_of_boxes,
        weights_in_step=tuple(in_step_of_boxes),
        spread=float(found.std()) / mean,
        is_exact=all(sample.is_exact) and not facts.gaps,
        typical=tuple(everywhere[typical].tolist()),
        typical_weight=float(found[typical].mean()) / mean,
        by_work=tuple(everywhere[np.unique(by_work)].tolist()),
        by_work_weight=float(np.median(found[by_work])) / mean,
        everywhere=tuple(zip((everywhere / total).tolist(), weights.tolist(), strict=True)),
    )


def _choose_inside(box: GroupBox, group_counts: Sequence[int], count: int) -> IntArray:
    """Choose work-groups in the middles of a box's parts, in the order they start."""
    count = min(count, box.work_group_count)
    middles = (2 * np.arange(count) + 1) * box.work_group_count // (2 * count)
    inside = np.unravel_index(middles, box.shape, order="F")
    places = [start + one for start, one in zip(box.start, inside, strict=True)]
    return np.asarray(np.ravel_multi_index(places, group_counts, order="F"))
