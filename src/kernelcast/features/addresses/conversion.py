"""Conversions between C's types, as far as they matter to addresses."""

from functools import lru_cache

from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_mod
from kernelcast.features.addresses.ranges import range_of
from kernelcast.features.addresses.values import (
    PLACES,
    Lanes,
    Opaque,
    Value,
    as_condition,
    as_number,
    blur,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_INT = TypeInfo(name="int", type_class=TypeClass.SIGNED, bits=32, bytes=4)
_NARROW_BITS = 16
_LARGEST_LOCAL_ID = (1 << 15) - 1


def convert(value: Value, before: TypeInfo, after: TypeInfo, *, is_explicit: bool) -> Value:
    """Convert a value.

    Parameters
    ----------
    before, after : TypeInfo
        Its type and the wanted one.
    is_explicit : bool
        Whether the source asks for it. Conversions to 8 or 16 bits cut higher bits off; only where
        the compiler converts to a signed type on its own, the number is taken to fit, as it is for
        wider types.

    Returns
    -------
    Value
        What passes through floating point is no longer followed.
    """
    if after.type_class is TypeClass.POINTER:
        is_null = isinstance(value, Expr) and value.is_zero
        is_place = is_null or isinstance(value, PLACES)
        return value if is_place else blur(value, reason="a pointer from data")
    if not after.is_integer:
        if not after.is_number:
            return value  # a structure, or nothing
        return blur(value, reason="computed in floating point")
    if before.type_class is TypeClass.FLOAT:
        return blur(value, reason="computed in floating point")
    if after.is_vector and not before.is_vector:
        return Lanes((narrow(value, after, is_explicit=is_explicit),) * after.lanes)
    if isinstance(value, Lanes):
        return Lanes(tuple(narrow(one, after, is_explicit=is_explicit) for one in value.lanes))
    return narrow(value, after, is_explicit=is_explicit)


def narrow(value: Value, after: TypeInfo, *, is_explicit: bool) -> Value:
    """Convert a number to a type of whole numbers."""
    if _is_truth(after.name):
        return as_condition(value)
    is_unsigned = after.type_class is TypeClass.UNSIGNED
    if after.bits > _NARROW_BITS or not (is_unsigned or is_explicit):
        return value
    number = as_number(value)
    if isinstance(number, Opaque):
        return value
    size = 1 << after.bits
    start = 0 if is_unsigned else -(size // 2)
    if _fits(number, start, start + size - 1):
        return value
    return floor_mod(number - start, size) + start


@lru_cache(maxsize=256)
def _is_truth(type_name: str) -> bool:
    return "bool" in type_name.lower()


def _fits(expr: Expr, least: int, most: int) -> bool:
    atom = expr.sole_atom
    if isinstance(atom, Symbol) and atom.kind is SymbolKind.LOCAL_ID:
        return most >= _LARGEST_LOCAL_ID
    low, high = range_of(expr)
    return low is not None and high is not None and least <= low and high <= most


def scale(value: Value, factor: int) -> Expr | Opaque:
    """Multiply a number."""
    number = as_number(value)
    return number * factor if isinstance(number, Expr) else number


def common_type(operator: int, left: TypeInfo, right: TypeInfo) -> TypeInfo:
    """Give the type in which C computes ``left operator= right`` (C99 6.3.1.8)."""
    if left.is_vector or not left.is_integer or not right.is_number or right.is_vector:
        return left
    if right.type_class is TypeClass.FLOAT:
        return right
    one, two = _promote(left), _promote(right)
    if operator in (kinds.SHIFT_LEFT, kinds.SHIFT_RIGHT) or one.bits > two.bits:
        return one
    if two.bits > one.bits or two.type_class is TypeClass.UNSIGNED:
        return two
    return one


def _promote(info: TypeInfo) -> TypeInfo:
    return _INT if info.bits < _INT.bits else info
