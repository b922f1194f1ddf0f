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
from kernelcast.expressions.intervals import bound_values

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
