"""Pieces of an expression's values hold all of them, and no gaps where it strides."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_div
from kernelcast.expressions.intervals import bound_pieces

NAMES = [Symbol(SymbolKind.SCALAR, one) for one in "wxyz"]
W, X, Y, Z = map(Expr.symbol, NAMES)


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
    expr = a * X + b * W * Y + c * floor_div(Z, 3) + d * X * Z + 7
    ranges = {
        name: (first, first + count - 1)
        for name, first, count in zip(NAMES, firsts, counts, strict=True)
    }
    ranges[NAMES[0]] = (firsts[0], firsts[0])
    pieces = bound_pieces(expr, ranges, least_gap=least_gap, most=most)
    assert len(pieces) <= most
    spans = [range(low, high + 1) for low, high in ranges.values()]
    for values in product(*spans):
        value = expr.evaluate(dict(zip(ranges, values, strict=True)))
        assert any(low <= value <= high for low, high in pieces)


def test_rows_far_apart_are_pieces() -> None:
    """A box of rows has a piece for each of them, layer by layer, no wider than a row."""
    offset = 4 * X + 1000 * Y + 100_000 * Z
    ranges = {NAMES[1]: (5, 14), NAMES[2]: (2, 3), NAMES[3]: (0, 1)}
    starts = [20 + 1000 * y + 100_000 * z for z in (0, 1) for y in (2, 3)]
    assert bound_pieces(offset, ranges, least_gap=100, most=100) == [
        (start, start + 36) for start in starts
    ]
