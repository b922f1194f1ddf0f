"""Between which values an expression lies where its symbols lie between some: microseconds each.

Wider than need be where a symbol stands in several places; never narrower. What isl says exactly
(`kernelcast.expressions.point_sets`) takes it milliseconds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from kernelcast.expressions.choices import Maximum, Minimum, Select
from kernelcast.expressions.divisions import Division
from kernelcast.expressions.evaluation import EvaluationError
from kernelcast.expressions.polynomials import Composite, Expr
from kernelcast.expressions.symbols import Symbol

Interval: TypeAlias = tuple[int, int]
"""Least and greatest value, both taken."""


def bound_values(expr: Expr, ranges: Mapping[Symbol, Interval]) -> Interval:
    """Give the interval that holds all values of an expression."""
    low = high = 0
    for monomial, factor in expr.products:
        least = most = factor
        for atom in monomial:
            one = _bound_atom(atom, ranges)
            corners = [a * b for a in (least, most) for b in one]
            least, most = min(corners), max(corners)
        low, high = low + least, high + most
    return low, high


def _bound_atom(atom: Symbol | Composite, ranges: Mapping[Symbol, Interval]) -> Interval:
    if isinstance(atom, Symbol):
        found = ranges.get(atom)
        if found is not None:
            return found
    elif isinstance(atom, Division):
        top, bottom = (bound_values(one, ranges) for one in (atom.numerator, atom.denominator))
        return divide_intervals(top, bottom, is_floor=atom.is_floor, is_remainder=atom.is_remainder)
    elif isinstance(atom, Minimum | Maximum):
        choose = min if isinstance(atom, Minimum) else max
        left, right = (bound_values(one, ranges) for one in (atom.left, atom.right))
        return choose(left[0], right[0]), choose(left[1], right[1])
    elif isinstance(atom, Select):
        then, otherwise = (bound_values(one, ranges) for one in (atom.then, atom.otherwise))
        return min(then[0], otherwise[0]), max(then[1], otherwise[1])
    msg = f"{atom}: nothing is known of its values"
    raise EvaluationError(msg)


def divide_intervals(
    top: Interval, bottom: Interval, *, is_floor: bool, is_remainder: bool
) -> Interval:
    """Give the interval of quotients or remainders, rounded down or towards zero."""
    if bottom[0] <= 0 <= bottom[1]:
        msg = f"values between {bottom[0]} and {bottom[1]}: a divisor may be 0"
        raise EvaluationError(msg)
    # Corners are extreme, for the divisor keeps its sign, and rounding keeps the order.
    quotients = [
        a // b if is_floor or (a >= 0) is (b > 0) else -(-a // b) for a in top for b in bottom
    ]
    quotient = min(quotients), max(quotients)
    if not is_remainder:
        return quotient
    if quotient[0] == quotient[1] and bottom[0] == bottom[1]:
        return top[0] - quotient[0] * bottom[0], top[1] - quotient[0] * bottom[0]
    largest = max(abs(bottom[0]), abs(bottom[1])) - 1
    is_positive = top[0] >= 0 and bottom[0] > 0
    return (0, min(largest, top[1])) if is_positive else (-largest, largest)


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
    """Bound an expression's values by at most so many intervals that lie at least a gap apart."""
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
