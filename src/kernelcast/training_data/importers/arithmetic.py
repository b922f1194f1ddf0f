"""Evaluates the whole-number expressions of auto-tuners' files, and nothing else."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence

from kernelcast.records.errors import InputError

_LONGEST = 500
_LARGEST = 2**63
_LARGEST_EXPONENT = 63
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "int": int,
}  # fmt: skip
Names = Mapping[str, float | Sequence[float]]


def evaluate_size(text: str | float, names: Names) -> int:
    """Evaluate an expression to a positive whole number.

    Parameters
    ----------
    text : str or number
        Numbers, names, ``+ - * / // % **``, ``min``, ``max``, ``ceil``, ``floor`` and
        ``name[number]``.
    names : mapping of str to number or sequence of numbers
        Values of names.

    Examples
    --------
    >>> evaluate_size("ceil(n / (2 * x)) * size[0]", {"n": 10, "x": 2, "size": [4, 5]})
    12
    """
    try:
        tree = ast.parse(str(text)[: _LONGEST + 1], mode="eval")
        value = math.ceil(_evaluate(tree.body, names))
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, SyntaxError,
            RecursionError, MemoryError) as error:  # fmt: skip
        msg = f"size {text!r} cannot be evaluated: {error!r}"
        raise InputError(msg) from error
    if not 0 < value < _LARGEST:
        msg = f"size {text!r} is {value}; expected a positive whole number"
        raise InputError(msg)
    return value


def _evaluate(node: ast.expr, names: Names) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        return _number(names[node.id])
    if isinstance(node, ast.BinOp):
        return _combine(node, names)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        held = names[node.value.id]
        place = _evaluate(node.slice, names)
        return held[int(place)] if isinstance(held, Sequence) else _number(held)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _FUNCTIONS[node.func.id](*(_evaluate(one, names) for one in node.args))
    msg = f"{ast.dump(node)[:60]} is not allowed"
    raise ValueError(msg)


def _combine(node: ast.BinOp, names: Names) -> float:
    left, right = _evaluate(node.left, names), _evaluate(node.right, names)
    if isinstance(node.op, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
        msg = f"exponent {right} is too large"
        raise ValueError(msg)
    value = _BINARY[type(node.op)](left, right)
    if abs(value) > _LARGEST:  # or whole numbers would grow without limit
        msg = f"{value:.3g} is too large"
        raise ValueError(msg)
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        msg = f"{value!r} is no number"
        raise TypeError(msg)
    return value
