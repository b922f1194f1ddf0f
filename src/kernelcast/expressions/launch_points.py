"""The points at which a launch touches memory: work-items and iterations, by slabs if wanted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import islpy

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.composites import minimum
from kernelcast.expressions.conditions import TRUE, Condition, less, less_equal
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.isl import NotKnownError
from kernelcast.expressions.point_sets import PointSet
from kernelcast.expressions.polynomials import Expr, Operand
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.balance import SlabSpace
from kernelcast.records.ndrange import NDRange

SLAB: Final = Symbol(SymbolKind.LOOP, "slab of the index space")
"""Stands for the number of a slab."""
_PARTS: Final = {SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.LOCAL_SIZE}
_IDS: Final = (SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.GLOBAL_ID)


@dataclass(frozen=True, slots=True)
class PlacedAccesses:
    """Accesses that differ by a number of bytes only, and the points that do them."""

    points: PointSet
    """Work-items and iterations."""
    symbols: tuple[Symbol, ...]
    """The points' coordinates: `SLAB` if there are slabs, ids of the slowest dimension first, and
    loops."""
    offset_bytes: Expr
    """What the accesses' offsets have in common, over these symbols: the quasi-affine part."""
    curved_bytes: Expr
    """The other part, to be added: products of ids, powers."""
    members: tuple[tuple[int, MemoryAccess], ...]
    """What is to be added for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPoints:
    """The index space of a launch as conditions on ids."""

    ndrange: NDRange
    """The index space; its local size is chosen."""
    scalars: Mapping[str, int]
    slabs: SlabSpace | None = None
    """Into which it is cut."""

    def place(
        self, accesses: Iterable[MemoryAccess], context: islpy.Context, *, is_exact: bool
    ) -> Iterator[PlacedAccesses]:
        """Place accesses: only those of known points if exact, else unknown guards count as met."""
        for (offset, reach), members in self._group(accesses, is_exact=is_exact).items():
            try:
                used = offset.symbols() | reach.symbols()
                if is_exact and not all(one.kind in _IDS or one in reach.loops for one in used):
                    raise NotKnownError
                ids = {one for one in used if one.kind in _IDS}
                others = sorted(used - ids, key=lambda one: one.sort_key)
                for one in [one for one in ids if one.kind is not SymbolKind.GLOBAL_ID]:
                    ids |= {Symbol(kind, axis=one.axis) for kind in _IDS[:2]}
                slabs = self.slabs
                if slabs is not None and not any(one.axis == slabs.axis for one in ids):
                    ids.add(Symbol(SymbolKind.GLOBAL_ID, axis=slabs.axis))
                ordered = sorted(ids, key=lambda one: (-one.axis, _IDS.index(one.kind)))
                symbols = (*([SLAB] if slabs is not None else []), *ordered, *others)
                limits = self._limit(symbols, reach)
                points = PointSet(symbols, limits, context, approximates=not is_exact)
                curved = Expr({
                    monomial: factor
                    for monomial, factor in offset.products
                    if not (len(monomial) == 1 and isinstance(monomial[0], Symbol))
                    and not points.takes(Expr({monomial: factor}))
                })  # fmt: skip
                yield PlacedAccesses(points, symbols, offset - curved, curved, tuple(members))
            except NotKnownError:
                if not is_exact:
                    raise

    def _group(
        self, accesses: Iterable[MemoryAccess], *, is_exact: bool
    ) -> dict[tuple[Expr, "_Reach"], list[tuple[int, MemoryAccess]]]:
        """Put accesses together that differ by a number only, with these numbers."""
        groups: dict[tuple[Expr, _Reach], list[tuple[int, MemoryAccess]]] = {}
        reaches: dict[object, _Reach | None] = {}
        for access in accesses:
            parts = (access.offset_bytes, access.guard, *(one.trip_count for one in access.loops))
            symbols = frozenset[Symbol]().union(
                *(one.symbols() for one in parts if one is not None)
            )
            split = frozenset(one.axis for one in symbols if one.kind in _PARTS)
            key = (access.guard, access.loops, split)
            if key not in reaches:
                reaches[key] = self._find_reach(access, split, is_exact=is_exact)
            reach = reaches[key]
            if access.offset_bytes is not None and reach is not None:
                offset = access.offset_bytes.substitute(reach.replacements)
                shift = offset.constant_term
                groups.setdefault((offset - shift, reach), []).append((shift, access))
            elif not is_exact:
                raise NotKnownError
        return groups

    def find_global_id(self, point: Mapping[Symbol, int]) -> tuple[int, ...]:
        """Give a work-item's global id, the least in dimensions that the point does not name."""
        found = []
        for axis in range(self.ndrange.dimensions):
            offset = self.ndrange.global_offset[axis]
            group, local, whole = (Symbol(kind, axis=axis) for kind in _IDS)
            start = point.get(group, 0) * self.ndrange.known_local_size[axis]
            found.append(point.get(whole, offset + start + point.get(local, 0)))
        return tuple(found)

    def find_slab(self, symbol: Symbol, value: IntArray) -> IntArray:
        """Give the numbers of the slabs to which group ids or global ids belong."""
        assert self.slabs is not None
        axis = list_axes(self.ndrange)[symbol.axis]
        if symbol.kind is SymbolKind.GROUP_ID:
            return value // self.slabs.thickness
        return (value - axis.offset) // (self.slabs.thickness * axis.local)

    def _find_reach(
        self, access: MemoryAccess, split: frozenset[int], *, is_exact: bool
    ) -> "_Reach | None":
        """Say which points reach an access; None if that is not known as exactly as it must be."""
        small = {name: value for name, value in self.scalars.items() if abs(value) < 2**62}
        replaced: dict[Symbol, Operand] = {**bind_names(small)}
        for axis in list_axes(self.ndrange):
            group_id, local_id, global_id = (Symbol(kind, axis=axis.number) for kind in _IDS)
            start = Expr.symbol(group_id) * axis.local
            is_even = axis.items % axis.local == 0
            replaced |= axis.bind_sizes(
                axis.local if is_even else minimum(axis.local, axis.items - start)
            )
            if axis.number in split:
                replaced[global_id] = start + local_id + axis.offset
        conditions = [access.guard.substitute(replaced)]
        loops = [Symbol(SymbolKind.LOOP, one.name) for one in access.loops]
        for symbol, loop in zip(loops, access.loops, strict=True):
            conditions.append(less_equal(0, symbol))
            if loop.trip_count is not None:
                conditions.append(less(symbol, loop.trip_count.substitute(replaced)))
            elif is_exact:
                return None
        return _Reach(replaced, tuple(one for one in conditions if one != TRUE), frozenset(loops))

    def _limit(self, symbols: Sequence[Symbol], reach: "_Reach") -> Iterator[Condition]:
        axes = list_axes(self.ndrange)
        for symbol in symbols:
            if symbol.kind not in _IDS:
                continue
            axis = axes[symbol.axis]
            first, count, unit = {
                SymbolKind.GROUP_ID: (0, axis.groups, 1),
                SymbolKind.LOCAL_ID: (0, axis.local, 0),
                SymbolKind.GLOBAL_ID: (axis.offset, axis.items, axis.local),
            }[symbol.kind]
            yield from (less_equal(first, symbol), less(symbol, first + count))
            if symbol.kind is SymbolKind.GROUP_ID and axis.items % axis.local:
                local_id = Symbol(SymbolKind.LOCAL_ID, axis=symbol.axis)
                yield less(axis.local * Expr.symbol(symbol) + local_id, axis.items)
            if unit and self.slabs is not None and self.slabs.axis == symbol.axis:
                width = self.slabs.thickness * unit
                start = first + width * Expr.symbol(SLAB)
                yield from (less_equal(start, symbol), less(symbol, start + width))
        if self.slabs is not None:
            yield from (less_equal(0, SLAB), less(SLAB, self.slabs.count))
        # Last: half of what "or" and "!=" leave lies outside of the limits and is dropped at once.
        yield from reach.conditions


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """Which points reach some accesses, and what stands for the symbols of their expressions."""

    replacements: Mapping[Symbol, Operand]
    conditions: tuple[Condition, ...]
    loops: frozenset[Symbol]

    def symbols(self) -> frozenset[Symbol]:
        return frozenset().union(*(one.symbols() for one in self.conditions))
