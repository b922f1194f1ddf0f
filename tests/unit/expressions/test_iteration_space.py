"""Shares of iterations, rows and lines, beside plain enumeration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import (
    TRUE,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    floor_mod,
    less,
    less_equal,
)
from kernelcast.expressions.loop_nest import IterationSpace, NestLoop
from kernelcast.records.errors import InputError
from support.loop_nests import count_loops

J, I = (Symbol(SymbolKind.LOOP, name) for name in "ji")  # noqa: E741 - the loops' own names
N = Symbol(SymbolKind.SCALAR, "N")
DATA = Symbol(SymbolKind.CONTENT, "a[i] > 0")


def make_loops(
    start: int, step: int, *, is_triangle: bool
) -> tuple[tuple[NestLoop, ...], dict[Symbol, Expr]]:
    stop = Expr.symbol(J) + 1 if is_triangle else Expr.symbol(N)
    outer = ("j", Expr.constant(0), Expr.symbol(N), 1)
    return count_loops([outer, ("i", Expr.constant(start), stop, step)])


def list_points(size: int, start: int, step: int, *, is_triangle: bool) -> list[tuple[int, int]]:
    return [(j, i) for j in range(size) for i in range(start, j + 1 if is_triangle else size, step)]


SQUARE, _ = make_loops(0, 1, is_triangle=False)
CONDITIONS = st.builds(
    lambda a, b, c, kind: {
        "less": less(a * Expr.symbol(I) + b * Expr.symbol(J), c),
        "strided": equal(floor_mod(Expr.symbol(I) + b, 3), 0),
        "both": conjunction(less_equal(1, I), less(Expr.symbol(J), Expr.symbol(N) - 2)),
        "either": disjunction(less(I, c), less(J, Expr.symbol(I) + a).negated()),
        "row": less(J, c),
    }[kind],
    st.integers(-2, 3), st.integers(0, 3), st.integers(1, 20),
    st.sampled_from(("less", "strided", "both", "either", "row")),
)  # fmt: skip


@given(
    CONDITIONS, st.integers(3, 20), st.integers(0, 2), st.integers(1, 3), st.booleans(),
    st.sampled_from((8, 24, 64, 80)),
)  # fmt: skip
def test_counts_what_enumeration_counts(
    condition: Condition, size: int, start: int, step: int, is_triangle: bool, stride: int
) -> None:
    """Iterations, rows and lines of conditions are those of a walk through the loops."""
    points = list_points(size, start, step, is_triangle=is_triangle)
    met = [(j, i) for j, i in points if condition.evaluate({J: j, I: i, N: size})]
    loops, values = make_loops(start, step, is_triangle=is_triangle)
    space, condition = IterationSpace(loops, {N: size}), condition.substitute(values)
    assert space.share(condition) == pytest.approx(len(met) / len(points))
    rows = {j for j, _ in points}
    assert space.share_of_rows(condition) == pytest.approx(len({j for j, _ in met}) / len(rows))

    def count_lines(some: list[tuple[int, int]]) -> int:
        lines = {(j, (i - start) // step * stride // 64) for j, i in some}
        return len(lines if stride < 64 else some)

    found = space.share_of_lines(condition, stride, 64)
    assert found == pytest.approx(count_lines(met) / count_lines(points))


def test_decisions_hold_in_the_share_that_is_stated() -> None:
    """Random decisions of a share touch a line if one of its elements is touched."""
    decided = equal(DATA, 1)
    space = IterationSpace(SQUARE, {N: 64}, 0.25)
    assert space.share(decided) == 0.25
    assert space.share(conjunction(decided, less(I, 16))) == pytest.approx(0.25 * 0.25)
    assert space.share(disjunction(decided, decided.negated())) == 1
    assert space.share_of_lines(decided, 8, 64) == pytest.approx(1 - 0.75**8)
    assert space.share_of_lines(decided, 64, 64) == pytest.approx(0.25)
    masked = IterationSpace(SQUARE, {N: 64})
    assert masked.share(conjunction(decided, less(I, 16))) == pytest.approx(0.25)
    assert masked.share(TRUE) == 1


def test_what_is_not_affine_is_refused() -> None:
    space = IterationSpace(SQUARE, {N: 64})
    with pytest.raises(InputError, match="cannot be counted; expected comparisons of sums"):
        space.share(less(Expr.symbol(I) * Expr.symbol(J), 5))
