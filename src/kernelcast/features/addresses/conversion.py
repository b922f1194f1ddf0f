"""Conversions between C's types, as far as they matter to addresses."""

from kernelcast.features.addresses.arithmetic import mask
from kernelcast.features.addresses.values import Lanes, Opaque, Pointer, Value, as_number, blur
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.quasi_affine import Expr

_NARROW_BITS = 16


def convert(value: Value, before: TypeInfo, after: TypeInfo, *, is_explicit: bool) -> Value:
    """Convert a value.

    Parameters
    ----------
    value : Value
        The value.
    before, after : TypeInfo
        Its type and the wanted one.
    is_explicit : bool
        Whether the source asks for it. A cast to 8 or 16 unsigned bits cuts higher bits off; where
        the compiler converts on its own, the number is taken to fit.

    Returns
    -------
    Value
        What passes through floating point is no longer followed.
    """
    if after.type_class is TypeClass.POINTER:
        return value if isinstance(value, Pointer) else blur(value, reason="a pointer from data")
    if not after.is_integer:
        return blur(value, reason="computed in floating point")
    if before.type_class is TypeClass.FLOAT:
        return blur(value, reason="computed in floating point")
    if after.is_vector and not before.is_vector:
        return Lanes((as_number(value),) * after.lanes)
    if isinstance(value, Lanes):
        return value
    narrows = after.type_class is TypeClass.UNSIGNED and after.bits <= _NARROW_BITS
    if is_explicit and narrows and before.bits > after.bits and isinstance(value, Expr):
        return mask(value, after.bits)
    return value


def scale(value: Value, factor: int) -> Expr | Opaque:
    """Multiply a number."""
    number = as_number(value)
    return number * factor if isinstance(number, Expr) else number
