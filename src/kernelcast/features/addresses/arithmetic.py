"""C's integer operators on expressions.

Sums of signed numbers are taken to stay within their type: a kernel whose indices overflow is wrong
anyway. An expression of an unsigned type stands for all numbers that differ from it by a multiple
of the type's range: `x - 1` of an unsigned zero is -1 here. Comparisons know that such a number is
a large one, divisions and remainders bring it into the range first where that may matter.
"""

from collections.abc import Mapping

from kernelcast.expressions import (
    Condition,
    Expr,
    Geometric,
    SymbolKind,
    Unknown,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    negation,
    not_equal,
    trunc_div,
    trunc_mod,
)  # fmt: skip  # fmt: skip
from kernelcast.features.addresses.bits import combine_bits
from kernelcast.features.addresses.ranges import is_non_negative
from kernelcast.features.addresses.values import Opaque, Value, as_number, blur
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_LONGEST_SHIFT = 62
_TOO_LARGE = 400
"""Terms beyond which an expression is given up: multiplied out, it would grow without end."""
_WRAPPING = 1 << 16
"""A factor from which on products of indices are taken to wrap: hashes, random numbers."""
_UINT_BITS = 32
_FARTHEST = 1 << 40


class Arithmetic:
    """Operators on whole numbers.

    Parameters
    ----------
    unsigned : mapping of str to int
        Greatest values of scalar arguments and contents that cannot be negative; it may grow.
    """

    def __init__(self, unsigned: Mapping[str, int]) -> None:
        self._unsigned = unsigned

    def combine(self, operator: int, left: Value, right: Value, info: TypeInfo) -> Value:
        """Apply a binary operator.

        Parameters
        ----------
        operator : int
            One of `kinds`, comparisons included.
        info : TypeInfo
            Type in which C computes.

        Returns
        -------
        Value
            A condition for comparisons; `Opaque` where the result is no expression of ours.
        """
        one = left if isinstance(left, Expr) else as_number(left)
        two = right if isinstance(right, Expr) else as_number(right)
        is_comparison = operator in kinds.COMPARISONS
        if isinstance(one, Opaque) or isinstance(two, Opaque):
            found = blur(left, right)
            return Unknown(tuple(sorted(found.sources))) if is_comparison else found
        if is_comparison:
            return self.compare(operator, one, two, info)
        result = self._calculate(operator, one, two, info)
        if result is None or len(result.products) > _TOO_LARGE:
            return Opaque(reason="an operation that is not followed")
        return _wrap(result, info)

    def is_non_negative(self, expr: Expr) -> bool:
        """Tell whether an expression is known not to be negative."""
        return is_non_negative(expr, self._unsigned)

    def compare(self, operator: int, one: Expr, two: Expr, info: TypeInfo) -> Condition:
        """Compare two numbers, by the rules of their type."""
        if operator in (kinds.EQUAL, kinds.NOT_EQUAL):
            if _is_unsigned(info):
                one, two = (_nearest_zero(each, info) for each in (one, two))
            return equal(one, two) if operator == kinds.EQUAL else not_equal(one, two)
        if operator in (kinds.GREATER, kinds.LESS_EQUAL):
            one, two = two, one
        is_less = self._is_less(one, two, info)
        return is_less if operator in (kinds.LESS, kinds.GREATER) else negation(is_less)

    def _is_less(self, one: Expr, two: Expr, info: TypeInfo) -> Condition:
        found = less(one, two)
        if not _is_unsigned(info):
            return found
        # Sizes and arguments are taken not to be negative where C compares them without sign.
        is_low, is_high = (
            each.is_parameter or _is_distance(each) or self.is_non_negative(each)
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

    def _calculate(self, operator: int, one: Expr, two: Expr, info: TypeInfo) -> Expr | None:
        if operator == kinds.ADD:
            return one + two
        if operator == kinds.SUBTRACT:
            return one - two
        if operator == kinds.MULTIPLY:
            return one * two if len(one.products) * len(two.products) <= _TOO_LARGE else None
        if operator in (kinds.DIVIDE, kinds.REMAINDER):
            return self._divide(operator, one, two, info)
        if operator in (kinds.SHIFT_LEFT, kinds.SHIFT_RIGHT):
            return self._shift(operator, one, two, info)
        return combine_bits(operator, one, two, info)

    def _divide(self, operator: int, one: Expr, two: Expr, info: TypeInfo) -> Expr | None:
        if two.is_zero:
            return None
        again = _divide_again(one, two)
        if again is not None and operator == kinds.DIVIDE:
            return again
        is_known = self.is_non_negative(one)
        if _is_unsigned(info):
            divisor = two.constant_value or 0
            is_power = divisor > 0 and not divisor & (divisor - 1)
            if operator == kinds.REMAINDER and not is_power:
                one = self._into_range(one, info)
            is_known = True
        if operator == kinds.DIVIDE:
            return floor_div(one, two) if is_known else trunc_div(one, two)
        return floor_mod(one, two) if is_known else trunc_mod(one, two)

    def _into_range(self, expr: Expr, info: TypeInfo) -> Expr:
        """Bring a number of 32 unsigned bits that may have wrapped into their range."""
        if info.bits != _UINT_BITS or expr.is_parameter or self.is_non_negative(expr):
            return expr
        return floor_mod(expr, 1 << info.bits)

    def _shift(self, operator: int, one: Expr, two: Expr, info: TypeInfo) -> Expr | None:
        places = two.constant_value
        if places is not None:
            if not 0 <= places <= _LONGEST_SHIFT:
                return None
            power = 1 << places
            if operator == kinds.SHIFT_LEFT:
                return one * power
            return _divide_again(one, Expr.constant(power)) or floor_div(one, power)
        if operator == kinds.SHIFT_LEFT:
            return geometric(one, 2, two, is_division=False)
        if _is_unsigned(info) or one.is_parameter or self.is_non_negative(one):
            return Expr.atom(Geometric(one, 2, True, two))
        return None


def _divide_again(one: Expr, two: Expr) -> Expr | None:
    """Divide what a loop divides each time by the same number once more."""
    atom = one.sole_atom
    if isinstance(atom, Geometric) and atom.is_division and atom.factor == two.constant_value:
        return geometric(atom.start, atom.factor, atom.iteration + 1, is_division=True)
    return None


def _is_distance(expr: Expr) -> bool:
    """Tell whether something is the distance of two numbers of a buffer: the length of a row.

    Row pointers ascend. Where a constant is taken off, a test of a range may be meant, as
    `c - 97u < 26u`, which lives on negative numbers.
    """
    are_contents = all(one.kind is SymbolKind.CONTENT for one in expr.symbols())
    return are_contents and expr.constant_term == 0


def _is_unsigned(info: TypeInfo) -> bool:
    return info.type_class is TypeClass.UNSIGNED


def _nearest_zero(expr: Expr, info: TypeInfo) -> Expr:
    number = expr.constant_value
    if number is None or not info.bits or number < 1 << (info.bits - 1):
        return expr
    return Expr.constant(number - (1 << info.bits))


def _wrap(result: Expr, info: TypeInfo) -> Expr | Opaque:
    """Keep to the type's range what is not meant to stay in it by itself."""
    if not _is_unsigned(info) or result.constant_value is not None:
        return result
    largest = max(abs(factor) for _, factor in result.products)
    if info.bits == _UINT_BITS and largest >= _WRAPPING:
        return floor_mod(result, 1 << _UINT_BITS)
    if largest >= _FARTHEST:
        return Opaque(reason="a number that wraps at 64 bits")
    return result
