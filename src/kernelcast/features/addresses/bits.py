"""Masks, unions and exclusive unions of bits, written with remainders."""

from kernelcast.expressions import Expr, floor_div, floor_mod
from kernelcast.features.addresses.ranges import range_of
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_MOST_RUNS = 4
"""Runs of ones, or single ones, beyond which a mask is given up: each adds a remainder."""


def combine_bits(operator: int, one: Expr, two: Expr, info: TypeInfo) -> Expr | None:
    """Apply `&`, `|` or `^`.

    Parameters
    ----------
    operator : int
        Which of the three.
    one, two : Expr
        The operands; at least one must be a number, or both must have no bit in common.
    info : TypeInfo
        Type in which C computes. A number of an unsigned type stands for all that differ by its
        range, so 0xfffffff0 is -16.

    Returns
    -------
    Expr or None
        None where the result is no expression of ours.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> n = Expr.symbol(Symbol(SymbolKind.SCALAR, "n"))
    >>> uint = TypeInfo(name="uint", type_class=TypeClass.UNSIGNED, bits=32, bytes=4)
    >>> print(combine_bits(kinds.BIT_AND, n, Expr.constant(0xFFFFFFF0), uint))
    n - (n mod 16)
    """
    if one.constant_value is not None:
        one, two = two, one
    number = two.constant_value
    if number is None:
        return _join(operator, one, two)
    number = _as_signed(number, info)
    if one.constant_value is not None:
        return Expr.constant(_fold(operator, _as_signed(one.constant_value, info), number))
    common = _mask(one, number)
    if common is None:
        return None
    if operator == kinds.BIT_AND:
        return common
    return one + number - (common if operator == kinds.BIT_OR else 2 * common)


def _as_signed(number: int, info: TypeInfo) -> int:
    is_high = info.type_class is TypeClass.UNSIGNED and info.bits and number >> (info.bits - 1) == 1
    return number - (1 << info.bits) if is_high else number


def _fold(operator: int, one: int, two: int) -> int:
    if operator == kinds.BIT_AND:
        return one & two
    return one | two if operator == kinds.BIT_OR else one ^ two


def _mask(expr: Expr, number: int) -> Expr | None:
    """Give the bits of an expression that a number selects, by its runs of ones."""
    if number < 0:
        rest = _mask(expr, ~number)
        return None if rest is None else expr - rest
    total = Expr.constant(0)
    for _ in range(_MOST_RUNS):
        if not number:
            return total
        low = number & -number
        high = (number + low) & ~number
        total = total + low * floor_mod(floor_div(expr, low), high // low)
        number &= ~(high - 1)
    return None if number else total


def _join(operator: int, one: Expr, two: Expr) -> Expr | None:
    """Join numbers whose bits do not overlap: `(x << 4) | (y & 15)`."""
    for high, low in ((one, two), (two, one)):
        least, most = range_of(low)
        if least is None or most is None or least < 0:
            continue
        width = 1 << most.bit_length()
        if all(factor % width == 0 for _, factor in high.products):
            return Expr.constant(0) if operator == kinds.BIT_AND else high + low
    return None
