"""Operators of LLVM IR on expressions.

Sums of 32 and 64 bits are taken to stay within their type: a kernel whose indices overflow is wrong
anyway. A number without a sign stands for all that differ from it by a multiple of the type's
range: ``x - 1`` of zero is -1 here. Comparisons know that such a number is a large one, divisions
and remainders bring it into the range first where that may matter.
"""

import math
from collections.abc import Mapping
from typing import Final

from kernelcast.expressions import (
    Condition,
    Expr,
    Geometric,
    Select,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    not_equal,
    select,
    trunc_div,
    trunc_mod,
)
from kernelcast.features.ir.values import LARGEST, is_non_negative, range_of

_UINT_BITS: Final = 32


class Arithmetic:
    """Operators on whole numbers."""

    def __init__(self, unsigned: Mapping[str, int]) -> None:
        self._unsigned = unsigned

    def combine(
        self, opcode: str, one: Expr, two: Expr, bits: int, *, is_signed: bool
    ) -> Expr | None:
        """Apply a binary operator of numbers of so many bits."""
        result = self._calculate(opcode, one, two, bits)
        if result is None:
            return None
        if is_signed or result.constant_value is not None or not result.products:
            return result
        largest = max(abs(factor) for _, factor in result.products)
        # Products of indices with factors so large are taken to wrap: hashes, random numbers.
        if bits == _UINT_BITS and largest >= 1 << 16:
            return floor_mod(result, 1 << _UINT_BITS)
        return None if largest >= 1 << 40 else result

    def is_non_negative(self, expr: Expr) -> bool:
        """Tell whether an expression is known not to be negative."""
        return is_non_negative(expr, self._unsigned)

    def _calculate(self, opcode: str, one: Expr, two: Expr, bits: int) -> Expr | None:
        if opcode == "add":
            return one + two
        if opcode == "sub":
            return one - two
        if opcode == "mul":
            return one * two if one.extent[0] * two.extent[0] <= LARGEST else None
        if opcode in ("and", "or", "xor"):
            return combine_bits(opcode, one, two)
        if opcode in ("shl", "lshr", "ashr"):
            places = two.constant_value
            if places is not None:
                if not 0 <= places <= 62:
                    return None
                power = 1 << places
                if opcode == "shl":
                    return one * power
                return _divide_again(one, Expr.constant(power)) or floor_div(one, power)
            if opcode == "shl":
                return geometric(one, 2, two, is_division=False)
            if opcode == "lshr" or one.is_parameter or self.is_non_negative(one):
                return Expr.atom(Geometric(one, 2, True, two))
            return None
        return self._divide(opcode, one, two, bits)

    def _divide(self, opcode: str, one: Expr, two: Expr, bits: int) -> Expr | None:
        if two.is_zero:
            return None
        again = _divide_again(one, two)
        if again is not None and opcode in ("sdiv", "udiv"):
            return again
        is_known = self.is_non_negative(one)
        if opcode in ("udiv", "urem"):
            divisor = two.constant_value or 0
            is_power = divisor > 0 and not divisor & (divisor - 1)
            if opcode == "urem" and not is_power and bits == _UINT_BITS and not (
                one.is_parameter or is_known
            ):  # fmt: skip
                one = floor_mod(one, 1 << bits)
            is_known = True
        if opcode in ("udiv", "sdiv"):
            return floor_div(one, two) if is_known else trunc_div(one, two)
        return floor_mod(one, two) if is_known else trunc_mod(one, two)

    def compare(self, predicate: str, one: Expr, two: Expr, bits: int) -> Condition:
        """Compare two numbers by a predicate of ``icmp``."""
        if predicate == "eq":
            return equal(one, two)
        if predicate == "ne":
            return not_equal(one, two)
        relation = predicate[1:]
        if relation in ("le", "ge"):
            opposite = predicate[0] + {"le": "gt", "ge": "lt"}[relation]
            return self.compare(opposite, one, two, bits).negated()
        if relation == "gt":
            one, two = two, one
        if predicate[0] == "s":
            return less(one, two)
        # Without a sign sizes and arguments are taken not to be negative.
        one, two = (
            each + (1 << bits) if (each.constant_value or 0) < 0 else each for each in (one, two)
        )
        found = less(one, two)
        is_low, is_high = (
            # The distance of two numbers of a buffer is the length of a row: row pointers ascend.
            # Where a constant is taken off, a test of a range may be meant, as `c - 97u < 26u`,
            # which lives on negative numbers.
            each.is_parameter
            or self.is_non_negative(each)
            or (
                each.constant_term == 0
                and all(symbol.kind is SymbolKind.CONTENT for symbol in each.symbols())
            )
            for each in (one, two)
        )
        if is_low and is_high:
            return found
        if is_high:
            return conjunction(less(-1, one), found)
        if is_low:
            return disjunction(less(two, 0), found)
        return disjunction(
            conjunction(less(-1, one), disjunction(less(two, 0), found)),
            conjunction(less(one, 0), less(two, 0), found),
        )

    def widen(self, number: Expr, bits: int, *, is_signed: bool) -> Expr:
        """Extend a number; wider ones than 16 bits are taken to fit."""
        value = number.constant_value
        if value is not None:
            return Expr.constant(value if is_signed else value % (1 << bits))
        if bits > 16:
            return number
        size = 1 << bits
        start = -(size // 2) if is_signed else 0
        low, high = range_of(number, self._unsigned)
        if getattr(number.sole_atom, "kind", None) is SymbolKind.LOCAL_ID:
            low, high = 0, (1 << 15) - 1
        if start <= low and high < start + size:
            return number
        return floor_mod(number - start, size) + start


def _divide_again(one: Expr, two: Expr) -> Expr | None:
    """Divide what a loop divides each time by the same number once more."""
    atom = one.sole_atom
    if isinstance(atom, Geometric) and atom.is_division and atom.factor == two.constant_value:
        return geometric(atom.start, atom.factor, atom.iteration + 1, is_division=True)
    return None


def combine_bits(opcode: str, one: Expr, two: Expr) -> Expr | None:
    """Combine bits; None if neither is a number and they may have bits in common."""
    if opcode == "and":
        for other, mask in ((one, _as_mask(two)), (two, _as_mask(one))):
            if mask is not None:
                return select(mask, other, 0)
    if one.constant_value is not None:
        one, two = two, one
    number = two.constant_value
    if number is None:
        return _join(opcode, one, two)
    value = one.constant_value
    if opcode == "xor" and number == -1 and (mask := _as_mask(one)) is not None:
        return select(mask, 0, -1)
    if value is not None:
        return Expr.constant({"and": value & number, "or": value | number}.get(
            opcode, value ^ number))  # fmt: skip
    common = _mask(one, number)
    if common is None or opcode == "and":
        return common
    return one + number - (common if opcode == "or" else 2 * common)


def _mask(expr: Expr, number: int) -> Expr | None:
    """Give the bits of an expression that a number selects, by its runs of ones."""
    if number < 0:
        rest = _mask(expr, ~number)
        return None if rest is None else expr - rest
    total = Expr.constant(0)
    # Each run of ones adds a remainder: a mask of more is given up.
    for _ in range(4):
        if not number:
            return total
        low = number & -number
        high = (number + low) & ~number
        total = total + low * floor_mod(floor_div(expr, low), high // low)
        number &= ~(high - 1)
    return None if number else total


def _as_mask(expr: Expr) -> Condition | None:
    """Give the condition on which a number is -1, if it is 0 elsewhere."""
    atom = expr.sole_atom
    if isinstance(atom, Select):
        if atom.then.constant_value == -1 and atom.otherwise.is_zero:
            return atom.condition
        if atom.then.is_zero and atom.otherwise.constant_value == -1:
            return atom.condition.negated()
    atom = (-expr).sole_atom
    if isinstance(atom, Select) and atom.then.constant_value == 1 and atom.otherwise.is_zero:
        return atom.condition
    return None


def _join(opcode: str, one: Expr, two: Expr) -> Expr | None:
    """Join numbers whose bits do not overlap: ``(x << 4) | (y & 15)``, or one under a mask."""
    left, right = one.sole_atom, two.sole_atom
    if opcode == "or" and isinstance(left, Select) and isinstance(right, Select):
        if left.condition == right.condition and left.otherwise.is_zero and right.then.is_zero:
            return select(left.condition, left.then, right.otherwise)
        if left.condition == right.condition.negated() and (
            left.otherwise.is_zero and right.otherwise.is_zero
        ):
            return select(left.condition, left.then, right.then)
    for high, low in ((one, two), (two, one)):
        least, most = range_of(low)
        if least < 0 or math.isinf(most):
            continue
        width = 1 << int(most).bit_length()
        if all(factor % width == 0 for _, factor in high.products):
            return Expr.constant(0) if opcode == "and" else high + low
    return None
