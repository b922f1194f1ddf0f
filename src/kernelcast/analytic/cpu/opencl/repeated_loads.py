"""Loads that compilers spare: of an address that was loaded before, or stays in a loop."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import ABSENT, list_distinct
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, MemoryAccess

_KEPT_VALUES = 8
"""Values that written-out loops hold in registers instead of loading them again."""


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
    """Count once what a loop leaves as it is, and few values that written-out loops repeat."""
    row = next(iter(pattern.groups.values())).table[0]
    row = row[row != ABSENT]
    if not row.size:
        return pattern
    kept = 1 + int(np.count_nonzero(row[1:] != row[:-1]))
    different = list_distinct(row).size
    if different <= _KEPT_VALUES and _is_written_out(pattern.access):
        kept = different
    return replace(pattern, executions=pattern.executions * kept / row.size)


def _is_written_out(access: MemoryAccess) -> bool:
    """Tell whether the source says how often loops run that an address moves with."""
    assert access.offset_bytes is not None
    moving = {one.name for one in access.offset_bytes.symbols() if one.kind is SymbolKind.LOOP}
    return not any(
        one.trip_count is None or one.trip_count.symbols()
        for one in access.loops
        if one.name in moving
    )
