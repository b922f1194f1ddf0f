"""Between which values an expression lies where its symbols lie between some: microseconds each.

Wider than need be where a symbol stands in several places; never narrower. What isl says exactly
(`kernelcast.expressions.point_sets`) takes it milliseconds.
"""

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import TypeAlias

from kernelcast.expressions.composites import Division, Extremum, Geometric, Select
from kernelcast.expressions.polynomials import Composite, Expr
from kernelcast.expressions.symbols import EvaluationError, Symbol

Interval: TypeAlias = tuple[int, int]
"""Least and greatest value, both taken."""
Range: TypeAlias = tuple[float, float]
"""The same, infinite where nothing is known."""
FindRange: TypeAlias = Callable[[Symbol], Range | None]

EVERYTHING: Range = (-math.inf, math.inf)


def bound_values(expr: Expr, ranges: Mapping[Symbol, Interval]) -> Interval:
    """Bound an expression's values by those of its symbols; refuse what has no bounds."""
    low, high = find_range(expr, ranges.get)
    if math.isinf(low) or math.isinf(high):
        raise EvaluationError(f"{expr}: nothing is known of its values")
    return int(low), int(high)


def find_range(expr: Expr, of_symbol: FindRange) -> Range:
    """Find between which numbers an expression lies, by those of its symbols where known."""
    low: float = 0
    high: float = 0
    for monomial, factor in expr.products:
        least: float = factor
        most: float = factor
        for atom in monomial:
            first, last = _bound_atom(atom, of_symbol)
            corners = [a * b if a and b else 0 for a in (least, most) for b in (first, last)]
            least, most = min(corners), max(corners)
        low, high = low + least, high + most
    return low, high


def _bound_atom(atom: Symbol | Composite, of_symbol: FindRange) -> Range:
    if isinstance(atom, Symbol):
        return of_symbol(atom) or EVERYTHING
    if isinstance(atom, Division):
        return _divide(
            atom, find_range(atom.numerator, of_symbol),
            find_range(atom.denominator, of_symbol),
        )  # fmt: skip
    if isinstance(atom, Extremum):
        choose = min if atom.is_least else max
        left, right = (find_range(one, of_symbol) for one in (atom.left, atom.right))
        return choose(left[0], right[0]), choose(left[1], right[1])
    if isinstance(atom, Select):
        then, otherwise = (find_range(one, of_symbol) for one in (atom.then, atom.otherwise))
        return min(then[0], otherwise[0]), max(then[1], otherwise[1])
    if isinstance(atom, Geometric) and atom.factor > 0:
        low, high = find_range(atom.start, of_symbol)
        if low >= 0:
            return 0, high if atom.is_division else math.inf
    return EVERYTHING


def _divide(atom: Division, top: Range, bottom: Range) -> Range:
    """Bound quotients or remainders; where a divisor is 0 there is no value to bound."""
    bottom = bottom[0] or 1, bottom[1] or -1
    if bottom[0] < 0 < bottom[1] or bottom[0] > bottom[1]:
        return EVERYTHING
    # Corners are extreme, for the divisor keeps its sign, and rounding keeps the order.
    quotients = [_round_quotient(a, b, is_floor=atom.is_floor) for a in top for b in bottom]
    least, most = min(quotients), max(quotients)
    if not atom.is_remainder:
        return least, most
    if least == most and bottom[0] == bottom[1]:
        return top[0] - least * bottom[0], top[1] - least * bottom[0]
    largest = max(abs(bottom[0]), abs(bottom[1])) - 1
    if bottom[0] > 0 and (atom.is_floor or top[0] >= 0):
        return 0, min(largest, top[1]) if top[0] >= 0 else largest
    return -largest, largest


def _round_quotient(top: float, bottom: float, *, is_floor: bool) -> float:
    is_negative = (top < 0) == (bottom > 0) and top != 0
    if math.isinf(top):
        return -math.inf if is_negative else math.inf
    if math.isinf(bottom):
        return -1 if is_negative and is_floor else 0
    return -(-top // bottom) if is_negative and not is_floor else top // bottom


def bound_pieces(
    expr: Expr, ranges: Mapping[Symbol, Interval], *, least_gap: int, most: int
) -> list[Interval]:
    """Bound an expression's values by at most so many intervals that lie at least a gap apart."""
    expr = expr.substitute({one: low for one, (low, high) in ranges.items() if low == high})
    begin, width = 0, 0
    strides: list[tuple[int, int]] = []
    for monomial, factor in expr.products:
        low, high = bound_values(Expr({monomial: factor}), ranges)
        begin += low
        if len(monomial) == 1 and isinstance(monomial[0], Symbol):
            strides.append((abs(factor), (high - low) // abs(factor) + 1))
        else:
            width += high - low
    strides.sort()
    apart = []
    for place, (step, count) in enumerate(strides):
        pieces = math.prod(number for _, number in strides[place:])
        if step - width <= least_gap or pieces > most:
            width += step * (count - 1)
        else:
            apart.append(range(0, step * count, step))
    return [(start, start + width) for start in (begin + sum(one) for one in product(*apart[::-1]))]
