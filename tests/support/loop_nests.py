"""Loops of starts, ends and steps as nests count them."""

from collections.abc import Iterable

from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_div
from kernelcast.expressions.loop_nest import NestLoop


def count_loops(
    loops: Iterable[tuple[str, Expr, Expr, int]],
) -> tuple[tuple[NestLoop, ...], dict[Symbol, Expr]]:
    """Make loops of starts, ends and steps, and say what their variables are by iterations."""
    found, values = [], dict[Symbol, Expr]()
    for name, start, stop, step in loops:
        first, end = start.substitute(values), stop.substitute(values)
        gap = end - first if step > 0 else first - end
        trips = floor_div(gap + abs(step) - 1, abs(step))
        found.append(NestLoop(name=name, trips=trips, step=Expr.constant(step)))
        own = Symbol(SymbolKind.LOOP, name)
        values[own] = first + step * Expr.symbol(own)
    return tuple(found), values
