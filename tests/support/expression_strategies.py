"""Hypothesis strategies for expressions and conditions over some symbols."""

from collections.abc import Sequence

from hypothesis import strategies as st

from kernelcast.expressions import (
    Condition,
    Expr,
    Relation,
    Symbol,
    compare,
    conjunction,
    disjunction,
    floor_div,
    floor_mod,
    less,
    maximum,
    minimum,
    select,
    trunc_div,
    trunc_mod,
)


def expressions(
    symbols: Sequence[Symbol], *, has_products: bool = False, max_leaves: int = 4
) -> st.SearchStrategy[Expr]:
    """Draw sums with quotients and remainders by numbers, extremes and choices."""
    leaves = st.sampled_from([Expr.symbol(one) for one in symbols])
    alone = st.sampled_from([floor_div, floor_mod, trunc_div, trunc_mod, Expr.__mul__])
    pairs = st.sampled_from([
        Expr.__add__, Expr.__sub__, minimum, maximum, lambda a, b: select(less(a, b), b, a + 1),
        *([Expr.__mul__] if has_products else []),
    ])  # fmt: skip
    return st.recursive(
        leaves | st.integers(-9, 9).map(Expr.constant),
        lambda inner: (
            st.builds(lambda make, one, number: make(one, number), alone, inner,
                      st.sampled_from([-7, -2, 1, 2, 3, 4, 5, 8]))
            | st.builds(lambda make, one, other: make(one, other), pairs, inner, inner)
        ),
        max_leaves=max_leaves,
    )  # fmt: skip


def comparisons(symbols: Sequence[Symbol]) -> st.SearchStrategy[Condition]:
    """Draw comparisons of expressions with zero."""
    return st.builds(compare, expressions(symbols), st.sampled_from(Relation))


def conditions(
    symbols: Sequence[Symbol], *others: Condition, max_leaves: int = 3
) -> st.SearchStrategy[Condition]:
    """Draw comparisons, and some others, joined by `and` and `or`."""
    join = st.sampled_from([conjunction, disjunction])
    return st.recursive(
        st.one_of(comparisons(symbols), *map(st.just, others)),
        lambda inner: st.builds(lambda make, *parts: make(*parts), join, inner, inner),
        max_leaves=max_leaves,
    )
