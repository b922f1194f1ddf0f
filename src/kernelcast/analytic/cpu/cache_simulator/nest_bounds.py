"""Bounds and addresses of a loop nest as rows of coefficients."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.analytic.cpu.cache_simulator.layout import IntArray
from kernelcast.analytic.cpu.cache_simulator.odometer import START, STEP, STOP
from kernelcast.records.errors import InputError
from kernelcast.records.loop_nest import LoopNest, NestLoop
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind


def bind_bounds(nest: LoopNest, scalars: Mapping[Symbol, int]) -> IntArray:
    """Write a nest's bounds as numbers.

    Parameters
    ----------
    nest : LoopNest
        Any.
    scalars : mapping of Symbol to int
        Values of its constants.

    Returns
    -------
    ndarray of shape (depth, 3, 1 + depth)
        See `odometer.rewind`.

    Raises
    ------
    InputError
        If there is no loop or no access, a constant has no value, or a bound is no sum of the
        variables of the loops around it.
    """
    if not nest.loops or not nest.accesses:
        msg = f"{nest.name}: {len(nest.loops)} loops, {len(nest.accesses)} accesses; give some"
        raise InputError(msg)
    _check_constants(nest, scalars)
    symbols = [Symbol(SymbolKind.LOOP, loop.name) for loop in nest.loops]
    bounds = np.zeros((len(nest.loops), 3, 1 + len(nest.loops)), dtype=np.int64)
    for at, loop in enumerate(nest.loops):
        for which, expression in ((START, loop.start), (STOP, loop.stop)):
            linear = read_linear(expression.substitute(scalars), symbols[:at])
            if linear is None:
                raise InputError(_explain(loop, expression))
            bounds[at, which, : 1 + at] = linear
        bounds[at, STEP, 0] = loop.step
    return bounds


def read_linear(expression: Expr, symbols: Sequence[Symbol]) -> list[int] | None:
    """Give the constant and the coefficient of each symbol; None if it is no sum of those."""
    found = expression.as_linear()
    if found is None or not set(found[0]) <= set(symbols):
        return None
    return [found[1], *(found[0].get(symbol, 0) for symbol in symbols)]


def find_ranges(bounds: IntArray) -> list[tuple[int, int]]:
    """Give the smallest and largest value that each loop's variable may have."""
    ranges: list[tuple[int, int]] = []
    for start, stop, step in bounds.tolist():
        towards = 1 if step[0] > 0 else -1
        ends = [*_span(start, ranges), *(end - towards for end in _span(stop, ranges))]
        ranges.append((min(ends), max(ends)))
    return ranges


def _span(row: Sequence[int], ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    low = high = row[0]
    for coefficient, (least, most) in zip(row[1:], ranges, strict=False):
        low += min(coefficient * least, coefficient * most)
        high += max(coefficient * least, coefficient * most)
    return low, high


def _check_constants(nest: LoopNest, scalars: Mapping[Symbol, int]) -> None:
    expressions = [
        *(one for loop in nest.loops for one in (loop.start, loop.stop)),
        *(access.offset_bytes for access in nest.accesses),
        *(size for array in nest.arrays for size in array.dimensions),
    ]
    symbols = frozenset().union(*(one.symbols() for one in expressions))
    missing = sorted(
        one.name for one in symbols if one.kind is SymbolKind.SCALAR and one not in scalars
    )
    if missing:
        given = " ".join(f"-D {name} 1000" for name in missing)
        msg = f"{nest.name}: no value for {', '.join(missing)}; give each one ({given})"
        raise InputError(msg)


def _explain(loop: NestLoop, expression: Expr) -> str:
    where = f"line {loop.line}: " if loop.line else ""
    return (
        f"{where}the bound {expression} of the loop over {loop.name} is no sum of constants and "
        "variables of the loops around it, which the simulator needs"
    )
