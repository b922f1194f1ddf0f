"""Brings addresses and guards into the form that says most: global ids, and bounds instead of !=.

What a kernel writes as ``group * 16 + local`` is a global id, and ``x != 0`` is ``x > 0`` where no
``x`` is less. Models treat ids and bounds exactly, other conditions by samples.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from kernelcast.expressions import (
    And,
    Comparison,
    Condition,
    Expr,
    Or,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
)
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.point_sets import split_into_boxes
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
    boxes: dict[Condition, list[Condition]] = {}
    for one in accesses:
        offset = None if one.offset_bytes is None else _rewrite(one.offset_bytes, ndrange)
        if one.guard not in boxes:
            boxes[one.guard] = _split(_use_global_ids(one.guard, ndrange), ndrange, scalars)
        found += [replace(one, offset_bytes=offset, guard=box) for box in boxes[one.guard]]
    return tuple(found)


def _split(guard: Condition, ndrange: NDRange, scalars: Mapping[str, int]) -> list[Condition]:
    """Divide a guard with "or" or "!=" into disjoint boxes; it stays if there are none."""
    values = bind_names(scalars)
    ids = {
        Symbol(SymbolKind.GLOBAL_ID, axis=axis): range(offset, offset + size)
        for axis, (offset, size) in enumerate(
            zip(ndrange.global_offset, ndrange.global_size, strict=True)
        )
    }
    parts = guard.parts if isinstance(guard, And) else (guard,)
    known = {one: one.substitute(values) for one in parts}
    of_ids = [one for one in parts if known[one].is_exact and known[one].symbols() <= ids.keys()]
    if not any(map(_is_apart, of_ids)):
        return [guard]
    others = [one for one in parts if one not in of_ids]
    found = split_into_boxes(conjunction(*(known[one] for one in of_ids)), ids, _MOST_BOXES)
    return [conjunction(*others, box) for box in found] if found else [guard]


def _is_apart(part: Condition) -> bool:
    """Tell whether a condition may leave ids in several stretches."""
    return isinstance(part, Or) or (
        isinstance(part, Comparison) and part.relation is Relation.NOT_ZERO
    )


def _use_global_ids(guard: Condition, ndrange: NDRange) -> Condition:
    parts = guard.parts if isinstance(guard, And) else (guard,)
    found = (
        replace(one, expr=_rewrite(one.expr, ndrange)) if isinstance(one, Comparison) else one
        for one in parts
    )
    return conjunction(*found)


def _rewrite(expr: Expr, ndrange: NDRange) -> Expr:
    return _use_ids(expr, ndrange.known_local_size, ndrange.global_offset, ndrange.is_uniform)


@lru_cache(maxsize=1 << 12)
def _use_ids(
    expr: Expr,
    local_size: tuple[int, ...],
    offset: tuple[int, ...],
    is_uniform: bool,
) -> Expr:
    """Put global ids in the place of group and local ids that make them up."""
    for axis, size in enumerate(local_size):
        local, group = (Symbol(kind, axis=axis) for kind in _NEEDED)
        if not {local, group} <= expr.symbols():
            continue
        replaced: dict[Symbol, Expr | int] = {
            local: Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
            - offset[axis]
            - Expr.symbol(group) * size
        }
        if is_uniform:  # else the last work-group has another local size
            replaced[Symbol(SymbolKind.LOCAL_SIZE, axis=axis)] = size
        candidate = expr.substitute(replaced)
        if group not in candidate.symbols():
            expr = candidate
    return expr
