"""Loads that compilers spare: of an address that was loaded before, or stays in a loop."""

from collections.abc import Sequence
from dataclasses import replace

from kernelcast.analytic.cpu.opencl.addresses import ABSENT, list_distinct
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, MemoryAccess

_KEPT_VALUES = 8
"""Values that a loop holds in registers instead of loading them in each iteration."""


def leave_out_repeated(patterns: Sequence[AccessPattern]) -> list[AccessPattern]:
    """Take off the loads of a work-item that find what it has loaded before.

    Only of buffers that nothing is stored to: else compilers must load again.
    """
    stored = {one.access.buffer for one in patterns if one.access.kind is not AccessKind.LOAD}
    found: dict[object, AccessPattern] = {}
    for one in patterns:
        if one.groups and one.access.buffer not in stored:
            found.setdefault(_identify(one.access), _hoist(one))
        else:
            found[id(one)] = one
    return [*found.values()]


def _identify(access: MemoryAccess) -> object:
    """Name what an access loads; loops of one line are the same, whoever calls their function."""
    assert access.offset_bytes is not None
    lines = {
        Symbol(SymbolKind.LOOP, one.name): Expr.symbol(Symbol(SymbolKind.LOOP, str(one.line)))
        for one in access.loops
    }
    loops = tuple((one.line, one.trip_count) for one in access.loops)
    return access.buffer, access.offset_bytes.substitute(lines), loops


def _hoist(pattern: AccessPattern) -> AccessPattern:
    """Count few values that come again and again in loops once."""
    row = next(iter(pattern.groups.values())).table[0]
    row = row[row != ABSENT]
    different = list_distinct(row).size if row.size else 0
    if not 0 < different <= _KEPT_VALUES:
        return pattern
    return replace(pattern, executions=pattern.executions * different / row.size)
