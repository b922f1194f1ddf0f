"""Arithmetic in files and options: + - * / // % ** and parentheses, names, and conditions."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from kernelcast.records.errors import InputError

Number: TypeAlias = int | float
Names: TypeAlias = Mapping[str, Number | Sequence[Number]]

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "int": int,
}  # fmt: skip
# Sizes beyond this are mistakes, and powers of them would fill the memory.
_LARGEST = 2**64
_LONGEST_TEXT = 1000


class ArithmeticProblem(ValueError):  # noqa: N818 - it is reported as part of a larger error
    """Is raised when a text is no arithmetic over numbers."""


def evaluate_size(text: str | Number, names: Names) -> int:
    """Compute a positive whole number, rounded up, as the files of auto-tuners tell sizes."""
    try:
        value = math.ceil(evaluate(str(text), names))
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        raise InputError(f"size {text!r} cannot be evaluated: {error}") from error
    if value < 1:
        raise InputError(f"size {text!r} is {value}; expected a positive whole number")
    return value


def holds(text: str, names: Names | None = None) -> bool:
    """Tell whether a condition holds: comparisons with ``and``, ``or``, ``not``, as in Python."""
    return bool(evaluate(text, names, is_condition=True))


def evaluate(text: str, names: Names | None = None, *, is_condition: bool = False) -> Number:
    """Compute a text such as ``"4096 * (2 + 1)"``."""
    if len(text) > _LONGEST_TEXT:
        raise ArithmeticProblem(f"longer than {_LONGEST_TEXT} characters")
    try:
        # Python 3.11 up to 3.11.3 raises a ValueError at a zero byte.
        tree = ast.parse(text.strip().replace("\0", "?"), mode="eval")
        return _compute(tree.body, names or {}, is_condition=is_condition)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ArithmeticProblem("not a formula") from error
    except ZeroDivisionError as error:
        raise ArithmeticProblem("division by zero") from error
    except OverflowError as error:
        raise ArithmeticProblem("too large") from error


def _compute(node: ast.expr, names: Names, *, is_condition: bool = False) -> Number:
    compute = partial(_compute, names=names)
    match node:
        case ast.BoolOp(op=op, values=values) if is_condition:
            decide = all if isinstance(op, ast.And) else any
            return decide(compute(value, is_condition=True) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if is_condition:
            return not compute(operand, is_condition=True)
        case ast.Compare(left=left, ops=ops, comparators=others) if is_condition:
            sides = [compute(one) for one in (left, *others)]
            if not all(type(op) in _COMPARISONS for op in ops):
                raise ArithmeticProblem("only < <= > >= == != compare numbers")
            pairs = zip(ops, sides[:-1], sides[1:], strict=True)
            return all(_COMPARISONS[type(op)](one, other) for op, one, other in pairs)
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return _check(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -compute(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return compute(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, other = compute(left), compute(right)
            if isinstance(op, ast.Pow) and (abs(other) > 64 or abs(one) > _LARGEST):
                raise ArithmeticProblem("power too large")
            return _check(_OPERATORS[type(op)](one, other))
        case ast.Subscript(value=ast.Name(id=name), slice=place) if name in names:
            held = names[name]
            return _check(held[int(compute(place))] if isinstance(held, Sequence) else held)
        case ast.Name(id=name) if isinstance(names.get(name), int | float):
            return _check(names[name])  # type: ignore[arg-type]  # a number
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if names:
            if name in _FUNCTIONS:
                return _check(_FUNCTIONS[name](*map(compute, args)))
    raise ArithmeticProblem(f"{ast.unparse(node)!r} is not allowed")


def _check(value: Number) -> Number:
    if not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise ArithmeticProblem("out of the range of 64-bit numbers")
    return value
