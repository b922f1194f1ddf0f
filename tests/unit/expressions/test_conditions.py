import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    Unknown,
    conjunction,
    disjunction,
    equal,
    floor_div,
    less,
    less_equal,
    not_equal,
)
from support.expression_strategies import conditions, expressions

X = Symbol(SymbolKind.GLOBAL_ID, axis=0)
K = Symbol(SymbolKind.LOOP, "k")
N = Symbol(SymbolKind.SCALAR, "n")
x, k, n = map(Expr.symbol, (X, K, N))
SYMBOLS = (X, K, N)
DATA = Unknown(("mask",))

EXPRS = expressions(SYMBOLS)
CONDITIONS = conditions(SYMBOLS)
BINDINGS = st.fixed_dictionaries({symbol: st.integers(-9, 9) for symbol in SYMBOLS})


@given(left=EXPRS, right=EXPRS, values=BINDINGS)
def test_comparisons_are_those_of_numbers(
    left: Expr, right: Expr, values: dict[Symbol, int]
) -> None:
    """Decides, however a comparison was simplified, as Python does."""
    a, b = left.evaluate(values), right.evaluate(values)
    for make, expected in ((less, a < b), (less_equal, a <= b), (equal, a == b),
                           (not_equal, a != b)):  # fmt: skip
        assert make(left, right).evaluate(values) is expected
        assert make(left, right).negated().evaluate(values) is not expected


@given(one=CONDITIONS, two=CONDITIONS, values=BINDINGS)
def test_joined_conditions_are_their_parts(
    one: Condition, two: Condition, values: dict[Symbol, int]
) -> None:
    """Holds where both parts do, or one of them; what is unknown and its negation may hold."""
    a, b = one.evaluate(values), two.evaluate(values)
    both, either = conjunction(one, two), disjunction(one, two)
    assert both.is_exact
    assert (both.evaluate(values), either.evaluate(values)) == (a and b, a or b)
    assert both.negated().evaluate(values) == (not (a and b))
    assert conjunction(both, DATA).evaluate(values) == (a and b)
    assert conjunction(both, DATA).negated().evaluate(values)
    assert disjunction(both, DATA).evaluate(values)
    assert disjunction(both, DATA).negated().evaluate(values) == (not (a and b))


@given(condition=conditions(SYMBOLS, DATA), values=st.lists(BINDINGS, min_size=1, max_size=4))
def test_arrays_are_decided_element_by_element(
    condition: Condition, values: list[dict[Symbol, int]]
) -> None:
    arrays = {symbol: np.array([one[symbol] for one in values]) for symbol in SYMBOLS}
    found = np.asarray(condition.evaluate(arrays))
    assert found.dtype == np.bool_
    expected = [condition.evaluate(one) for one in values]
    np.testing.assert_array_equal(np.broadcast_to(found, len(values)), expected)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (less(x, n), "global_id(0) < n"),
        (less_equal(x, n), "global_id(0) <= n"),
        (less(n, x), "global_id(0) > n"),
        (less(x, n - 1), "global_id(0) < n - 1"),
        (less(0, x), "global_id(0) >= 1"),
        (less(x + k, n), "global_id(0) + iteration(k) < n"),
        (equal(x, n), "global_id(0) == n"),
        (not_equal(2 * x, 2 * n - 2), "global_id(0) != n - 1"),
        (conjunction(less(x, n), disjunction(less(k, 4), DATA)),
         "global_id(0) < n and (iteration(k) < 4 or unknown(mask))"),
        (TRUE, "true"),
        (FALSE, "false"),
        (UNKNOWN, "unknown()"),
    ],
)  # fmt: skip
def test_texts(condition: Condition, text: str) -> None:
    assert str(condition) == text


@pytest.mark.parametrize(
    ("condition", "simple"),
    [
        (less(x, x), FALSE),
        (less(4 * x, 5), less(x, 2)),
        (equal(2 * x, 5), FALSE),
        (equal(x, n), equal(n, x)),
        (conjunction(), TRUE),
        (conjunction(DATA, FALSE), FALSE),
        (disjunction(DATA, TRUE), TRUE),
        (conjunction(less(x, n), TRUE, less(x, n)), less(x, n)),
        (conjunction(less(x, n), less_equal(n, x)), FALSE),
        (disjunction(less(x, n), less_equal(n, x)), TRUE),
        (conjunction(less(x, n), less(k, n)), conjunction(less(k, n), less(x, n))),
        (conjunction(less(x, n), conjunction(DATA, less(k, 4))),
         conjunction(less(x, n), DATA, less(k, 4))),
        (DATA.negated(), DATA),
        (conjunction(less(x, n), DATA).negated(), disjunction(less_equal(n, x), DATA)),
    ],
)  # fmt: skip
def test_simplifications(condition: Condition, simple: Condition) -> None:
    """Finds the simpler form, and the same one for the same condition."""
    assert condition == simple
    assert hash(condition) == hash(simple)


def test_later_parts_are_guarded() -> None:
    """Asks no value of what an earlier part has settled, as C does: here a division by zero."""
    guarded = conjunction(not_equal(n, 0), less(floor_div(x, n), 2))
    assert guarded.evaluate({X: 4, N: 0}) is False
    values = {X: np.array([[1], [4]]), N: np.array([0, 1, 2])}
    np.testing.assert_array_equal(
        guarded.evaluate(values), [[False, True, True], [False, False, False]]
    )
    np.testing.assert_array_equal(
        disjunction(equal(n, 0), less(floor_div(x, n), 2)).evaluate(values),
        [[True, True, True], [True, False, False]],
    )
