"""Bounds and addresses of a loop nest as rows of coefficients."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kernelcast.analytic.cpu.cache_simulator.layout import IntArray
from kernelcast.analytic.cpu.cache_simulator.odometer import START, STEP, STOP
from kernelcast.expressions import Expr, Maximum, Minimum, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestLoop
from kernelcast.records.errors import InputError


def bind_bounds(nest: LoopNest, scalars: Mapping[Symbol, int]) -> IntArray:
    """Write a nest's bounds as numbers.

    Returns
    -------
    ndarray of shape (depth, 3, alternatives, 1 + depth)
        See `odometer.rewind`.

    Raises
    ------
    InputError
        If there is no loop or no access, a constant has no value, or a bound is no sum of the
        variables of the loops around it: nor, where the loop stops, the least of such sums or,
        where it starts, the greatest.
    """
    if not nest.loops or not nest.accesses:
        msg = f"{nest.name}: {len(nest.loops)} loops, {len(nest.accesses)} accesses; give some"
        raise InputError(msg)
    symbols = [Symbol(SymbolKind.LOOP, loop.name) for loop in nest.loops]
    rows = [
        (at, which, _read_bound(loop, which, scalars, symbols[:at]))
        for at, loop in enumerate(nest.loops)
        for which in (START, STOP)
    ]
    depth, most = len(nest.loops), max(len(found) for _, _, found in rows)
    bounds = np.zeros((depth, 3, most, 1 + depth), dtype=np.int64)
    for at, which, found in rows:
        padded = [*found, *found[:1] * (most - len(found))]
        bounds[at, which, :, : 1 + at] = padded
    bounds[:, STEP, 0, 0] = [loop.step for loop in nest.loops]
    return bounds


def _read_bound(
    loop: NestLoop, which: int, scalars: Mapping[Symbol, int], around: Sequence[Symbol]
) -> list[list[int]]:
    """Read a bound as the sums of which the loop takes the least, or the greatest."""
    expression = loop.start if which == START else loop.stop
    extremum = Minimum if (which == STOP) == (loop.step > 0) else Maximum
    found = [read_linear(one, around) for one in _split(expression.substitute(scalars), extremum)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        raise InputError(_explain(loop, expression))
    return known


def _split(expression: Expr, extremum: type[Minimum] | type[Maximum]) -> Iterator[Expr]:
    """Give what an expression is the least or the greatest of."""
    atom = expression.sole_atom
    if isinstance(atom, extremum):
        yield from _split(atom.left, extremum)
        yield from _split(atom.right, extremum)
    else:
        yield expression


def read_linear(expression: Expr, symbols: Sequence[Symbol]) -> list[int] | None:
    """Give the constant and the coefficient of each symbol; None if it is no sum of those."""
    found = expression.as_linear()
    if found is None or not set(found[0]) <= set(symbols):
        return None
    return [found[1], *(found[0].get(symbol, 0) for symbol in symbols)]


def find_ranges(bounds: IntArray) -> list[tuple[int, int]]:
    """Give values that each loop's variable stays between."""
    ranges: list[tuple[int, int]] = []
    for starts, stops, step in bounds.tolist():
        towards = 1 if step[0][0] > 0 else -1
        ends = [end for row in starts for end in _span(row, ranges)]
        ends += [end - towards for row in stops for end in _span(row, ranges)]
        ranges.append((min(ends), max(ends)))
    return ranges


def _span(row: Sequence[int], ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    low = high = row[0]
    for coefficient, (least, most) in zip(row[1:], ranges, strict=False):
        low += min(coefficient * least, coefficient * most)
        high += max(coefficient * least, coefficient * most)
    return low, high


def _explain(loop: NestLoop, expression: Expr) -> str:
    where = f"line {loop.line}: " if loop.line else ""
    return (
        f"{where}the bound {expression} of the loop over {loop.name} is no sum of constants and "
        "variables of the loops around it, nor the least of some where it stops, which the "
        "simulator needs"
    )
