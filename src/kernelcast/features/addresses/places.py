"""Arithmetic on pointers."""

from kernelcast.expressions import Expr, Unknown, trunc_div
from kernelcast.features.addresses.arithmetic import Arithmetic
from kernelcast.features.addresses.conversion import scale
from kernelcast.features.addresses.values import (
    PLACES,
    Choice,
    Opaque,
    Pointer,
    Value,
    as_number,
    blur,
    map_place,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_ADDRESS = TypeInfo(name="long", type_class=TypeClass.SIGNED, bits=64, bytes=8)


def move_place(place: Value, distance: Expr | Opaque) -> Value:
    """Move a pointer by so many bytes."""
    if isinstance(place, Pointer):
        return _move(place, distance)
    if isinstance(place, Choice):
        return map_place(place, lambda one: _move(one, distance))
    return blur(place, distance, reason="a pointer that is not followed")


def _move(one: Pointer, distance: Expr | Opaque) -> Pointer:
    if isinstance(one.offset, Expr) and isinstance(distance, Expr):
        return Pointer(one.memory, one.offset + distance)
    return Pointer(one.memory, blur(one.offset, distance))


def combine_places(
    operator: int, one: Value, two: Value, info: TypeInfo, arithmetic: Arithmetic
) -> Value:
    """Add a number of elements to a pointer, or compare or subtract pointers."""
    is_comparison = operator in kinds.COMPARISONS
    if isinstance(one, Pointer) and isinstance(two, Pointer) and one.memory == two.memory:
        if is_comparison:
            return arithmetic.combine(operator, one.offset, two.offset, _ADDRESS)
        return blur(one, two, reason="a difference of pointers")
    if is_comparison:
        return Unknown(())
    if not isinstance(one, PLACES):
        one, two = two, one
    if isinstance(two, PLACES) or operator not in (kinds.ADD, kinds.SUBTRACT):
        return blur(one, two, reason="a difference of pointers")
    size = info.target.bytes if info.target is not None else 1
    distance = scale(as_number(two), max(1, size))
    return move_place(one, scale(distance, -1) if operator == kinds.SUBTRACT else distance)


def subtract_places(one: Pointer, two: Pointer, size_bytes: int) -> Value:
    """Give by how many elements one place lies behind another."""
    is_same = one.memory == two.memory
    if is_same and isinstance(one.offset, Expr) and isinstance(two.offset, Expr) and size_bytes:
        return trunc_div(one.offset - two.offset, size_bytes)
    return blur(one, two, reason="a difference of pointers")
