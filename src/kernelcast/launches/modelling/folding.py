"""Launches with other local sizes or with several updates per work-item: folded along an axis."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelcast.expressions import (
    TRUE,
    And,
    Comparison,
    Condition,
    Expr,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    less,
)
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    OperationCounts,
    add_weighted,
)

Folds = tuple[tuple[int, int], ...]
"""Axes, and how many updates each work-item computes along them."""
OF_WORK_GROUPS = frozenset({
    SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID, SymbolKind.LOCAL_SIZE, SymbolKind.GROUP_COUNT,
})  # fmt: skip
"""What an address may name that changes with the shape of work-groups."""
AXES = "xyz"


def parse_fold(text: str) -> tuple[int, int]:
    """Read a folding such as ``2z``: axis and number of updates."""
    times, axis = text[:-1], text[-1:]
    if not times.isascii() or not times.isdigit() or axis not in AXES or not axis:
        raise InputError(f"folding {text!r}: expected updates and axis, such as 2z")
    return AXES.index(axis), int(times)


def fold(launch: ModelledLaunch, axis: int, times: int) -> ModelledLaunch:
    """Let each work-item compute neighbouring updates, one after the other."""
    ndrange = launch.ndrange
    _check(launch, axis, times)
    if times == 1:
        return launch
    size = ndrange.global_size[axis]
    own, offset = Symbol(SymbolKind.GLOBAL_ID, axis=axis), ndrange.global_offset[axis]
    is_guarded = size % times > 0
    turns: list[list[MemoryAccess]] = []
    for turn in range(times):
        replaced = {
            own: times * Expr.symbol(own) + (turn - (times - 1) * offset),
            Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): Expr.constant(size),
        }
        inside = less(replaced[own], offset + size) if is_guarded and turn else None
        turns.append([_move(access, replaced, inside) for access in launch.accesses])
    # Each access has a site of its own.
    found = tuple(replace(one, site=site) for site, one in enumerate(_share(turns)))
    sizes = list(ndrange.global_size)
    sizes[axis] = -(-size // times)
    is_known = all(one.offset_bytes is not None for one in launch.accesses)
    note = f"folded {times}{AXES[axis]}: accesses that depend on data are left out of the volumes"
    # Loads that updates share count once.
    before, after = _count_kinds(launch.accesses), _count_kinds(found)
    executed = launch.executed
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=tuple(sizes)),
        accesses=found,
        executed=OperationCounts(
            operations={one: count * times for one, count in executed.operations.items()},
            memory={
                one: count * (after[one] / before[one] if before[one] else times)
                for one, count in executed.memory.items()
            },
        ),
        updates_per_work_item=launch.updates_per_work_item * times,
        recorded=None,
        problem=None,
        notes=launch.notes if is_known else (*launch.notes, note),
    )


def _check(launch: ModelledLaunch, axis: int, times: int) -> None:
    ndrange = launch.ndrange
    if not 0 <= axis < ndrange.dimensions:
        msg = f"folding along {AXES[axis]}: the index space has {ndrange.dimensions} dimensions"
        raise InputError(msg)
    most = min(64, ndrange.global_size[axis])
    if not 1 <= times <= most:
        raise InputError(f"folding {times}{AXES[axis]}: give 1 to {most} updates per work-item")
    if times == 1:
        return
    for access in launch.accesses:
        if access.space is MemorySpace.LOCAL:
            raise InputError(
                f"{access.text}: work-items that share local memory cannot be folded; model the "
                "folded kernel's own source"
            )
        used = access.guard.symbols().union(
            *(loop.condition.symbols() for loop in access.loops),
            () if access.offset_bytes is None else access.offset_bytes.symbols(),
        )
        named = next((s for s in used if s.kind in OF_WORK_GROUPS and s.axis == axis), None)
        if named is not None:
            raise InputError(
                f"{access.text}: names {named}, so that work-items cannot be folded along "
                f"{AXES[axis]}; write it with get_global_id only, or fold along another axis"
            )


def _move(
    access: MemoryAccess, replaced: Mapping[Symbol, Expr], inside: Condition | None
) -> MemoryAccess:
    offset = access.offset_bytes
    guard = access.guard.substitute(replaced)
    return replace(
        access,
        offset_bytes=None if offset is None else offset.substitute(replaced),
        guard=guard if inside is None else conjunction(inside, guard),
        loops=tuple(
            replace(
                loop,
                condition=loop.condition.substitute(replaced),
                trip_count=loop.trip_count and loop.trip_count.substitute(replaced),
            )
            for loop in access.loops
        ),
    )


def _share(turns: Sequence[Sequence[MemoryAccess]]) -> list[MemoryAccess]:
    """Keep one of the accesses by which several turns load the same address."""
    kept: dict[tuple[object, ...], MemoryAccess] = {}
    for turn, accesses in enumerate(turns):
        seen: Counter[tuple[object, ...]] = Counter()
        for access in accesses:
            key: tuple[object, ...] = (access.site, turn)
            if access.offset_bytes is not None and access.kind is not AccessKind.ATOMIC:
                key = access.kind, access.buffer, access.bytes, access.offset_bytes, access.loops
            seen[key] += 1  # what one update loads twice, it loads twice folded as well
            key = (*key, seen[key])
            first = kept.get(key)
            if first is not None:
                access = replace(first, guard=_weaken(first.guard, access.guard))
            kept[key] = access
    return list(kept.values())


def _weaken(one: Condition, other: Condition) -> Condition:
    """Find a condition that holds where one of two neighbouring updates is computed."""
    # Bounds that differ by a constant become the weaker bound: the updates of a work-item are
    # neighbours, so that what lies between a lower and an upper bound has no gaps.
    bounds, others = (each.parts if isinstance(each, And) else (each,) for each in (one, other))
    weaker: list[Condition] = []
    for bound, beside in zip(bounds, others, strict=False):
        if bound == beside or TRUE in {bound, beside}:
            weaker.append(bound if bound == beside else TRUE)
        elif (
            isinstance(bound, Comparison)
            and isinstance(beside, Comparison)
            and {bound.relation, beside.relation} == {Relation.NOT_NEGATIVE}
            and (gap := (bound.expr - beside.expr).constant_value) is not None
        ):
            weaker.append(bound if gap > 0 else beside)
    if len(weaker) == len(bounds) == len(others):
        return conjunction(*weaker)
    return disjunction(one, other)


def _count_kinds(accesses: tuple[MemoryAccess, ...]) -> Counter[MemoryOperation]:
    return Counter(
        MemoryOperation(space=one.space, is_store=one.kind is AccessKind.STORE, bytes=one.bytes)
        for one in accesses
        if one.kind is not AccessKind.ATOMIC
    )


def pad(launch: ModelledLaunch, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Enlarge the index space to at least one work-group; what is added does nothing."""
    ndrange = launch.ndrange
    sizes = tuple(max(pair) for pair in zip(ndrange.global_size, local_size, strict=True))
    guard = conjunction(
        *(
            less(Symbol(SymbolKind.GLOBAL_ID, axis=axis), offset + size)
            for axis, (offset, size, enlarged) in enumerate(
                zip(ndrange.global_offset, ndrange.global_size, sizes, strict=True)
            )
            if enlarged > size
        )
    )
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=sizes, local_size=local_size),
        accesses=tuple(
            replace(one, guard=conjunction(guard, one.guard)) for one in launch.accesses
        ),
        executed=add_weighted([(launch.executed, ndrange.work_item_count / math.prod(sizes))]),
    )
