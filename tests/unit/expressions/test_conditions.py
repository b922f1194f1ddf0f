from collections.abc import Callable
from typing import Any

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

X = Symbol(SymbolKind.GLOBAL_ID, axis=0)
K = Symbol(SymbolKind.LOOP, "k")
N = Symbol(SymbolKind.SCALAR, "n")
x, k, n = map(Expr.symbol, (X, K, N))
SYMBOLS = (X, K, N)
DATA = Unknown(("mask",))

Tree = Any  # unknown, or a tuple of an operation's name and trees or coefficients

RELATIONS: dict[str, tuple[Callable[[Expr, Expr], Condition], Callable[[int, int], bool]]] = {
    "<": (less, lambda a, b: a < b),
    "<=": (less_equal, lambda a, b: a <= b),
    "==": (equal, lambda a, b: a == b),
    "!=": (not_equal, lambda a, b: a != b),
}


def trees(*, is_exact: bool = True) -> st.SearchStrategy[Tree]:
    """Draw conditions as trees of comparisons of linear expressions."""
    numbers = st.integers(-6, 6)
    sides = st.tuples(numbers, numbers, numbers, numbers)
    leaves: st.SearchStrategy[Tree] = st.tuples(st.sampled_from(list(RELATIONS)), sides, sides)
    if not is_exact:
        leaves |= st.just("unknown")
    return st.recursive(
        leaves,
        lambda inner: (
            st.tuples(st.sampled_from(["and", "or"]), inner, inner)
            | st.tuples(st.just("not"), inner)
        ),
        max_leaves=6,
    )


def build(tree: Tree) -> Condition:
    """Build the condition of a tree."""
    if tree == "unknown":
        return DATA
    name, *rest = tree
    if name in RELATIONS:
        a, b = (sum((c * s for c, s in zip(side, (x, k, n), strict=False)), Expr.constant(side[3]))
                for side in rest)  # fmt: skip
        return RELATIONS[name][0](a, b)
    parts = map(build, rest)
    if name == "not":
        return next(parts).negated()
    return conjunction(*parts) if name == "and" else disjunction(*parts)


def decide(tree: Tree, values: dict[Symbol, int], *, unknown: bool) -> bool:
    """Decide a tree in Python, without any condition, with one answer for what is unknown."""
    if tree == "unknown":
        return unknown
    name, *rest = tree
    if name in RELATIONS:
        a, b = (sum(c * v for c, v in zip(side, (*map(values.get, SYMBOLS), 1), strict=True))
                for side in rest)  # fmt: skip
        return bool(RELATIONS[name][1](a, b))
    parts = [decide(part, values, unknown=unknown) for part in rest]
    return {"and": all(parts), "or": any(parts), "not": not parts[0]}[name]


def bindings() -> st.SearchStrategy[dict[Symbol, int]]:
    """Draw a value for each symbol."""
    return st.fixed_dictionaries({symbol: st.integers(-9, 9) for symbol in SYMBOLS})


@given(tree=trees(), values=bindings())
def test_exact_conditions_keep_their_truth(tree: Tree, values: dict[Symbol, int]) -> None:
    """Decides, however a condition was simplified, as Python does."""
    condition = build(tree)
    assert condition.is_exact
    assert condition.evaluate(values) is decide(tree, values, unknown=False)
    assert condition.negated().evaluate(values) is not condition.evaluate(values)


@given(tree=trees(is_exact=False), values=bindings())
def test_unknown_conditions_give_a_superset(tree: Tree, values: dict[Symbol, int]) -> None:
    """Holds wherever the condition or its negation can hold, whatever the data say."""
    can_hold = {decide(tree, values, unknown=answer) for answer in (True, False)}
    assert build(tree).evaluate(values) or True not in can_hold
    assert build(tree).negated().evaluate(values) or False not in can_hold


@given(tree=trees(is_exact=False), values=st.lists(bindings(), min_size=1, max_size=4))
def test_arrays_are_decided_element_by_element(tree: Tree, values: list[dict[Symbol, int]]) -> None:
    """Gives for arrays what it gives for each of their elements."""
    condition = build(tree)
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
        (less_equal(n, x), "global_id(0) >= n"),
        (less(x, n - 1), "global_id(0) < n - 1"),
        (less(x, n + 1), "global_id(0) <= n"),
        (less(0, x), "global_id(0) >= 1"),
        (less(x, 10), "global_id(0) < 10"),
        (less(x + k, n), "global_id(0) + iteration(k) < n"),
        (equal(x, n), "global_id(0) == n"),
        (equal(3, x), "global_id(0) == 3"),
        (not_equal(2 * x, 2 * n - 2), "global_id(0) != n - 1"),
        (conjunction(less(x, n), disjunction(less(k, 4), DATA)),
         "global_id(0) < n and (iteration(k) < 4 or unknown(mask))"),
        (TRUE, "true"),
        (FALSE, "false"),
        (UNKNOWN, "unknown()"),
    ],
)  # fmt: skip
def test_texts(condition: Condition, text: str) -> None:
    """Writes conditions as kernels do."""
    assert str(condition) == text


@pytest.mark.parametrize(
    ("condition", "simple"),
    [
        (less(3, 4), TRUE),
        (less(x, x), FALSE),
        (less(4 * x, 5), less(x, 2)),
        (equal(2 * x, 5), FALSE),
        (not_equal(2 * x, 5), TRUE),
        (equal(x, n), equal(n, x)),
        (conjunction(), TRUE),
        (disjunction(), FALSE),
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
