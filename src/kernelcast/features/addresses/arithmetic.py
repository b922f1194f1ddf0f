"""C's integer operators on expressions.

Sums are taken to stay within their type: a kernel whose indices overflow is wrong anyway. Divisions
round as C's do, masks and shifts by constants stay exact.
"""

from kernelcast.features.addresses.values import Opaque, Value, as_number, blur
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.conditions import (
    Condition, Unknown, equal, less, less_equal, not_equal,
)  # fmt: skip
from kernelcast.records.quasi_affine import (
    Expr, FloorMod, Geometric, Maximum, Minimum, Symbol, SymbolKind, floor_div, floor_mod,
    trunc_div, trunc_mod,
)  # fmt: skip

_LONGEST_SHIFT = 62
_TOO_LARGE = 400
"""Terms beyond which an expression is given up: multiplied out, it would grow without end."""


def combine(operator: int, left: Value, right: Value, info: TypeInfo, *, is_known: bool) -> Value:
    """Apply a binary operator to two whole numbers.

    Parameters
    ----------
    operator : int
        One of `kinds`, comparisons included.
    left, right : Value
        The operands.
    info : TypeInfo
        Type in which C computes.
    is_known : bool
        Whether the left operand is known not to be negative.

    Returns
    -------
    Value
        A condition for comparisons; `Opaque` where the result is no expression of ours.
    """
    one, two = as_number(left), as_number(right)
    if operator in kinds.COMPARISONS:
        return _compare(operator, one, two)
    if isinstance(one, Opaque) or isinstance(two, Opaque):
        return blur(left, right)
    result = _calculate(operator, one, two, is_known=is_known or _is_unsigned(info))
    if result is None or len(result.terms) > _TOO_LARGE:
        return Opaque(reason="an operation that is not followed")
    return result


def is_non_negative(expr: Expr) -> bool:
    """Tell whether an expression cannot be negative, whatever its symbols are."""
    for monomial, factor in expr.terms:
        if factor < 0 or not all(_atom_is_non_negative(atom) for atom in monomial):
            return False
    return True


def mask(expr: Expr, bits: int) -> Expr:
    """Keep the lowest bits, as a conversion to a narrow unsigned type does."""
    return floor_mod(expr, 1 << bits)


def _is_unsigned(info: TypeInfo) -> bool:
    return info.type_class is TypeClass.UNSIGNED


def _atom_is_non_negative(atom: object) -> bool:
    if isinstance(atom, Symbol):
        return atom.kind is not SymbolKind.SCALAR
    if isinstance(atom, FloorMod):
        return True
    if isinstance(atom, Maximum):
        return is_non_negative(atom.left) or is_non_negative(atom.right)
    if isinstance(atom, Minimum):
        return is_non_negative(atom.left) and is_non_negative(atom.right)
    if isinstance(atom, Geometric):
        return is_non_negative(atom.start)
    numerator, denominator = getattr(atom, "numerator", None), getattr(atom, "denominator", None)
    return bool(
        numerator is not None
        and denominator is not None
        and is_non_negative(numerator)
        and is_non_negative(denominator)
    )


def _compare(operator: int, one: Expr | Opaque, two: Expr | Opaque) -> Condition:
    if isinstance(one, Opaque) or isinstance(two, Opaque):
        return Unknown(tuple(sorted(blur(one, two).sources)))
    made = {
        kinds.LESS: lambda: less(one, two),
        kinds.GREATER: lambda: less(two, one),
        kinds.LESS_EQUAL: lambda: less_equal(one, two),
        kinds.GREATER_EQUAL: lambda: less_equal(two, one),
        kinds.EQUAL: lambda: equal(one, two),
        kinds.NOT_EQUAL: lambda: not_equal(one, two),
    }
    return made[operator]()


def _calculate(operator: int, one: Expr, two: Expr, *, is_known: bool) -> Expr | None:
    if operator == kinds.ADD:
        return one + two
    if operator == kinds.SUBTRACT:
        return one - two
    if operator == kinds.MULTIPLY:
        return one * two if len(one.terms) * len(two.terms) <= _TOO_LARGE else None
    if operator in (kinds.DIVIDE, kinds.REMAINDER):
        return _divide(operator, one, two, is_known=is_known or is_non_negative(one))
    if operator in (kinds.SHIFT_LEFT, kinds.SHIFT_RIGHT):
        return _shift(operator, one, two)
    return _bits(operator, one, two)


def _divide(operator: int, one: Expr, two: Expr, *, is_known: bool) -> Expr | None:
    if two.is_zero:
        return None
    if operator == kinds.DIVIDE:
        return floor_div(one, two) if is_known else trunc_div(one, two)
    return floor_mod(one, two) if is_known else trunc_mod(one, two)


def _shift(operator: int, one: Expr, two: Expr) -> Expr | None:
    places = two.constant_value
    if places is not None:
        if not 0 <= places <= _LONGEST_SHIFT:
            return None
        power = 1 << places
        return one * power if operator == kinds.SHIFT_LEFT else floor_div(one, power)
    if one.constant_value is not None and operator == kinds.SHIFT_LEFT:
        atom = two.sole_atom
        if isinstance(atom, Symbol):
            return Expr.atom(Geometric(one, 2, False, two))
    return None


def _bits(operator: int, one: Expr, two: Expr) -> Expr | None:
    if one.constant_value is not None:
        one, two = two, one
    number = two.constant_value
    if one.constant_value is not None and number is not None:
        return Expr.constant(_fold(operator, one.constant_value, number))
    if number is None:
        return _join_bits(operator, one, two)
    if operator == kinds.BIT_AND:
        return _mask_by(one, number)
    if number == 0:
        return one
    if operator == kinds.BIT_XOR and number == -1:
        return -one - 1
    if operator == kinds.BIT_OR and number > 0:
        power = 1 << number.bit_length()
        return one + number if _is_multiple(one, power) else None
    if operator == kinds.BIT_XOR and number > 0 and not number & (number - 1):
        bit = floor_mod(floor_div(one, number), 2)
        return one + number - 2 * number * bit
    return None


def _fold(operator: int, one: int, two: int) -> int:
    if operator == kinds.BIT_AND:
        return one & two
    return one | two if operator == kinds.BIT_OR else one ^ two


def _mask_by(expr: Expr, number: int) -> Expr | None:
    if number >= 0 and not number & (number + 1):
        return floor_mod(expr, number + 1)
    if number < 0 and not -number & (-number - 1):
        return expr - floor_mod(expr, -number)
    if number > 0:
        # A run of ones, such as 0xf0: what is above cut off, what is below removed.
        low = number & -number
        high = number + low
        if not high & (high - 1):
            return floor_mod(expr, high) - floor_mod(expr, low)
    return None


def _join_bits(operator: int, one: Expr, two: Expr) -> Expr | None:
    """Join numbers whose bits do not overlap: `(x << 4) | (y & 15)`."""
    if operator == kinds.BIT_AND:
        return None
    for high, low in ((one, two), (two, one)):
        atom = low.sole_atom
        if isinstance(atom, FloorMod):
            width = atom.denominator.constant_value
            if width and not width & (width - 1) and _is_multiple(high, width):
                return high + low
    return None


def _is_multiple(expr: Expr, number: int) -> bool:
    return all(factor % number == 0 for _, factor in expr.terms)
