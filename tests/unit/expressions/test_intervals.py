"""Intervals hold every value of an expression."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import (
    EvaluationError,
    Expr,
    Symbol,
    SymbolKind,
    floor_div,
)
from kernelcast.expressions.intervals import bound_pieces, bound_values
from support.expression_strategies import expressions

X, Y = (Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in (0, 1))
EXPRESSIONS = expressions((X, Y), has_products=True, max_leaves=6)
RANGES = st.tuples(st.integers(-6, 6), st.integers(0, 4)).map(lambda one: (one[0], sum(one)))


@given(expression=EXPRESSIONS, x=RANGES, y=RANGES)
def test_intervals_hold_all_values(
    expression: Expr, x: tuple[int, int], y: tuple[int, int]
) -> None:
    low, high = bound_values(expression, {X: x, Y: y})
    for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
        value = expression.evaluate({X: a, Y: b})
        assert low <= int(value) <= high


def test_what_is_not_known_is_said() -> None:
    """Symbols without a range, and divisors that may be 0."""
    with pytest.raises(EvaluationError, match="nothing is known"):
        bound_values(Expr.symbol(X), {})
    with pytest.raises(EvaluationError, match="nothing is known"):
        bound_values(floor_div(5 * Expr.symbol(X), Expr.symbol(Y)), {X: (0, 1), Y: (-1, 2)})


NAMES = [Symbol(SymbolKind.SCALAR, one) for one in "wxyz"]
A, B, C, D = map(Expr.symbol, NAMES)


@given(
    factors=st.tuples(*[st.integers(-300, 300)] * 4),
    firsts=st.tuples(*[st.integers(-5, 5)] * 4),
    counts=st.tuples(*[st.integers(1, 4)] * 4),
    least_gap=st.integers(0, 40),
    most=st.integers(1, 40),
)
def test_pieces_hold_all_values(
    factors: tuple[int, ...],
    firsts: tuple[int, ...],
    counts: tuple[int, ...],
    least_gap: int,
    most: int,
) -> None:
    """Of sums, products of several symbols and divisions; they are no more than were allowed."""
    a, b, c, d = factors
    expr = a * B + b * A * C + c * floor_div(D, 3) + d * B * D + 7
    ranges = {
        name: (first, first + count - 1)
        for name, first, count in zip(NAMES, firsts, counts, strict=True)
    }
    ranges[NAMES[0]] = (firsts[0], firsts[0])
    pieces = bound_pieces(expr, ranges, least_gap=least_gap, most=most)
    assert len(pieces) <= most
    spans = [range(low, high + 1) for low, high in ranges.values()]
    for values in itertools.product(*spans):
        value = expr.evaluate(dict(zip(ranges, values, strict=True)))
        assert any(low <= value <= high for low, high in pieces)


def test_rows_far_apart_are_pieces() -> None:
    """A box of rows has a piece for each of them, layer by layer, no wider than a row."""
    offset = 4 * B + 1000 * C + 100_000 * D
    ranges = {NAMES[1]: (5, 14), NAMES[2]: (2, 3), NAMES[3]: (0, 1)}
    starts = [20 + 1000 * y + 100_000 * z for z in (0, 1) for y in (2, 3)]
    assert bound_pieces(offset, ranges, least_gap=100, most=100) == [
        (start, start + 36) for start in starts
    ]
