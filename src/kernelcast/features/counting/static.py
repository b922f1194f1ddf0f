"""Counts what work-items execute without running them, as far as the source tells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Condition, Symbol, Value
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import (
    Numbers,
    WorkItems,
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
    fixed = {**items.bindings, **bind_names(scalars)}
    found = bind_contents(facts, fixed, contents, items.is_present.shape)
    items = replace(items, bindings={**items.bindings, **found})
    counter = _Counter(items, scalars, budget)
    counts = np.zeros((*items.is_present.shape, facts.counter_count))
    # What was not followed may hold ways to counters that nobody knows of.
    is_exact = np.full(facts.counter_count, not facts.gaps)
    for reach in facts.reaches:
        is_exact[reach.counter] = True
    for reach in facts.reaches:
        number, is_known = counter.count(reach.guard, find_loops(facts, reach.loops))
        counts[..., reach.counter] += number
        is_exact[reach.counter] &= is_known
    counts[~items.is_present] = np.nan
    return CounterSample(
        work_groups=tuple(int(group) for group in work_groups),
        counts=counts,
        is_exact=tuple(bool(one) for one in is_exact),
        work_items=items.work_items,
    )


class _Counter:
    """Counts iterations for the same work-items again and again."""

    def __init__(self, items: WorkItems, scalars: Mapping[str, int], budget: int) -> None:
        self._items = items
        self._fixed = {
            **{one: value for one, value in items.bindings.items() if isinstance(value, int)},
            **bind_names(scalars),
        }
        self._budget = budget
        self._known: dict[tuple[Condition, tuple[Loop, ...]], Counts] = {}
        self._classes: dict[frozenset[Symbol], tuple[npt.NDArray[np.int64], ...]] = {}

    def count(self, guard: Condition, loops: tuple[Loop, ...]) -> Counts:
        """Count the iterations of loops for which a guard holds, per work-item."""
        key = (guard, loops)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._count(guard, loops)
        return found

    def _count(self, guard: Condition, loops: tuple[Loop, ...]) -> Counts:
        used = guard.symbols().union(*(loop.symbols for loop in loops))
        symbols = frozenset(one for one in used if one not in self._fixed
                            and one in self._items.bindings)  # fmt: skip
        found = self._classes.get(symbols)
        if found is None:
            found = self._classes[symbols] = _classify(self._items, symbols)
        chosen, place = found
        bindings: dict[Symbol, Value] = {**self._fixed}
        for symbol in used - self._fixed.keys():
            value = self._items.bindings.get(symbol)
            if isinstance(value, np.ndarray):
                bindings[symbol] = value.reshape(-1, 1)[chosen]
        points = Points.start(bindings, np.ones((chosen.size, 1), dtype=np.bool_))
        counts, is_exact = _count_points(points.keep(used), guard, loops, self._budget)
        return counts[place].reshape(self._items.is_present.shape), is_exact


def _classify(
    items: WorkItems, symbols: frozenset[Symbol]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    key = np.zeros(items.is_present.size, dtype=np.int64)
    width = 1
    for symbol in sorted(symbols, key=lambda one: one.sort_key):
        value = np.asarray(items.bindings[symbol]).reshape(-1)
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
