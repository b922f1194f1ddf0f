"""The points at which a launch touches memory: work-items and iterations, by slabs if wanted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import islpy

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.choices import minimum
from kernelcast.expressions.comparisons import less, less_equal
from kernelcast.expressions.conditions import TRUE, Condition
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.isl import NotKnownError
from kernelcast.expressions.point_sets import PointSet
from kernelcast.expressions.polynomials import Expr, Operand
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.records.balance import SlabSpace
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange

SLAB: Final = Symbol(SymbolKind.LOOP, "slab of the index space")
"""Stands for the number of a slab."""
_PARTS: Final = {SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.LOCAL_SIZE}
_IDS: Final = (SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.GLOBAL_ID)
_LARGEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class PlacedAccesses:
    """Accesses that differ by a number of bytes only, and the points that do them.

    Parameters
    ----------
    points : PointSet
        Work-items and iterations.
    symbols : tuple of Symbol
        The points' coordinates: `SLAB` if there are slabs, ids of the slowest dimension first,
        and loops.
    offset_bytes : Expr
        What the accesses' offsets have in common, over these symbols: the quasi-affine part.
    curved_bytes : Expr
        The other part, to be added: products of ids, powers.
    members : tuple of (int, MemoryAccess)
        What is to be added for each.
    """

    points: PointSet
    symbols: tuple[Symbol, ...]
    offset_bytes: Expr
    curved_bytes: Expr
    members: tuple[tuple[int, MemoryAccess], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPoints:
    """The index space of a launch as conditions on ids.

    Parameters
    ----------
    ndrange : NDRange
        The index space; its local size is chosen.
    scalars : mapping of str to int
        Values of scalar arguments.
    slabs : SlabSpace, optional
        Into which it is cut.
    """

    ndrange: NDRange
    scalars: Mapping[str, int]
    slabs: SlabSpace | None = None

    def place(
        self, accesses: Iterable[MemoryAccess], context: islpy.Context, *, is_exact: bool
    ) -> Iterator[PlacedAccesses]:
        """Place accesses, those together that differ by a number of bytes only.

        Parameters
        ----------
        accesses : iterable of MemoryAccess
            The accesses.
        context : islpy.Context
            Of `make_context`.
        is_exact : bool
            Whether accesses are left out of which it is not known exactly which points do them.
            Otherwise conditions that are not understood count as met.

        Raises
        ------
        NotKnownError
            If an offset is not known or isl gave up, unless `is_exact`.
        """
        groups: dict[tuple[Expr, _Reach], list[tuple[int, MemoryAccess]]] = {}
        reaches: dict[object, _Reach | None] = {}
        for access in accesses:
            split = _find_split_axes(access)
            key = (access.guard, access.loops, split)
            if key not in reaches:
                reaches[key] = self._find_reach(access, split, is_exact=is_exact)
            reach = reaches[key]
            if access.offset_bytes is None or reach is None:
                if is_exact:
                    continue
                raise NotKnownError
            offset = access.offset_bytes.substitute(reach.replacements)
            shift = offset.constant_term
            groups.setdefault((offset - shift, reach), []).append((shift, access))
        for (offset, reach), members in groups.items():
            symbols = self._order(offset.symbols() | reach.symbols())
            try:
                points = PointSet(
                    symbols, self._limit(symbols, reach), context, approximates=not is_exact
                )
            except NotKnownError:
                if not is_exact:
                    raise
                continue
            curved = Expr({
                monomial: factor
                for monomial, factor in offset.products
                if not all(isinstance(one, Symbol) for one in monomial) or len(monomial) > 1
                if not points.takes(Expr({monomial: factor}))
            })  # fmt: skip
            yield PlacedAccesses(points, symbols, offset - curved, curved, tuple(members))

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
        _, local, _, offset = self._sizes(symbol.axis)
        if symbol.kind is SymbolKind.GROUP_ID:
            return value // self.slabs.thickness
        return (value - offset) // (self.slabs.thickness * local)

    def _find_reach(
        self, access: MemoryAccess, split: frozenset[int], *, is_exact: bool
    ) -> "_Reach | None":
        """Say which points reach an access; None if that is not known as exactly as it must be."""
        replaced = self._replace(split)
        conditions = [access.guard.substitute(replaced)]
        for loop in access.loops:
            symbol = Symbol(SymbolKind.LOOP, loop.name)
            conditions.append(less_equal(0, symbol))
            if loop.trip_count is not None:
                conditions.append(less(symbol, loop.trip_count.substitute(replaced)))
            elif is_exact:
                return None
        return _Reach(replaced, tuple(one for one in conditions if one != TRUE))

    def _replace(self, split: frozenset[int]) -> dict[Symbol, Operand]:
        """Give sizes and scalars their values, and global ids of split dimensions their parts."""
        found: dict[Symbol, Operand] = {
            Symbol(SymbolKind.SCALAR, name): value
            for name, value in self.scalars.items()
            if abs(value) < _LARGEST
        }
        for axis in range(MAX_DIMENSIONS):
            size, local, groups, offset = self._sizes(axis)
            group_id, local_id, global_id = (Symbol(kind, axis=axis) for kind in _IDS)
            start = Expr.symbol(group_id) * local
            found |= {
                Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): size,
                Symbol(SymbolKind.GROUP_COUNT, axis=axis): groups,
                Symbol(SymbolKind.GLOBAL_OFFSET, axis=axis): offset,
                Symbol(SymbolKind.LOCAL_SIZE, axis=axis): (
                    minimum(local, size - start) if size % local else local
                ),
            }
            if axis in split:
                found[global_id] = start + local_id + offset
        return found

    def _sizes(self, axis: int) -> tuple[int, int, int, int]:
        """Give a dimension's global size, local size, work-groups and offset."""
        one = self.ndrange
        if axis >= one.dimensions:
            return 1, 1, 1, 0
        local = one.known_local_size[axis]
        return one.global_size[axis], local, one.group_counts[axis], one.global_offset[axis]

    def _order(self, symbols: frozenset[Symbol]) -> tuple[Symbol, ...]:
        """Order coordinates: slabs, ids of the slowest dimension first, loops."""
        ids = {
            one
            for symbol in symbols
            if symbol.kind in _IDS
            for one in (
                [symbol]
                if symbol.kind is SymbolKind.GLOBAL_ID
                else [Symbol(kind, axis=symbol.axis) for kind in _IDS[:2]]
            )
        }
        others = sorted(symbols - ids, key=lambda one: one.sort_key)
        if self.slabs is not None:
            axis = self.slabs.axis
            if not any(one.axis == axis for one in ids):
                ids.add(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
        ordered = sorted(ids, key=lambda one: (-one.axis, _IDS.index(one.kind)))
        return (*([SLAB] if self.slabs is not None else []), *ordered, *others)

    def _limit(self, symbols: Sequence[Symbol], reach: "_Reach") -> Iterator[Condition]:
        """Give the conditions on coordinates."""
        for symbol in symbols:
            if symbol.kind not in _IDS:
                continue
            size, local, groups, offset = self._sizes(symbol.axis)
            unit, first = local, offset
            if symbol.kind is SymbolKind.GROUP_ID:
                size, unit, first = groups, 1, 0
                if self._sizes(symbol.axis)[0] % local:
                    item = local * Expr.symbol(symbol) + Symbol(
                        SymbolKind.LOCAL_ID, axis=symbol.axis
                    )
                    yield less(item, self._sizes(symbol.axis)[0])
            elif symbol.kind is SymbolKind.LOCAL_ID:
                size, first = local, 0
            yield from (less_equal(first, symbol), less(symbol, first + size))
            slabs = self.slabs
            if slabs and slabs.axis == symbol.axis and symbol.kind is not SymbolKind.LOCAL_ID:
                start = first + slabs.thickness * unit * Expr.symbol(SLAB)
                yield from (less_equal(start, symbol),
                            less(symbol, start + slabs.thickness * unit))  # fmt: skip
        if self.slabs is not None:
            yield from (less_equal(0, SLAB), less(SLAB, self.slabs.count))
        # Last: half of what "or" and "!=" leave lies outside of the limits and is dropped at once.
        yield from reach.conditions


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """Which points reach some accesses, and what stands for the symbols of their expressions."""

    replacements: Mapping[Symbol, Operand]
    conditions: tuple[Condition, ...]

    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols of the conditions."""
        return frozenset().union(*(one.symbols() for one in self.conditions))


def _find_split_axes(access: MemoryAccess) -> frozenset[int]:
    """Give the dimensions whose group ids, local ids or local sizes an access uses."""
    parts = (access.offset_bytes, access.guard, *(one.trip_count for one in access.loops))
    symbols = frozenset[Symbol]().union(*(one.symbols() for one in parts if one is not None))
    return frozenset(one.axis for one in symbols if one.kind in _PARTS)
