"""Trip counts of loops, for many work-items at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    TRUE,
    UNKNOWN,
    And,
    Condition,
    EvaluationError,
    Symbol,
    SymbolKind,
    Value,
    conjunction,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.broadcasting import LARGEST, widen

ASSUMED_TRIPS = 16
"""Iterations of a loop of which nothing is known: the usual order of inner loops on data."""

_FIRST_STRIDE, _GROWTH = 32, 4


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a place."""

    facts: LoopFacts
    extra: int = 0
    """1 for what stands in the loop's test, which runs once more than its body."""

    @property
    def symbol(self) -> Symbol:
        """The number of its iteration."""
        return Symbol(SymbolKind.LOOP, self.facts.name)

    @property
    def symbols(self) -> frozenset[Symbol]:
        """What its trip count depends on."""
        count = self.facts.trip_count
        if count is not None:
            return count.symbols()
        return self.facts.condition.symbols() - {self.symbol}


def find_loops(facts: KernelFacts, loops: tuple[LoopFacts, ...]) -> tuple[Loop, ...]:
    """Describe the loops around a place.

    Parameters
    ----------
    facts : KernelFacts
        The kernel, with all its loops.
    loops : tuple of LoopFacts
        As a reach or an access names them: a loop in whose test the place stands is named without
        its condition.
    """
    found = []
    for loop in loops:
        real = loop
        if loop.trip_count is None and loop.condition == UNKNOWN:
            real = next((one for one in facts.loops if one.name == loop.name), loop)
        found.append(Loop(real, int(real != loop)))
    return tuple(found)


def count_trips(
    loop: Loop, bindings: Mapping[Symbol, Value], shape: tuple[int, ...], budget: int
) -> tuple[npt.NDArray[np.int64], bool]:
    """Count the iterations of a loop.

    Parameters
    ----------
    bindings : mapping of Symbol to int or ndarray of int64
        Values that broadcast to `shape`.
    shape : tuple of int
        Points and lanes.
    budget : int
        Most evaluations of the loop's condition, where there is no formula.

    Returns
    -------
    (ndarray of int64 of that shape, bool)
        The count and whether it is exact. It is an upper bound where the loop may be left early,
        and `ASSUMED_TRIPS` where nothing is known.
    """
    facts = loop.facts
    if facts.trip_count is not None:
        try:
            value = facts.trip_count.evaluate(bindings)
        except EvaluationError:
            return np.full(shape, ASSUMED_TRIPS + loop.extra, dtype=np.int64), False
        trips = np.clip(widen(value, shape), 0, LARGEST)
        return trips + loop.extra, facts.is_exact
    known = known_part(facts.condition)
    if known == TRUE or not known.symbols() - {loop.symbol} <= bindings.keys():
        return np.full(shape, ASSUMED_TRIPS + loop.extra, dtype=np.int64), False
    trips, is_finished = _simulate(known, loop.symbol, bindings, shape, budget)
    return trips + loop.extra, is_finished and facts.is_exact


def has_bound(loop: LoopFacts) -> bool:
    """Tell whether something else than data ends a loop at last."""
    return loop.trip_count is not None or known_part(loop.condition) != TRUE


def known_part(condition: Condition) -> Condition:
    """Give what of a condition does not depend on data."""
    if condition.is_exact:
        return condition
    if isinstance(condition, And):
        return conjunction(*(part for part in condition.parts if part.is_exact))
    return TRUE


def _simulate(
    condition: Condition,
    symbol: Symbol,
    bindings: Mapping[Symbol, Value],
    shape: tuple[int, ...],
    budget: int,
) -> tuple[npt.NDArray[np.int64], bool]:
    """Try iterations until the condition fails, more and more of them at once."""
    used = condition.symbols() - {symbol}
    if not any(isinstance(bindings[one], np.ndarray) for one in used):
        fixed = {one: bindings[one] for one in used}
        trips, is_finished = _try_all(condition, symbol, fixed, (1, budget))
        return np.full(shape, trips[0]), is_finished
    flat = {
        one: widen(bindings[one], shape).reshape(-1, 1)
        if isinstance(bindings[one], np.ndarray)
        else bindings[one]
        for one in used
    }
    trips, is_finished = _try_all(condition, symbol, flat, (math.prod(shape), budget))
    return trips.reshape(shape), is_finished


def _try_all(
    condition: Condition,
    symbol: Symbol,
    bindings: Mapping[Symbol, Value],
    limits: tuple[int, int],
) -> tuple[npt.NDArray[np.int64], bool]:
    """Count the iterations of each lane; values are ints or of shape (lanes, 1)."""
    lanes, budget = limits
    trips = np.zeros(lanes, dtype=np.int64)
    still, first, length, growth = np.arange(lanes), 0, _FIRST_STRIDE, _GROWTH
    while still.size:
        length = min(length, budget // still.size)
        if length < 1:
            return trips, False
        own = {one: value[still] if isinstance(value, np.ndarray) else value
               for one, value in bindings.items()}  # fmt: skip
        try:
            truth = condition.evaluate({**own, symbol: np.arange(first, first + length)[None, :]})
        except EvaluationError:
            # Perhaps only beyond the last iteration: 2**k leaves 64 bits some time.
            length, growth = length // 2, 1
            continue
        holds = np.broadcast_to(np.asarray(truth), (still.size, length))
        is_over = ~holds.all(axis=1)
        trips[still] += np.where(is_over, holds.argmin(axis=1), length)
        budget -= still.size * length
        still, first, length = still[~is_over], first + length, length * growth
    return trips, True
