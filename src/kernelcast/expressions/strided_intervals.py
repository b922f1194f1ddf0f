"""Between which values an expression lies, in pieces where it strides over gaps.

The rows that a box of a matrix has lie far apart: from the first byte to the last it may be a
hundred mebibytes, of which the box has some kilobytes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from kernelcast.expressions.intervals import Interval, bound_values
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.symbols import Symbol

_Stride = tuple[int, int]
"""A step, and how many values it leads to."""


@dataclass(frozen=True, slots=True)
class _Strides:
    """An interval, and the strides that repeat it."""

    low: int
    high: int
    strides: tuple[_Stride, ...]


def bound_pieces(
    expr: Expr, ranges: Mapping[Symbol, Interval], *, least_gap: int, most: int
) -> list[Interval]:
    """Give intervals that hold all values of an expression.

    Parameters
    ----------
    ranges : mapping of Symbol to (int, int)
        Between which values its symbols lie.
    least_gap : int
        Pieces with less between them are one.
    most : int
        Pieces at most: of more, those with the smallest gaps are joined.

    Raises
    ------
    EvaluationError
        As `bound_values`.

    Examples
    --------
    >>> from kernelcast.expressions import SymbolKind
    >>> x, y = (Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in (0, 1))
    >>> offset = 4 * Expr.symbol(x) + 100 * Expr.symbol(y) + 3
    >>> bound_pieces(offset, {x: (0, 9), y: (2, 4)}, least_gap=50, most=8)
    [(203, 239), (303, 339), (403, 439)]
    >>> bound_pieces(offset, {x: (0, 9), y: (2, 4)}, least_gap=50, most=2)
    [(203, 439)]
    """
    found = _find_strides(expr, ranges)
    width, apart = found.high - found.low, []
    strides = sorted(found.strides)
    for place, (step, count) in enumerate(strides):
        pieces = math.prod(number for _, number in strides[place:])
        if step - width <= least_gap or pieces > most:
            width += step * (count - 1)
        else:
            apart.append((step, count))
    return [(start, start + width) for start in _list_starts(found.low, apart)]


def _list_starts(low: int, strides: Sequence[_Stride]) -> list[int]:
    """Give where pieces begin."""
    steps = [range(0, step * count, step) for step, count in reversed(strides)]
    return [low + sum(one) for one in product(*steps)]


def _find_strides(expr: Expr, ranges: Mapping[Symbol, Interval]) -> _Strides:
    """Take an expression apart into strides of symbols and an interval of all else."""
    factors: dict[Symbol, int] = {}
    low = high = 0
    for monomial, factor in expr.products:
        moving = [one for one in monomial if not _is_fixed(one, ranges)]
        (symbol, *others) = moving or (None,)
        if isinstance(symbol, Symbol) and not others:
            fixed = math.prod(
                ranges[one][0] for one in monomial if isinstance(one, Symbol) and one != symbol
            )
            factors[symbol] = factors.get(symbol, 0) + factor * fixed
            continue
        least, greatest = bound_values(Expr({monomial: factor}), ranges)
        low, high = low + least, high + greatest
    strides = []
    for symbol, factor in factors.items():
        first, last = ranges[symbol]
        ends = factor * first, factor * last
        low, high = low + min(ends), high + min(ends)
        if factor:
            strides.append((abs(factor), last - first + 1))
    return _Strides(low, high, tuple(strides))


def _is_fixed(atom: object, ranges: Mapping[Symbol, Interval]) -> bool:
    """Tell whether an atom is a symbol of one value."""
    found = ranges.get(atom) if isinstance(atom, Symbol) else None
    return found is not None and found[0] == found[1]
