import copy
import operator
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject
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
    bitwise,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    less_equal,
    maximum,
    minimum,
    not_equal,
    select,
    trunc_div,
    trunc_mod,
)
from kernelcast.records.errors import InputError
from support.expression_strategies import conditions

LID = Symbol(SymbolKind.LOCAL_ID, axis=0)
GROUP = Symbol(SymbolKind.GROUP_ID, axis=0)
X = Symbol(SymbolKind.GLOBAL_ID, axis=0)
Y = Symbol(SymbolKind.GLOBAL_ID, axis=1)
K = Symbol(SymbolKind.LOOP, "k")
N = Symbol(SymbolKind.SCALAR, "n")
WIDTH = Symbol(SymbolKind.SCALAR, "width")
SIZE = Symbol(SymbolKind.LOCAL_SIZE, axis=0)
SYMBOLS = (LID, X, Y, K, N, WIDTH)
x, y, k, n, width, size, lid = map(Expr.symbol, (X, Y, K, N, WIDTH, SIZE, LID))
DATA = Unknown(("mask",))

Values = dict[Symbol, int]
Functions = tuple[Callable[..., Any], Callable[..., int]]
"""What makes an expression or condition, and what computes its value in Python."""
Tree = Any
"""A number, a symbol, or a tuple of functions and of the trees that they are called with."""


def divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def make_geometric(factor: int, is_division: bool) -> Functions:
    def repeat(number: int, times: int) -> int:
        for _ in range(times):
            number = divide(number, factor) if is_division else number * factor
        return number

    return lambda start, at: geometric(start, factor, at, is_division=is_division), repeat


OPERATIONS: list[Functions] = [
    (operator.add, operator.add),
    (operator.sub, operator.sub),
    (operator.mul, operator.mul),
    (minimum, min),
    (maximum, max),
    (partial(bitwise, operator="&"), operator.and_),
    (partial(bitwise, operator="|"), operator.or_),
    (partial(bitwise, operator="^"), operator.xor),
]
DIVISIONS: list[Functions] = [
    (floor_div, operator.floordiv),
    (floor_mod, operator.mod),
    (trunc_div, divide),
    (trunc_mod, lambda a, b: a - divide(a, b) * b),
]
RELATIONS: list[Functions] = [
    (less, operator.lt),
    (less_equal, operator.le),
    (equal, operator.eq),
    (not_equal, operator.ne),
    (lambda a, b: less(a, b).negated(), operator.ge),
    (lambda a, b: equal(a, b).negated(), operator.ne),
]
SELECT: Functions = (select, lambda condition, a, b: a if condition else b)


def extend(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    divisors = st.sampled_from([-8, -4, -3, -1, 1, 2, 4, 8, N, WIDTH]) | inner
    relations = st.tuples(st.sampled_from(RELATIONS), inner, inner)
    repeated = st.builds(make_geometric, st.integers(-3, 3), st.booleans())
    return (
        st.tuples(st.sampled_from(OPERATIONS), inner, inner)
        | st.tuples(st.sampled_from(DIVISIONS), inner, divisors)
        | st.tuples(st.just(SELECT), relations, inner, inner)
        | st.tuples(repeated, inner, st.just(K))
    )


TREES = st.recursive(st.integers(-9, 9) | st.sampled_from(SYMBOLS), extend, max_leaves=9)


def make(tree: Tree) -> Any:  # noqa: ANN401 - an expression or a condition
    """Make an expression; what always divides by zero is no example."""
    if not isinstance(tree, tuple):
        return Expr.of(tree)
    (function, _), *parts = tree
    try:
        return function(*map(make, parts))
    except InputError:
        reject()


def compute(tree: Tree, values: Values) -> int:
    """Compute a value without any expression; what has none is no example."""
    if not isinstance(tree, tuple):
        return values[tree] if isinstance(tree, Symbol) else int(tree)
    (_, function), *parts = tree
    try:
        result: int = function(*(compute(one, values) for one in parts))
    except ZeroDivisionError:
        reject()
    assume(abs(result) <= 2**31)  # arrays are exact
    return result


def bindings() -> st.SearchStrategy[Values]:
    return st.fixed_dictionaries(
        {symbol: st.integers(0, 5) if symbol is K else st.integers(-20, 20) for symbol in SYMBOLS}
    )


@given(tree=TREES, values=st.lists(bindings(), min_size=1, max_size=4))
def test_simplified_expressions_keep_their_value(tree: Tree, values: list[Values]) -> None:
    """Evaluates, however an expression was simplified, to what Python computes step by step; for
    arrays, to what it gives for each of their elements."""
    expected, expr = [compute(tree, one) for one in values], make(tree)
    found = [expr.evaluate(one) for one in values]
    assert found == expected
    assert all(type(one) is int for one in found)
    arrays = {symbol: np.array([one[symbol] for one in values]) for symbol in SYMBOLS}
    together = np.asarray(expr.evaluate(arrays))
    assert together.dtype == np.int64
    np.testing.assert_array_equal(np.broadcast_to(together, len(values)), expected)


@given(tree=TREES, inner=TREES, other=TREES, values=bindings())
def test_substitution_then_evaluation(tree: Tree, inner: Tree, other: Tree, values: Values) -> None:
    replaced = values | {X: compute(inner, values), N: compute(other, values)}
    expected, expr = compute(tree, replaced), make(tree)
    try:
        found = expr.substitute({X: make(inner), N: make(other)})
    except InputError:  # a division by the number 0 in an arm not taken
        reject()
    assert found.evaluate(values) == expected


@given(tree=TREES)
def test_copies_are_equal(tree: Tree) -> None:
    expr = make(tree)
    for other in (pickle.loads(pickle.dumps(expr)), copy.deepcopy(expr)):
        assert other == expr
        assert hash(other) == hash(expr)
        assert str(other) == str(expr)


@given(trees=st.tuples(TREES, TREES, TREES))
def test_equal_polynomials_are_equal(trees: tuple[Tree, ...]) -> None:
    """Brings sums and products into one form, whatever the order in which they were made."""
    a, b, c = map(make, trees)
    assert (a + b) * c == c * b + c * a
    assert hash(a - b) == hash(-(b - a))
    assert (a - a).is_zero


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (4 * (x + width * y - 1), "4*global_id(0) + 4*width*global_id(1) - 4"),
        (n - x, "n - global_id(0)"),
        (Expr.constant(0), "0"),
        (floor_div(x + 1, n * width), "floor((global_id(0) + 1) / (n*width))"),
        (1 - 2 * floor_mod(x, n), "1 - 2*(global_id(0) mod n)"),
        (floor_mod(trunc_mod(x, 4), n), "(global_id(0) rem 4) mod n"),
        (trunc_div(-x, 4), "trunc((-global_id(0)) / 4)"),
        (maximum(0, x), "max(global_id(0), 0)"),
        (select(less(x, n), x, 0), "(global_id(0) if global_id(0) < n else 0)"),
        (geometric(size, 2, K, is_division=True), "trunc(local_size(0) / 2^iteration(k))"),
        (3 * geometric(n + 1, 2, K, is_division=False), "3*((n + 1)*2^iteration(k))"),
        (geometric(1, -2, k + 1, is_division=False), "(-2)^(iteration(k) + 1)"),
    ],
)
def test_texts(expr: Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize(
    ("expected", "exprs"),
    [
        (True, [
            x * width + 4 * lid, n * width * x, floor_div(x, n), floor_mod(x + y, size) * width,
            floor_div(n, 4) * x, minimum(x, n), minimum(n, 4) * x,
            select(less(x, n), x, 0), geometric(size, 2, K, is_division=True) + lid,
        ]),
        (False, [
            x * y, x * k, trunc_div(n, x), trunc_mod(x * y, 4), floor_div(x, 4) * lid,
            maximum(x * y, 0), select(less(x * y, n), x, 0),
            select(Unknown(("mask",)), x, 0),
            geometric(size, 2, K, is_division=True) * lid, geometric(lid, 2, K, is_division=False),
        ]),
    ],
)  # fmt: skip
def test_quasi_affine(expected: bool, exprs: list[Expr]) -> None:
    """Tells expressions apart that integer sets can hold and those that they cannot."""
    assert [str(one) for one in exprs if one.is_quasi_affine() is not expected] == []


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (floor_div(8 * x + n + 5, 4), 2 * x + floor_div(n + 1, 4) + 1),
        (floor_div(x * width + lid, width), x + floor_div(lid, width)),
        (floor_div(floor_div(x, 4), 8), floor_div(x, 32)),
        (floor_div(floor_mod(x, 4), 8), Expr.of(0)),
        (floor_div(4 * x + 3, 32), floor_div(x, 8)),
        (floor_mod(4 * x + 3, 32), 4 * floor_mod(x, 8) + 3),
        (floor_div(x, -4), floor_div(-x, 4)),
        (floor_mod(9 * x + 8 * y, 4), floor_mod(x, 4)),
        (floor_mod(floor_mod(x, 32), 8), floor_mod(x, 8)),
        (floor_mod(6 * x, 4), 2 * floor_mod(x, 2)),
        (trunc_div(8 * x - 4, 4), 2 * x - 1),
        (trunc_div(6 * x + 2, 4), trunc_div(3 * x + 1, 2)),
        (trunc_div(trunc_div(x, 4), 2), trunc_div(x, 8)),
        (trunc_div(3 * x + 3 * n, x + n), Expr.constant(3)),
        (trunc_mod(trunc_mod(x, 4), 4), trunc_mod(x, 4)),
        (trunc_mod(x * n, n), Expr.constant(0)),
        (minimum(x, x + 3), x),
        (maximum(n, x), maximum(x, n)),
        (select(less(x, n), y, y), y),
        (geometric(n, 1, K, is_division=True), n),
        (geometric(n, 2, K, is_division=True).substitute({K: 3}), trunc_div(n, 8)),
    ],
)
def test_simplifications(expr: Expr, simple: Expr) -> None:
    assert expr == simple


@pytest.mark.parametrize(
    ("expr", "values", "message"),
    [
        (x + n, {N: 1}, r"global_id\(0\) has no value; values were given for: n"),
        (x, {X: 1.5}, "give a whole number"),
        (floor_div(x, n), {X: 1, N: 0}, "division by zero"),
        (trunc_mod(x, n), {X: 1, N: np.array([1, 0])}, "division by zero"),
        (geometric(n, 2, K, is_division=True), {N: 8, K: -1}, "iterations count from 0"),
        (geometric(n, 2, K, is_division=False), {N: 8, K: 64}, "exceeds 64 bits"),
        (select(UNKNOWN, x, 0), {X: 8}, "depends on data"),
        (2**70 * x, {X: np.arange(2)}, "exceeds 64 bits"),
    ],
)
def test_refuses_what_has_no_value(expr: Expr, values: dict[Symbol, Any], message: str) -> None:
    """Refuses to evaluate, and says why; it is a ValueError too."""
    with pytest.raises(InputError, match=message) as caught:
        expr.evaluate(values)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Symbol(SymbolKind.GLOBAL_ID, axis=3),
        lambda: Symbol(SymbolKind.SCALAR),
        lambda: trunc_mod(x, n - n),
        lambda: geometric(n, 0, K, is_division=True),
        lambda: geometric(n, 2, -1, is_division=True),
    ],
)
def test_refuses_what_makes_no_expression(make: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"; "):
        make()


def test_long_divisions_end_at_zero() -> None:
    """Halves until nothing is left, however many iterations; what multiplies keeps its loop."""
    halves = geometric(n, 2, K, is_division=True)
    found = halves.evaluate({N: -(2**40), K: np.array([0, 39, 40, 41, 62, 63, 500])})
    np.testing.assert_array_equal(found, [-(2**40), -2, -1, 0, 0, 0, 0])
    assert halves.evaluate({N: 2**40, K: 500}) == 0


@given(one=conditions(SYMBOLS), two=conditions(SYMBOLS), values=bindings())
def test_joined_conditions_are_their_parts(one: Condition, two: Condition, values: Values) -> None:
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


@given(condition=conditions(SYMBOLS, DATA), values=st.lists(bindings(), min_size=1, max_size=4))
def test_arrays_are_decided_element_by_element(condition: Condition, values: list[Values]) -> None:
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
def test_texts_of_conditions(condition: Condition, text: str) -> None:
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
def test_simpler_conditions(condition: Condition, simple: Condition) -> None:
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
