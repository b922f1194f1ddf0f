"""Builtin functions that give whole numbers: ids, sizes, minimum, conversions."""

import re
from collections.abc import Sequence

from kernelcast.features.addresses.arithmetic import combine
from kernelcast.features.addresses.values import Lanes, Opaque, Value, as_number, blur
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.types import TypeInfo
from kernelcast.records.conditions import less
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.quasi_affine import (
    Expr, Symbol, SymbolKind, maximum, minimum, select,
)  # fmt: skip

_IDS = {
    "get_global_id": (SymbolKind.GLOBAL_ID, 0), "get_local_id": (SymbolKind.LOCAL_ID, 0),
    "get_group_id": (SymbolKind.GROUP_ID, 0), "get_global_size": (SymbolKind.GLOBAL_SIZE, 1),
    "get_local_size": (SymbolKind.LOCAL_SIZE, 1),
    "get_enqueued_local_size": (SymbolKind.LOCAL_SIZE, 1),
    "get_num_groups": (SymbolKind.GROUP_COUNT, 1),
    "get_global_offset": (SymbolKind.GLOBAL_OFFSET, 0),
}  # fmt: skip
_KEPT = re.compile(r"convert_u?(char|short|int|long)\d*(_sat)?(_rt\w)?")
_PRODUCTS = frozenset(("mul24", "mad24", "mad", "fma"))


def call_builtin(name: str, arguments: Sequence[Value], info: TypeInfo) -> Value:
    """Evaluate a builtin function.

    Parameters
    ----------
    name : str
        Its name.
    arguments : sequence of Value
        Evaluated arguments.
    info : TypeInfo
        Type of the result.

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
        return _by_lanes(name, arguments, info)
    numbers = [as_number(argument) for argument in arguments]
    if _KEPT.fullmatch(name) and numbers:
        return numbers[0]
    if name == "select" and len(arguments) == 3:
        return blur(*arguments)
    known = [number for number in numbers if isinstance(number, Expr)]
    if len(known) < len(numbers):
        return blur(*arguments)
    return _calculate(name, known, info)


def _query(name: str, arguments: Sequence[Value]) -> Value:
    kind, beyond = _IDS[name]
    axis = arguments[0].constant_value if arguments and isinstance(arguments[0], Expr) else None
    if axis is None:
        return Opaque(reason=f"{name} of a dimension that is not constant")
    if not 0 <= axis < MAX_DIMENSIONS:
        return Expr.constant(beyond)
    return Expr.symbol(Symbol(kind, axis=axis))


def _linear_id(name: str) -> Expr:
    """Number work-items as OpenCL does: dimension 0 fastest (OpenCL C 6.13.1)."""
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


def _by_lanes(name: str, arguments: Sequence[Value], info: TypeInfo) -> Value:
    parts = []
    for lane in range(info.lanes):
        own = [
            one.lanes[lane] if isinstance(one, Lanes) and lane < len(one.lanes) else one
            for one in arguments
        ]
        parts.append(call_builtin(name, own, _scalar(info)))
    return Lanes(tuple(parts))


def _scalar(info: TypeInfo) -> TypeInfo:
    return TypeInfo(name=info.name, type_class=info.type_class, bits=info.bits,
                    bytes=info.bits // 8)  # fmt: skip


def _calculate(name: str, numbers: Sequence[Expr], info: TypeInfo) -> Value:
    if name in ("min", "max") and len(numbers) == 2:
        return (minimum if name == "min" else maximum)(*numbers)
    if name == "clamp" and len(numbers) == 3:
        return minimum(maximum(numbers[0], numbers[1]), numbers[2])
    if name == "abs" and len(numbers) == 1:
        return maximum(numbers[0], -numbers[0])
    if name == "abs_diff" and len(numbers) == 2:
        return maximum(numbers[0] - numbers[1], numbers[1] - numbers[0])
    if name in _PRODUCTS and len(numbers) in (2, 3):
        product = combine(kinds.MULTIPLY, numbers[0], numbers[1], info, is_known=False)
        return product if len(numbers) == 2 else combine(
            kinds.ADD, product, numbers[2], info, is_known=False
        )  # fmt: skip
    return Opaque(reason=f"{name}() is not followed")


def sign_select(value: Value, then: Value, otherwise: Value) -> Value:
    """Choose as vector `?:` does: by the sign of each lane (OpenCL C 6.3.9)."""
    number, one, two = as_number(value), as_number(then), as_number(otherwise)
    if isinstance(number, Expr) and isinstance(one, Expr) and isinstance(two, Expr):
        return select(less(number, 0), one, two)
    return blur(value, then, otherwise)


