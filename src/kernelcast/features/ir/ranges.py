"""Between which numbers an expression lies, as far as that is easy to tell."""

from collections.abc import Mapping
from typing import TypeAlias

from kernelcast.expressions import (
    Expr,
    FloorDiv,
    FloorMod,
    Geometric,
    Maximum,
    Minimum,
    Select,
    Symbol,
    SymbolKind,
    TruncDiv,
    TruncMod,
)  # fmt: skip

Range: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value; None where there is no limit or none is known."""

EVERYTHING: Range = (None, None)
_UPWARDS: Range = (0, None)
_NONE: Mapping[str, int] = {}


def range_of(expr: Expr, unsigned: Mapping[str, int] = _NONE) -> Range:
    """Give limits of an expression's value."""
    low: int | None = 0
    high: int | None = 0
    for monomial, factor in expr.products:
        product: Range = (1, 1)
        for atom in monomial:
            product = _multiply(product, _range_of_atom(atom, unsigned))
        least, most = _multiply(product, (factor, factor))
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
        if low is None and high is None:
            return EVERYTHING
    return low, high


def is_non_negative(expr: Expr, unsigned: Mapping[str, int] = _NONE) -> bool:
    """Tell whether an expression is known not to be negative."""
    low, _ = range_of(expr, unsigned)
    return low is not None and low >= 0


def _multiply(one: Range, two: Range) -> Range:
    if one == (1, 1):
        return two
    if two[0] == two[1] and two[0] is not None:
        low, high = (None if each is None else each * two[0] for each in one)
        return (low, high) if two[0] >= 0 else (high, low)
    if one[0] is not None and two[0] is not None and one[0] >= 0 and two[0] >= 0:
        high = None if one[1] is None or two[1] is None else one[1] * two[1]
        return one[0] * two[0], high
    return EVERYTHING


def _range_of_atom(atom: object, unsigned: Mapping[str, int]) -> Range:
    if isinstance(atom, Symbol):
        if atom.kind not in (SymbolKind.SCALAR, SymbolKind.CONTENT):
            return _UPWARDS
        return (0, unsigned[atom.name]) if atom.name in unsigned else EVERYTHING
    if isinstance(atom, FloorMod | FloorDiv | TruncDiv | TruncMod):
        return _range_of_division(atom, unsigned)
    if isinstance(atom, Minimum | Maximum):
        return _range_of_extremum(atom, unsigned)
    if isinstance(atom, Select):
        one, two = range_of(atom.then, unsigned), range_of(atom.otherwise, unsigned)
        return _least(one[0], two[0]), _most(one[1], two[1])
    if isinstance(atom, Geometric) and atom.factor > 0 and is_non_negative(atom.start, unsigned):
        return (0, range_of(atom.start, unsigned)[1]) if atom.is_division else _UPWARDS
    return EVERYTHING


def _range_of_division(
    atom: FloorMod | FloorDiv | TruncDiv | TruncMod, unsigned: Mapping[str, int]
) -> Range:
    divisor = atom.denominator.constant_value
    low, high = range_of(atom.numerator, unsigned)
    is_positive = low is not None and low >= 0
    if divisor is None or divisor <= 0:
        is_upwards = is_positive and is_non_negative(atom.denominator, unsigned)
        return _UPWARDS if is_upwards else EVERYTHING
    if isinstance(atom, FloorMod | TruncMod):
        if not is_positive and isinstance(atom, TruncMod):
            return 1 - divisor, divisor - 1
        within = is_positive and high is not None and high < divisor
        return (low, high) if within else (0, divisor - 1)
    if isinstance(atom, TruncDiv) and not is_positive:
        return EVERYTHING
    return (
        None if low is None else low // divisor,
        None if high is None else high // divisor,
    )


def _range_of_extremum(atom: Minimum | Maximum, unsigned: Mapping[str, int]) -> Range:
    one, two = range_of(atom.left, unsigned), range_of(atom.right, unsigned)
    lows = [each for each in (one[0], two[0]) if each is not None]
    highs = [each for each in (one[1], two[1]) if each is not None]
    if isinstance(atom, Minimum):
        return _least(one[0], two[0]), min(highs, default=None)
    return max(lows, default=None), _most(one[1], two[1])


def _least(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else min(one, two)


def _most(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else max(one, two)
