"""Values of symbols, as plain integers or arrays, and the arithmetic of C on them."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.expressions.symbols import Symbol
from kernelcast.records.errors import InputError

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Value: TypeAlias = int | IntArray
Truth: TypeAlias = bool | BoolArray
Bindings: TypeAlias = Mapping[Symbol, Value]


class EvaluationError(InputError, ValueError):
    """Is raised when an expression has no value for the values given to its symbols."""


class Evaluable(Protocol):
    """What has symbols and a value."""

    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols on which the value depends."""

    def evaluate(self, bindings: Bindings, /) -> Value | Truth:
        """Give the value."""


def look_up(bindings: Bindings, symbol: Symbol) -> Value:
    """Give a symbol's value, as int or as array of int64."""
    value = bindings.get(symbol)
    if type(value) is int:
        return value
    if value is None:
        given = ", ".join(sorted(str(one) for one in bindings)) or "none"
        raise EvaluationError(f"{symbol} has no value; values were given for: {given}")
    array = np.asarray(value)
    if array.dtype.kind not in "iub":
        raise EvaluationError(f"{symbol} is {value!r}; give a whole number or an array of them")
    return array.astype(np.int64, copy=False) if array.ndim else int(array)


def divide_floor(numerator: Value, denominator: Value) -> Value:
    """Divide, rounding down."""
    if np.any(denominator == 0) if isinstance(denominator, np.ndarray) else denominator == 0:
        raise EvaluationError("division by zero; give values for which no denominator is zero")
    return cast("Value", numerator // denominator)


def divide_trunc(numerator: Value, denominator: Value) -> Value:
    """Divide as C does, rounding towards zero."""
    quotient = divide_floor(numerator, denominator)
    inexact = quotient * denominator != numerator
    # The floor lies one too low where the exact quotient is negative and no whole number.
    return cast("Value", quotient + (inexact & ((numerator < 0) != (denominator < 0))))


def evaluate_where(part: Evaluable, mask: BoolArray, bindings: Bindings) -> Value | Truth:
    """Evaluate an arm of a choice where a mask is True; elsewhere it need have no value."""
    try:
        return part.evaluate(bindings)
    except EvaluationError:
        values = {symbol: look_up(bindings, symbol) for symbol in part.symbols()}
    shape = np.broadcast_shapes(
        mask.shape, *(value.shape for value in values.values() if isinstance(value, np.ndarray))
    )
    where = np.broadcast_to(mask, shape)
    filled = np.zeros(shape, dtype=np.int64)
    if where.any():
        filled[where] = part.evaluate(
            {
                symbol: np.broadcast_to(value, shape)[where]
                if isinstance(value, np.ndarray)
                else value
                for symbol, value in values.items()
            }
        )
    return filled
