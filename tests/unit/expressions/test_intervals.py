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
    floor_mod,
    less,
    maximum,
    minimum,
    select,
    trunc_div,
    trunc_mod,
)
from kernelcast.expressions.intervals import bound_pieces, bound_values

X, Y = (Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in (0, 1))
DIVISIONS = (floor_div, floor_mod, trunc_div, trunc_mod)


def combine(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Make larger expressions."""
    divisors = st.sampled_from([-7, -2, 1, 3, 8])
    return st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, b: a - 3 * b, parts, parts),
        st.builds(lambda a, b: a * b, parts, parts),
        st.builds(lambda divide, a, b: divide(a, b), st.sampled_from(DIVISIONS), parts, divisors),
        st.builds(minimum, parts, parts),
        st.builds(maximum, parts, parts),
        st.builds(lambda a, b, c: select(less(a, b), b, c), parts, parts, parts),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from([Expr.symbol(X), Expr.symbol(Y), Expr.constant(-3), Expr.constant(5)]),
    combine,
    max_leaves=6,
)
RANGES = st.tuples(st.integers(-6, 6), st.integers(0, 4)).map(lambda one: (one[0], sum(one)))


@given(expression=EXPRESSIONS, x=RANGES, y=RANGES)
def test_intervals_hold_all_values(
    expression: Expr, x: tuple[int, int], y: tuple[int, int]
) -> None:
    """Whatever an expression is made of."""
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
