"""Boxes around accesses that are none: clamped or wrapped addresses, loops of varying length.

What a launch touches altogether is mostly the box itself: a clamp repeats addresses at the border,
a remainder starts again from the front, a triangle's rows lie side by side. Where a remainder
starts again and again, every work-group is taken to touch all that it leads to. Where a box reaches
beyond its buffer, the buffer's end is the bound.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from kernelcast.analytic.gpu.volumes.affine import BoxAccess, Grid, clip_guard, make_box
from kernelcast.analytic.gpu.volumes.unions import IntArray
from kernelcast.expressions import (
    EvaluationError,
    Expr,
    FloorMod,
    Maximum,
    Minimum,
    Select,
    Symbol,
    SymbolKind,
    TruncMod,
    Value,
)
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import MAX_DIMENSIONS

_MOST_TRIPS = 1 << 40
_LOOP_PLACES = 3
# A remainder that begins anew at a border alone, as that of a periodic stencil, leads to no window.
_WRAPS = 2

Remainder = FloorMod | TruncMod
Windows = dict[Remainder, tuple[Symbol, int]]
"""Stand-ins for remainders that start again and again, and how many numbers each runs through."""


def find_hull(
    access: MemoryAccess, launch: ModelledLaunch, bound: Mapping[Symbol, Expr | Symbol | int]
) -> BoxAccess | None:
    """Find a box of addresses around those of an access."""
    if access.offset_bytes is None:
        return None
    ids = _list_corners(Grid.of(launch.ndrange), launch.ndrange.global_offset)
    windows: Windows = {}
    straight = _straighten(access.offset_bytes.substitute(bound), ids, windows)
    linear = None if straight is None else straight.as_linear()
    clip = clip_guard(access.guard, launch.ndrange, bound, is_exact=False)
    if linear is None or clip is None:
        return None
    trips: list[int] = []
    for loop in access.loops:
        try:
            most = _count_most(loop, ids, bound)
        except EvaluationError:
            most = None
        if most is None:
            return None
        trips.append(most)
        ids = _add_loop(ids, loop, most)
    box = make_box(access, launch, linear, trips, clip)
    if box is None or not windows:
        return box
    added = tuple((linear[0].get(symbol, 0), length) for symbol, length in windows.values())
    return replace(box, loops=(*box.loops, *added))


def _straighten(expr: Expr, ids: Mapping[Symbol, Value], windows: Windows) -> Expr | None:
    """Leave out clamps, choices and remainders; None if something else is not affine."""
    total = Expr.constant(0)
    for monomial, coefficient in expr.terms:
        product_ = Expr.constant(coefficient)
        for atom in monomial:
            inner = Expr.symbol(atom) if isinstance(atom, Symbol) else None
            if isinstance(atom, Minimum | Maximum):
                inner = _choose(atom.left, atom.right, ids, windows)
            elif isinstance(atom, Select):
                inner = _choose(atom.then, atom.otherwise, ids, windows)
            elif isinstance(atom, FloorMod | TruncMod):
                inner = _unwind(atom, ids, windows)
            if inner is None:
                return None
            product_ = product_ * inner
        total = total + product_
    return total


def _unwind(atom: Remainder, ids: Mapping[Symbol, Value], windows: Windows) -> Expr | None:
    """Give what a remainder is of, or a stand-in for all its values where it starts often."""
    length = atom.denominator.constant_value
    try:
        numbers = np.asarray(atom.numerator.evaluate(ids))
    except EvaluationError:
        numbers = np.zeros(1)
    if length is None or numbers.min() < 0 or np.ptp(numbers) < _WRAPS * length:
        return _straighten(atom.numerator, ids, windows)
    new = Symbol(SymbolKind.LOOP, name=f"remainder {len(windows)}"), length
    symbol, _ = windows.setdefault(atom, new)
    return Expr.symbol(symbol)


def _choose(left: Expr, right: Expr, ids: Mapping[Symbol, Value], windows: Windows) -> Expr | None:
    """Take the alternative that moves; of two that move alike the one nearer to the origin."""
    first, second = (_straighten(one, ids, windows) for one in (left, right))
    if first is None or second is None:
        return None
    if first.is_parameter or second.is_parameter:
        return second if first.is_parameter else first
    if not (first - second).is_parameter:
        return None
    return min(first, second, key=lambda one: abs(one.constant_term))


def _list_corners(grid: Grid, offsets: tuple[int, ...]) -> dict[Symbol, Value]:
    """Give the ids of first, middle and last work-items, all combinations, as columns."""
    places = [
        sorted({0, min(1, size - 1), size // 2, max(0, size - 2), size - 1}) for size in grid.items
    ]
    table = np.array(list(product(*places)), dtype=np.int64)
    starts = (*offsets, 0, 0)
    found: dict[Symbol, Value] = {}
    for axis in range(MAX_DIMENSIONS):
        own: IntArray = table[:, axis]
        found |= {
            Symbol(SymbolKind.GLOBAL_ID, axis=axis): own + starts[axis],
            Symbol(SymbolKind.LOCAL_ID, axis=axis): own % grid.local[axis],
            Symbol(SymbolKind.GROUP_ID, axis=axis): own // grid.local[axis],
        }
    return found


def _count_most(
    loop: LoopFacts,
    ids: Mapping[Symbol, Value],
    bound: Mapping[Symbol, Expr | Symbol | int],
) -> int | None:
    """Count the most iterations of a loop that any of the work-items makes; None if endless."""
    if loop.trip_count is not None:
        return max(0, int(np.max(loop.trip_count.substitute(bound).evaluate(ids))))
    condition = loop.condition.substitute(bound)
    symbol = Symbol(SymbolKind.LOOP, loop.name)
    trips = 1
    while trips < _MOST_TRIPS and np.any(condition.evaluate({**ids, symbol: trips})):
        trips *= 2
    if trips >= _MOST_TRIPS:
        return None
    low, high = trips // 2, trips
    while high - low > 1:
        middle = (low + high) // 2
        if np.any(condition.evaluate({**ids, symbol: middle})):
            low = middle
        else:
            high = middle
    return high


def _add_loop(ids: Mapping[Symbol, Value], loop: LoopFacts, trips: int) -> dict[Symbol, Value]:
    """Combine what is known with first, middle and last iteration of a loop."""
    count = max(np.size(value) for value in ids.values())
    places = np.array([0, trips // 2, max(0, trips - 1)], dtype=np.int64)
    wide: dict[Symbol, Value] = {
        symbol: np.tile(np.broadcast_to(value, count), _LOOP_PLACES)
        for symbol, value in ids.items()
    }
    wide[Symbol(SymbolKind.LOOP, loop.name)] = np.repeat(places, count)
    return wide
