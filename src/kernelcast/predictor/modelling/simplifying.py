"""Brings addresses and guards into the form that says most: global ids, and bounds instead of !=.

What a kernel writes as ``group * 16 + local`` is a global id, and ``x != 0`` is ``x > 0`` where no
``x`` is less. Models treat ids and bounds exactly, other conditions by samples.
"""

from collections.abc import Mapping
from dataclasses import replace

from kernelcast.records.accesses import MemoryAccess
from kernelcast.records.conditions import (
    TRUE,
    And,
    Comparison,
    Condition,
    Relation,
    conjunction,
    less,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind

_NEEDED = (SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID)


def simplify_access(
    access: MemoryAccess, ndrange: NDRange, scalars: Mapping[str, int]
) -> MemoryAccess:
    """Write an access of a launch with global ids and bounds, where that says the same.

    Parameters
    ----------
    access : MemoryAccess
        The access.
    ndrange : NDRange
        The launch; its local size is chosen.
    scalars : mapping of str to int
        Values of scalar arguments.

    Returns
    -------
    MemoryAccess
        It touches the same addresses.
    """
    offset = access.offset_bytes
    guard = _use_global_ids(access.guard, ndrange)
    return replace(
        access,
        offset_bytes=None if offset is None else _rewrite(offset, ndrange),
        guard=_use_bounds(guard, ndrange, scalars),
    )


def _use_global_ids(guard: Condition, ndrange: NDRange) -> Condition:
    parts = guard.parts if isinstance(guard, And) else (guard,)
    found = (
        replace(one, expr=_rewrite(one.expr, ndrange)) if isinstance(one, Comparison) else one
        for one in parts
    )
    return conjunction(*found)


def _rewrite(expr: Expr, ndrange: NDRange) -> Expr:
    """Put global ids in the place of group and local ids that make them up."""
    for axis in range(ndrange.dimensions):
        local, group = (Symbol(kind, axis=axis) for kind in _NEEDED)
        if not {local, group} <= expr.symbols():
            continue
        size = ndrange.known_local_size[axis]
        replaced: dict[Symbol, Expr | int] = {
            local: Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
            - ndrange.global_offset[axis]
            - Expr.symbol(group) * size
        }
        if ndrange.is_uniform:  # else the last work-group has another local size
            replaced[Symbol(SymbolKind.LOCAL_SIZE, axis=axis)] = size
        candidate = expr.substitute(replaced)
        if group not in candidate.symbols():
            expr = candidate
    return expr


def _use_bounds(guard: Condition, ndrange: NDRange, scalars: Mapping[str, int]) -> Condition:
    """Replace ``id != value`` by a bound where the value is the least or the greatest id."""
    if not isinstance(guard, And):
        return guard
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in scalars.items()}
    known = {one: _read_bound(one, values) for one in guard.parts}
    ranges = {
        Symbol(SymbolKind.GLOBAL_ID, axis=axis): [offset, offset + size - 1]
        for axis, (offset, size) in enumerate(
            zip(ndrange.global_offset, ndrange.global_size, strict=True)
        )
    }
    for symbol, factor, value in (found for found in known.values() if found is not None):
        if factor and symbol in ranges:
            _tighten(ranges[symbol], factor, value)
    replaced: dict[Condition, Condition] = {}
    changed = True
    while changed:
        changed = False
        for part, found in known.items():
            if found is None or found[1] or part in replaced or found[0] not in ranges:
                continue
            bound = _exclude(ranges[found[0]], found[0], found[2])
            if bound is not None:
                replaced[part], changed = bound, True
    return conjunction(*(replaced.get(one, one) for one in guard.parts))


def _read_bound(part: Condition, values: Mapping[Symbol, int]) -> tuple[Symbol, int, int] | None:
    """Give id, sign and value of a bound; sign 0 for ``id != value``; None for anything else."""
    if not isinstance(part, Comparison) or part.relation is Relation.ZERO:
        return None
    linear = part.expr.substitute(values).as_linear()
    if linear is None or len(linear[0]) != 1:
        return None
    [(symbol, factor)] = linear[0].items()
    if symbol.kind is not SymbolKind.GLOBAL_ID or factor not in {1, -1}:
        return None
    value = -linear[1] * factor
    return symbol, 0 if part.relation is Relation.NOT_ZERO else factor, value


def _tighten(limits: list[int], factor: int, value: int) -> None:
    if factor > 0:
        limits[0] = max(limits[0], value)
    else:
        limits[1] = min(limits[1], value)


def _exclude(limits: list[int], symbol: Symbol, value: int) -> Condition | None:
    """Take a value from the end of a range; None if it lies inside."""
    if not limits[0] <= value <= limits[1]:
        return TRUE
    if value == limits[0]:
        limits[0] += 1
        return less(value, symbol)
    if value == limits[1]:
        limits[1] -= 1
        return less(symbol, value)
    return None
