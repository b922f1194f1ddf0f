"""For which share of iterations a guard holds, what depends on data guessed."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    And,
    Comparison,
    Condition,
    EvaluationError,
    Or,
    Relation,
    Symbol,
    Value,
)
from kernelcast.features.counting.broadcasting import widen

UNKNOWN_SHARE = 0.5
"""How often a condition on data is taken to hold."""


def estimate_share(
    guard: Condition, bindings: Mapping[Symbol, Value], shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Say where a condition holds.

    Parameters
    ----------
    bindings : mapping of Symbol to int or ndarray of int64
        Values that broadcast to `shape`.
    shape : tuple of int
        Of the result.

    Returns
    -------
    ndarray of float64
        0 or 1 where the condition is known; in between, `UNKNOWN_SHARE` for each part that
        depends on data or on an argument without value, as if the parts were independent.
    """
    if guard.is_exact and guard.symbols() <= bindings.keys():
        try:
            truth = guard.evaluate(bindings)
        except EvaluationError:
            return np.full(shape, UNKNOWN_SHARE)
        return np.broadcast_to(np.asarray(truth, dtype=np.float64), shape)
    if isinstance(guard, And | Or):
        result = np.ones(shape)
        for part in guard.parts:
            share = estimate_share(part, bindings, shape)
            result = result * (share if isinstance(guard, And) else 1 - share)
        return result if isinstance(guard, And) else 1 - result
    return np.full(shape, UNKNOWN_SHARE)


def count_solutions(
    guard: Condition,
    symbol: Symbol,
    bindings: Mapping[Symbol, Value],
    trips: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.float64], bool] | None:
    """Count the iterations for which a guard holds, without enumerating them.

    Between the places where one of its comparisons changes sides, a guard holds or it does not:
    so one iteration of each stretch is looked at.

    Parameters
    ----------
    symbol : Symbol
        Number of the iteration, from 0.
    bindings : mapping of Symbol to int or ndarray of int64, shape (points, 1)
        All other symbols.
    trips : ndarray of int64, shape (points, 1)
        Number of iterations.

    Returns
    -------
    (ndarray of float64, shape (points,), and bool), or None
        The count and whether it is exact; None if the iteration number is in more than sums.

    Examples
    --------
    >>> from kernelcast.expressions import Expr, SymbolKind, less
    >>> k = Symbol(SymbolKind.LOOP, "k")
    >>> count_solutions(less(10, 3 * Expr.symbol(k)), k, {}, np.array([[8], [2]]))
    (array([4., 0.]), True)
    """
    edges = [np.zeros_like(trips), trips]
    for comparison in _find_comparisons(guard, symbol):
        if comparison is None:
            return None
        try:
            turns = _find_turns(comparison, symbol, bindings, trips.shape)
        except EvaluationError:
            return None
        if turns is None:
            return None
        edges += [np.clip(turn, 0, trips) for turn in turns]
    ordered = np.sort(np.concatenate(edges, axis=1), axis=1)
    first, length = ordered[:, :-1], np.diff(ordered, axis=1)
    share = estimate_share(guard, {**bindings, symbol: first}, first.shape)
    is_exact = not np.any((share > 0) & (share < 1) & (length > 0))
    return (share * length).sum(axis=1), is_exact


def _find_comparisons(guard: Condition, symbol: Symbol) -> Iterator[Comparison | None]:
    """Give the comparisons of a symbol in a guard; None for what is something else."""
    if symbol not in guard.symbols():
        return
    if isinstance(guard, And | Or):
        for part in guard.parts:
            yield from _find_comparisons(part, symbol)
    else:
        yield guard if isinstance(guard, Comparison) else None


def _find_turns(
    comparison: Comparison,
    symbol: Symbol,
    bindings: Mapping[Symbol, Value],
    shape: tuple[int, ...],
) -> tuple[npt.NDArray[np.int64], ...] | None:
    """Solve `start + slope * k` against zero: the first k at which the answer is another one."""
    split = comparison.expr.split(symbol)
    if split is None:
        return None
    start, slope = (widen(part.evaluate(bindings), shape) for part in split)
    step = np.where(slope == 0, 1, np.abs(slope))
    falling = start // step + 1
    rising = -(start // step)
    if comparison.relation is Relation.NOT_NEGATIVE:
        return (np.where(slope > 0, rising, falling),)
    place = np.where(slope > 0, rising, falling - 1)
    return place, place + 1
