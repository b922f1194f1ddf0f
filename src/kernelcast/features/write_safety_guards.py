"""What the guard of an access says of the limits of its address."""

from collections.abc import Sequence

import numpy as np

from kernelcast.expressions import And, Atom, Comparison, Condition, Expr, Relation, Symbol
from kernelcast.features.write_safety_intervals import Interval, NoBoundError, Ranges, bound

# Sums in an address that guards limit: a row and a column.
_MOST_SUMS = 2


def tighten(ranges: dict[Symbol, Interval], guard: Condition) -> dict[Symbol, Interval]:
    """Narrow symbols' limits by what a guard says of one symbol alone.

    Parameters
    ----------
    ranges : dict of Symbol to Interval
        Limits without the guard.
    guard : Condition
        Holds where the values are wanted.
    """
    narrowed = dict(ranges)
    for part in _list_comparisons(guard):
        _apply(part, narrowed)
    return narrowed


def _apply(comparison: Comparison, ranges: dict[Symbol, Interval]) -> None:
    """Solve `factor * symbol + rest >= 0` for the symbol."""
    for symbol in comparison.expr.symbols():
        factor, rest = _split(comparison.expr, symbol)
        if not factor or symbol not in ranges:
            continue
        try:
            limits = bound(rest, ranges)
        except NoBoundError:
            continue
        own = ranges[symbol]
        is_zero = comparison.relation is Relation.ZERO
        low, high = own.low, own.high
        if factor > 0 or is_zero:
            # factor * symbol >= -rest
            edge = -limits.high if factor > 0 else limits.low
            low = np.maximum(low, -(-edge // abs(factor)))
        if factor < 0 or is_zero:
            edge = limits.high if factor < 0 else -limits.low
            high = np.minimum(high, edge // abs(factor))
        ranges[symbol] = Interval(*np.broadcast_arrays(low, high))


def _split(expr: Expr, symbol: Symbol) -> tuple[int, Expr]:
    """Give a symbol's factor and the rest; factor 0 where it stands in more than a sum."""
    factor = 0
    rest: dict[tuple[Atom, ...], int] = {}
    for monomial, coefficient in expr.products:
        if monomial == (symbol,):
            factor = coefficient
        else:
            rest[monomial] = coefficient
    other = Expr(rest)
    return (0, other) if symbol in other.symbols() else (factor, other)


def bound_where(expr: Expr, ranges: Ranges, guard: Condition) -> Interval:
    """Give limits of an expression's value where a guard holds.

    Other than `tighten` it uses comparisons of sums: where ``group * 102 + lane < width`` holds,
    ``row * width + group * 102 + lane`` is less than ``(row + 1) * width``, though neither
    ``group`` nor ``lane`` is limited by it.

    Parameters
    ----------
    expr : Expr
        The expression.
    ranges : mapping of Symbol to Interval
        Limits of its symbols.
    guard : Condition
        Holds where the value is wanted.

    Raises
    ------
    NoBoundError
        If a symbol of the expression has no limits or a part is not understood.
    """
    return _bound_sums(expr, ranges, _list_comparisons(guard), _MOST_SUMS)


def _bound_sums(
    expr: Expr, ranges: Ranges, comparisons: Sequence[Comparison], most_sums: int
) -> Interval:
    found = bound(expr, ranges)
    if not most_sums:
        return found
    for place, one in enumerate(comparisons):
        factor = _find_factor(expr, one.expr)
        if not factor:
            continue
        others = [*comparisons[:place], *comparisons[place + 1 :]]
        try:
            rest = _bound_sums(expr - factor * one.expr, ranges, others, most_sums - 1)
        except NoBoundError:
            continue
        # expr = factor * sum + rest, and the sum is at least 0, or 0.
        is_zero = one.relation is Relation.ZERO
        low, high = found.low, found.high
        if factor > 0 or is_zero:
            low = np.maximum(low, rest.low)
        if factor < 0 or is_zero:
            high = np.minimum(high, rest.high)
        found = Interval(*np.broadcast_arrays(low, high))
    return found


def _find_factor(expr: Expr, compared: Expr) -> int:
    """Give how often a compared sum is in an expression, by the first product they share."""
    factors = dict(expr.products)
    for monomial, coefficient in compared.products:
        own = factors.get(monomial, 0)
        if monomial and own:
            return own // coefficient if own % coefficient == 0 else 0
    return 0


def _list_comparisons(guard: Condition) -> list[Comparison]:
    parts = guard.parts if isinstance(guard, And) else (guard,)
    return [
        part
        for part in parts
        if isinstance(part, Comparison) and part.relation is not Relation.NOT_ZERO
    ]
