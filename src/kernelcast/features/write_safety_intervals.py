"""Between which numbers an expression lies, for many slabs of an index space at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    Atom,
    Expr,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Select,
    Symbol,
    TruncDiv,
    TruncMod,
)

IntArray = npt.NDArray[np.int64]

_LARGEST = float(2**62)


class NoBoundError(Exception):
    """An expression has no known limits; never leaves `kernelcast.features`."""


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Least and greatest values, both inside.

    Parameters
    ----------
    low, high : ndarray of int64
        Of shapes that broadcast; the interval is empty where `low` exceeds `high`.
    """

    low: IntArray
    high: IntArray

    @classmethod
    def of(cls, low: int | IntArray, high: int | IntArray) -> "Interval":
        """Make an interval of numbers or arrays."""
        return cls(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64))

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        _check_product(self, other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(np.minimum.reduce(np.broadcast_arrays(*ends)),
                        np.maximum.reduce(np.broadcast_arrays(*ends)))  # fmt: skip

    def join(self, other: "Interval") -> "Interval":
        """Give the least interval that holds both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def constant(self) -> int | None:
        """The value, if there is only one."""
        low = int(self.low.min())
        return low if low == int(self.high.max()) == int(self.high.min()) else None


Ranges = Mapping[Symbol, Interval]


def bound(expr: Expr, ranges: Ranges) -> Interval:
    """Give limits of an expression's value.

    Parameters
    ----------
    expr : Expr
        The expression.
    ranges : mapping of Symbol to Interval
        Limits of its symbols, as if they were independent of each other.

    Returns
    -------
    Interval
        It holds every value, and perhaps more.

    Raises
    ------
    NoBoundError
        If a symbol has no limits or a part is not understood.

    Examples
    --------
    >>> from kernelcast.expressions import SymbolKind, floor_div
    >>> x = Symbol(SymbolKind.GLOBAL_ID)
    >>> found = bound(4 * Expr.symbol(x) - floor_div(x, 2), {x: Interval.of(0, np.array([9, 19]))})
    >>> found.low.tolist(), found.high.tolist()
    ([-4, -9], [36, 76])
    """
    total = Interval.of(0, 0)
    for monomial, coefficient in expr.products:
        product = Interval.of(coefficient, coefficient)
        for atom in monomial:
            product = product * _bound_atom(atom, ranges)
        total = total + product
    return total


def _check_product(one: Interval, other: Interval) -> None:
    most = [
        max(abs(float(side.low.min())), abs(float(side.high.max()))) if side.low.size else 0.0
        for side in (one, other)
    ]
    if most[0] * most[1] > _LARGEST:
        raise NoBoundError


def _bound_atom(atom: Atom, ranges: Ranges) -> Interval:
    if isinstance(atom, Symbol):
        found = ranges.get(atom)
        if found is None:
            raise NoBoundError
        return found
    handler = _Atoms.HANDLERS.get(type(atom))
    if handler is None:
        raise NoBoundError
    return handler(atom, ranges)


def _bound_extremum(atom: Minimum | Maximum, ranges: Ranges) -> Interval:
    one, other = bound(atom.left, ranges), bound(atom.right, ranges)
    choose = np.minimum if isinstance(atom, Minimum) else np.maximum
    return Interval(choose(one.low, other.low), choose(one.high, other.high))


def _bound_select(atom: Select, ranges: Ranges) -> Interval:
    return bound(atom.then, ranges).join(bound(atom.otherwise, ranges))


def _bound_quotient(atom: FloorDiv | TruncDiv, ranges: Ranges) -> Interval:
    divisor = _divisor_of(atom, ranges)
    inner = bound(atom.numerator, ranges)
    if isinstance(atom, FloorDiv):
        return Interval(inner.low // divisor, inner.high // divisor)
    low, high = (np.sign(end) * (np.abs(end) // divisor) for end in (inner.low, inner.high))
    return Interval(low, high)


def _bound_remainder(atom: FloorMod | TruncMod, ranges: Ranges) -> Interval:
    divisor = _divisor_of(atom, ranges)
    inner = bound(atom.numerator, ranges)
    is_within = inner.low // divisor == inner.high // divisor
    least = 0
    if isinstance(atom, TruncMod) and bool((inner.low < 0).any()):
        is_within, least = np.zeros_like(is_within), 1 - divisor
    return Interval(
        np.where(is_within, inner.low % divisor, least),
        np.where(is_within, inner.high % divisor, divisor - 1),
    )


def _divisor_of(atom: FloorDiv | TruncDiv | FloorMod | TruncMod, ranges: Ranges) -> int:
    divisor = bound(atom.denominator, ranges).constant
    if divisor is None or divisor <= 0:
        raise NoBoundError
    return divisor


class _Atoms:
    """Which function bounds which kind of atom."""

    HANDLERS: ClassVar[dict[type, Callable[..., Interval]]] = {
        Minimum: _bound_extremum,
        Maximum: _bound_extremum,
        Select: _bound_select,
        FloorDiv: _bound_quotient,
        TruncDiv: _bound_quotient,
        FloorMod: _bound_remainder,
        TruncMod: _bound_remainder,
    }
