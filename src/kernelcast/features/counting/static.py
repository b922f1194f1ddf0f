"""Counts what work-items execute without running them, as far as the source tells."""

from collections.abc import Mapping, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Condition, Symbol, Value
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import (
    Numbers,
    bind_contents,
    bind_ids,
)
from kernelcast.features.counting.trips import (
    Loop,
    Points,
    count_solutions,
    count_trips,
    estimate_share,
    find_loops,
    run_loops,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.software_counters import CounterSample

BUDGET = 400_000
"""Iterations enumerated per way on which a counter is reached, at most: about 20 ms."""

NOTHING_KNOWN: Mapping[str, Numbers] = {}

Counts = tuple[npt.NDArray[np.float64], bool]


def count_statically(
    facts: KernelFacts,
    ndrange: NDRange,
    scalars: Mapping[str, int],
    work_groups: Sequence[int],
    *,
    budget: int = BUDGET,
    contents: Mapping[str, Numbers] = NOTHING_KNOWN,
) -> CounterSample:
    """Count from the source: conditions on data hold half the time, loops run as assumed."""
    items = bind_ids(ndrange, work_groups)
    shape, named = items.is_present.shape, bind_names(scalars)
    known = bind_contents(facts, {**items.bindings, **named}, contents, shape)
    bindings = {**items.bindings, **known}
    fixed: dict[Symbol, Value] = {
        **{one: value for one, value in bindings.items() if isinstance(value, int)}, **named,
    }  # fmt: skip
    classify = cache(partial(_classify, bindings))

    @cache
    def count(guard: Condition, loops: tuple[Loop, ...]) -> Counts:
        """Count the iterations of loops for which a guard holds, per work-item."""
        used = guard.symbols().union(*(loop.symbols for loop in loops))
        own = frozenset(one for one in used if one not in fixed and one in bindings)
        chosen, place = classify(own)
        values = {one: np.asarray(bindings[one]).reshape(-1, 1)[chosen] for one in own}
        points = Points.start(fixed | values, np.ones((chosen.size, 1), dtype=np.bool_))
        found, is_exact = _count_points(points.keep(used), guard, loops, budget)
        return found[place].reshape(shape), is_exact

    counts = np.zeros((*shape, facts.counter_count))
    # What was not followed may hold ways to counters that nobody knows of.
    is_exact = np.full(facts.counter_count, not facts.gaps)
    for reach in facts.reaches:
        is_exact[reach.counter] = True
    for reach in facts.reaches:
        number, is_known = count(reach.guard, find_loops(facts, reach.loops))
        counts[..., reach.counter] += number
        is_exact[reach.counter] &= is_known
    counts[~items.is_present] = np.nan
    return CounterSample(
        work_groups=tuple(int(group) for group in work_groups),
        counts=counts,
        is_exact=tuple(bool(one) for one in is_exact),
        work_items=items.work_items,
    )


def _classify(
    bindings: Mapping[Symbol, Value], symbols: frozenset[Symbol]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Choose a work-item for each combination of values, and tell whose combination is whose."""
    size = next(value.size for value in bindings.values() if isinstance(value, np.ndarray))
    key = np.zeros(size, dtype=np.int64)
    width = 1
    for symbol in sorted(symbols, key=lambda one: one.sort_key):
        value = np.asarray(bindings[symbol]).reshape(-1)
        low = int(value.min())
        extent = int(value.max()) - low + 1
        width *= extent
        if width > 2**62:
            everything = np.arange(key.size)
            return everything, everything
        key = key * extent + (value - low)
    # A table pays where it has at most so many entries for each work-item.
    if width > 8 * key.size:
        _, chosen, place = np.unique(key, return_index=True, return_inverse=True)
        return chosen.astype(np.int64), place.reshape(-1).astype(np.int64)
    # The same without sorting.
    first = np.full(width, -1)
    first[key[::-1]] = np.arange(key.size)[::-1]
    is_there = first >= 0
    return first[is_there], (np.cumsum(is_there) - 1)[key]


def _count_points(points: Points, guard: Condition, loops: tuple[Loop, ...], budget: int) -> Counts:
    """Count per owner; the innermost loop that the guard names is solved, not enumerated."""
    total = points.owners.size
    needed = guard.symbols()
    names = [
        place
        for place, loop in enumerate(loops)
        if loop.symbol in needed.union(*(one.symbols for one in loops[place + 1 :]))
    ]
    if names and not any(loops[names[-1]].symbol in one.symbols for one in loops):
        last = names[-1]
        # Loops whose iterations nothing depends on may stand in any order.
        others = loops[:last] + loops[last + 1 :]
        ahead = run_loops(points, others, needed | loops[last].symbols, budget)
        shape = ahead.is_active.shape
        trips, is_exact = count_trips(loops[last], ahead.bindings, shape, budget)
        found = count_solutions(guard, loops[last].symbol, ahead.bindings, trips)
        if found is not None:
            counts = np.bincount(ahead.owners, ahead.weights * found[0], total).astype(np.float64)
            return counts, ahead.is_exact and found[1] and (is_exact or not trips.size)
    ahead = run_loops(points, loops, needed, budget)
    share = estimate_share(guard, ahead.bindings, ahead.is_active.shape)[:, 0]
    counts = np.bincount(ahead.owners, ahead.weights * share, total).astype(np.float64)
    return counts, ahead.is_exact and not np.any((share > 0) & (share < 1))
