"""Builtin functions that give whole numbers: ids, sizes, minimum, conversions."""

import re
from collections.abc import Sequence

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    floor_div,
    less,
    maximum,
    minimum,
    select,
)  # fmt: skip
from kernelcast.features.addresses.arithmetic import Arithmetic
from kernelcast.features.addresses.conversion import narrow
from kernelcast.features.addresses.values import (
    Lanes,
    Opaque,
    Value,
    as_condition,
    as_number,
    blur,
    merge,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.ndrange import MAX_DIMENSIONS

_IDS = {
    "get_global_id": (SymbolKind.GLOBAL_ID, 0), "get_local_id": (SymbolKind.LOCAL_ID, 0),
    "get_group_id": (SymbolKind.GROUP_ID, 0), "get_global_size": (SymbolKind.GLOBAL_SIZE, 1),
    "get_local_size": (SymbolKind.LOCAL_SIZE, 1),
    "get_enqueued_local_size": (SymbolKind.LOCAL_SIZE, 1),
    "get_num_groups": (SymbolKind.GROUP_COUNT, 1),
    "get_global_offset": (SymbolKind.GLOBAL_OFFSET, 0),
}  # fmt: skip
_KEPT = re.compile(r"convert_u?(char|short|int|long)\d*(_sat)?(_rt\w)?")
_SATURATED_BITS = 32
_PRODUCTS = frozenset(("mul24", "mad24", "mad", "fma"))


def call_builtin(
    name: str, arguments: Sequence[Value], info: TypeInfo, arithmetic: Arithmetic
) -> Value:
    """Evaluate a builtin function.

    Returns
    -------
    Value
        `Opaque` where the result is no whole number that can be followed.
    """
    if name in _IDS:
        return _query(name, arguments)
    if name in ("get_local_linear_id", "get_global_linear_id"):
        return _linear_id(name)
    if not info.is_integer:
        return blur(*arguments, reason="a floating-point number")
    if any(isinstance(argument, Lanes) for argument in arguments):
        return _by_lanes(name, arguments, info, arithmetic)
    kept = _KEPT.fullmatch(name)
    if kept and arguments:
        return _convert(arguments[0], info, is_saturated=bool(kept[2]))
    if name == "select" and len(arguments) == 3:
        return merge(as_condition(arguments[2]), arguments[1], arguments[0])
    numbers = [as_number(argument) for argument in arguments]
    known = [number for number in numbers if isinstance(number, Expr)]
    if len(known) < len(numbers):
        return blur(*arguments)
    return _calculate(name, known, info, arithmetic)


def _convert(value: Value, info: TypeInfo, *, is_saturated: bool) -> Value:
    number = as_number(value)
    if not is_saturated or isinstance(number, Opaque):
        return narrow(value, info, is_explicit=True)
    is_signed = info.type_class is TypeClass.SIGNED
    size = 1 << info.bits
    if info.bits >= _SATURATED_BITS:
        return number
    low = -(size // 2) if is_signed else 0
    return minimum(maximum(number, low), low + size - 1)


def _query(name: str, arguments: Sequence[Value]) -> Value:
    kind, beyond = _IDS[name]
    axis = arguments[0].constant_value if arguments and isinstance(arguments[0], Expr) else None
    if axis is None:
        return Opaque(reason=f"{name} of a dimension that is not constant")
    if not 0 <= axis < MAX_DIMENSIONS:
        return Expr.constant(beyond)
    return Expr.symbol(Symbol(kind, axis=axis))


def _linear_id(name: str) -> Expr:
    """Give the number of a work-item, dimension 0 running fastest (OpenCL C 6.13.1)."""
    is_local = name == "get_local_linear_id"
    id_kind = SymbolKind.LOCAL_ID if is_local else SymbolKind.GLOBAL_ID
    size_kind = SymbolKind.LOCAL_SIZE if is_local else SymbolKind.GLOBAL_SIZE
    total = Expr.constant(0)
    for axis in reversed(range(MAX_DIMENSIONS)):
        own = Expr.symbol(Symbol(id_kind, axis=axis))
        if not is_local:
            own = own - Symbol(SymbolKind.GLOBAL_OFFSET, axis=axis)
        total = total * Symbol(size_kind, axis=axis) + own
    return total


def _by_lanes(
    name: str, arguments: Sequence[Value], info: TypeInfo, arithmetic: Arithmetic
) -> Value:
    parts = []
    for lane in range(info.lanes):
        own = [
            one.lanes[lane] if isinstance(one, Lanes) and lane < len(one.lanes) else one
            for one in arguments
        ]
        if name == "select" and len(own) == 3:
            parts.append(sign_select(own[2], own[1], own[0]))
        else:
            parts.append(call_builtin(name, own, _scalar(info), arithmetic))
    return Lanes(tuple(parts))


def _scalar(info: TypeInfo) -> TypeInfo:
    return TypeInfo(name=info.name, type_class=info.type_class, bits=info.bits,
                    bytes=info.bits // 8)  # fmt: skip


def _calculate(name: str, numbers: Sequence[Expr], info: TypeInfo, arithmetic: Arithmetic) -> Value:
    if name in ("min", "max") and len(numbers) == 2:
        return _extremum(name, numbers[0], numbers[1], info, arithmetic)
    if name == "clamp" and len(numbers) == 3:
        floor = _extremum("max", numbers[0], numbers[1], info, arithmetic)
        return _extremum("min", floor, numbers[2], info, arithmetic)
    if name == "abs" and len(numbers) == 1:
        is_known = arithmetic.is_non_negative(numbers[0])
        return numbers[0] if is_known else maximum(numbers[0], -numbers[0])
    if name == "abs_diff" and len(numbers) == 2:
        return maximum(numbers[0] - numbers[1], numbers[1] - numbers[0])
    if name == "hadd" and len(numbers) == 2:
        return floor_div(numbers[0] + numbers[1], 2)
    if name in _PRODUCTS and len(numbers) in (2, 3):
        product = arithmetic.combine(kinds.MULTIPLY, numbers[0], numbers[1], info)
        return product if len(numbers) == 2 else arithmetic.combine(
            kinds.ADD, product, numbers[2], info
        )  # fmt: skip
    return Opaque(reason=f"{name}() is not followed")


def _extremum(name: str, one: Expr, two: Expr, info: TypeInfo, arithmetic: Arithmetic) -> Expr:
    """Give the lesser or the greater, by the rules of their type."""
    is_plain = all(each.is_parameter or arithmetic.is_non_negative(each) for each in (one, two))
    if info.type_class is TypeClass.SIGNED or is_plain:
        return minimum(one, two) if name == "min" else maximum(one, two)
    is_less = arithmetic.compare(kinds.LESS, one, two, info)
    return select(is_less, one, two) if name == "min" else select(is_less, two, one)


def sign_select(value: Value, then: Value, otherwise: Value) -> Value:
    """Choose as vector `?:` does: by the sign of each lane (OpenCL C 6.3.9)."""
    if isinstance(value, Condition):
        return merge(value, then, otherwise)  # a comparison of vectors gives 0 or -1
    number = as_number(value)
    if isinstance(number, Expr):
        return merge(less(number, 0), then, otherwise)
    if isinstance(then, Lanes) and isinstance(otherwise, Lanes) and isinstance(value, Lanes):
        sides = zip(value.lanes, then.lanes, otherwise.lanes, strict=False)
        return Lanes(tuple(sign_select(*each) for each in sides))
    return blur(value, then, otherwise)
