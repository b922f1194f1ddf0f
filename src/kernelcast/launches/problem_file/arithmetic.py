"""Arithmetic over numbers in problem files: + - * / // % ** and parentheses, and conditions."""

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

Number: TypeAlias = int | float

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
# Sizes beyond this are mistakes, and powers of them would fill the memory.
_LARGEST = 2**63
_LONGEST_TEXT = 1000


class ArithmeticProblem(ValueError):  # noqa: N818 - it is reported as part of a larger error
    """Is raised when a text is no arithmetic over numbers."""


def evaluate(text: str) -> Number:
    """Compute a text such as ``"4096 * (2 + 1)"``.

    Raises
    ------
    ArithmeticProblem
        If it is anything else, divides by zero or leaves the range of 64-bit integers.

    Examples
    --------
    >>> evaluate("4096 * (2 + 1) // 5")
    2457
    >>> evaluate("1e-3")
    0.001
    """
    return _evaluate(text, _compute)


def holds(text: str) -> bool:
    """Tell whether a condition such as ``"8 * 4 <= 64 and 64 % 8 == 0"`` holds.

    Comparisons of what `evaluate` takes, chained as in Python, with ``and``, ``or``, ``not``.

    Raises
    ------
    ArithmeticProblem
        If it is anything else, divides by zero or leaves the range of 64-bit integers.

    Examples
    --------
    >>> holds("16 <= 8 * 4 < 64 and not 64 % 8")
    True
    """
    return bool(_evaluate(text, _decide))


def _evaluate(text: str, compute: Callable[[ast.expr], Number]) -> Number:
    if len(text) > _LONGEST_TEXT:
        msg = f"longer than {_LONGEST_TEXT} characters"
        raise ArithmeticProblem(msg)
    if "\0" in text:  # a ValueError until Python 3.11.3, a SyntaxError since
        msg = "not a formula"
        raise ArithmeticProblem(msg)
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return compute(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        msg = "not a formula"
        raise ArithmeticProblem(msg) from error
    except ZeroDivisionError as error:
        msg = "division by zero"
        raise ArithmeticProblem(msg) from error
    except OverflowError as error:
        msg = "too large"
        raise ArithmeticProblem(msg) from error


def _decide(node: ast.expr) -> Number:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_decide(one) for one in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_decide(one) for one in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _decide(operand)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_compute(one) for one in (left, *others)]
            pairs = zip(ops, sides[:-1], sides[1:], strict=True)
            return all(_compare(op, one, other) for op, one, other in pairs)
    return _compute(node)


def _compare(op: ast.cmpop, one: Number, other: Number) -> bool:
    compare = _COMPARISONS.get(type(op))
    if compare is None:
        msg = "only < <= > >= == != compare numbers"
        raise ArithmeticProblem(msg)
    return compare(one, other)


def _compute(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return _check(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _compute(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _apply(type(op), _compute(left), _compute(right))
    msg = f"{ast.unparse(node)!r} is not allowed"
    raise ArithmeticProblem(msg)


def _apply(kind: type[ast.operator], left: Number, right: Number) -> Number:
    if kind is ast.Pow and (abs(right) > 64 or abs(left) > _LARGEST):
        msg = "power too large"
        raise ArithmeticProblem(msg)
    return _check(_OPERATORS[kind](left, right))


def _check(value: Number) -> Number:
    if isinstance(value, complex) or not abs(value) <= _LARGEST:
        msg = "out of the range of 64-bit numbers"
        raise ArithmeticProblem(msg)
    return value
