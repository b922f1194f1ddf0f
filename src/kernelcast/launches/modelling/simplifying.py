"""Brings addresses and guards into the form that says most: global ids, and bounds instead of !=.

What a kernel writes as ``group * 16 + local`` is a global id, and ``x != 0`` is ``x > 0`` where no
``x`` is less. Models treat ids and bounds exactly, other conditions by samples.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kernelcast.expressions import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Condition,
    Expr,
    Or,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
    less,
)
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.records.ndrange import NDRange

_MOST_BOXES = 8
_NEEDED = (SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID)


def simplify_accesses(
    accesses: Iterable[MemoryAccess], ndrange: NDRange, scalars: Mapping[str, int]
) -> tuple[MemoryAccess, ...]:
    """Write the accesses of a launch with global ids and bounds, where that says the same.

    An access behind "one of these borders" becomes one access per border, disjoint, if each then
    lies in a box of global ids; they keep the site they share.
    """
    found: list[MemoryAccess] = []
    for one in accesses:
        simple = simplify_access(one, ndrange, scalars)
        guards = _split(simple.guard, ndrange, scalars)
        found += [replace(simple, guard=guard) for guard in guards] if guards else [simple]
    return tuple(found)


def simplify_access(
    access: MemoryAccess, ndrange: NDRange, scalars: Mapping[str, int]
) -> MemoryAccess:
    """Write one access with global ids and bounds.

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


def _split(
    guard: Condition, ndrange: NDRange, scalars: Mapping[str, int]
) -> list[Condition] | None:
    """Divide a guard with one "or" into disjoint boxes; None if there are none to be had."""
    parts = guard.parts if isinstance(guard, And) else (guard,)
    choices = [one for one in parts if isinstance(one, Or)]
    if len(choices) != 1 or len(choices[0].parts) > _MOST_BOXES:
        return None
    rest = [one for one in parts if one is not choices[0]]
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in scalars.items()}
    boxes: list[Condition] = []
    for number, choice in enumerate(choices[0].parts):
        earlier = (one.negated() for one in choices[0].parts[:number])
        box = _use_bounds(conjunction(*rest, *earlier, choice), ndrange, scalars)
        if box == FALSE:
            continue
        if not all(
            _is_bound(one, values) for one in (box.parts if isinstance(box, And) else (box,))
        ):
            return None
        boxes.append(box)
    return boxes


def _is_bound(part: Condition, values: Mapping[Symbol, int]) -> bool:
    """Tell whether a condition cuts along one dimension."""
    if isinstance(part, Comparison) and part.relation is Relation.ZERO:
        part = Comparison(part.expr, Relation.NOT_NEGATIVE)
        return _read_bound(part, values) is not None
    found = _read_bound(part, values)
    return found is not None and found[1] != 0


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
