"""Which bytes of a buffer each slab of an index space touches, by address expressions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.features.write_safety_folding import fold
from kernelcast.features.write_safety_guards import bound_where, tighten
from kernelcast.features.write_safety_intervals import Interval, NoBoundError, bound
from kernelcast.records.balance import SlabSpace
from kernelcast.records.ndrange import MAX_DIMENSIONS

IntArray = npt.NDArray[np.int64]

MOST_STRETCHES = 1 << 19
"""Stretches of bytes that are told apart, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Stretches of a buffer's bytes, each touched by one slab.

    Parameters
    ----------
    starts, stops : ndarray of int64
        First byte, and the one behind the last.
    slabs : ndarray of int64
        Which slab touches it.
    """

    starts: IntArray
    stops: IntArray
    slabs: IntArray

    @classmethod
    def join(cls, parts: Sequence["Footprint"]) -> "Footprint":
        """Put footprints together; stretches of the same slab that touch become one."""
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return cls(nothing, nothing, nothing)
        starts, stops, slabs = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("starts", "stops", "slabs")
        )
        return cls(*_unite(starts, stops, slabs))

    def sort(self) -> "Footprint":
        """Order stretches by where they begin."""
        order = np.lexsort((self.stops, self.starts))
        return Footprint(self.starts[order], self.stops[order], self.slabs[order])

    @property
    def is_disjoint(self) -> bool:
        """Whether no byte belongs to two slabs."""
        ordered = self.sort()
        # Stretches of one slab are apart, so two that overlap have neighbours that do.
        return bool((ordered.starts[1:] >= ordered.stops[:-1]).all())

    def meets_only_own(self, other: "Footprint") -> bool:
        """Tell whether what a slab touches here no other slab touches in a disjoint `other`."""
        ordered = other.sort()
        first = np.searchsorted(ordered.stops, self.starts, side="right")
        behind = np.searchsorted(ordered.starts, self.stops, side="left")
        some = behind > first
        changes = np.concatenate([[0], np.cumsum(np.diff(ordered.slabs) != 0)])
        first, last, own = first[some], behind[some] - 1, self.slabs[some]
        is_own = (ordered.slabs[first] == own) & (changes[first] == changes[last])
        return bool(is_own.all())

    def spans(self, slabs: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Give bytes to be copied for some slabs, as first and behind the last.

        Parameters
        ----------
        slabs : ndarray of bool, shape (count of slabs,)
            Which slabs.

        Returns
        -------
        list of (int, int)
            Bytes between them that no slab touches may be among them, so that the list is short;
            bytes of other slabs are not. Of an ordered, disjoint footprint only.
        """
        is_mine = np.concatenate([[False], slabs[self.slabs], [False]])
        edges = np.flatnonzero(is_mine[1:] != is_mine[:-1])
        first, last = edges[::2], edges[1::2] - 1
        return [(int(a), int(b)) for a, b in zip(self.starts[first], self.stops[last], strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabRanges:
    """Limits of ids and sizes for each slab.

    Parameters
    ----------
    space : SlabSpace
        The slabs.
    scalars : mapping of str to int
        Values of scalar arguments.
    """

    space: SlabSpace
    scalars: Mapping[str, int]

    def symbols(self) -> dict[Symbol, Interval]:
        """Give limits of every id, size and scalar; arrays along the slabs where they differ."""
        found = {
            Symbol(SymbolKind.SCALAR, name): Interval.of(value, value)
            for name, value in self.scalars.items()
            if abs(value) < 2**62
        }
        for axis in range(MAX_DIMENSIONS):
            found |= self._axis(axis)
        return found

    def _axis(self, axis: int) -> dict[Symbol, Interval]:
        ndrange = self.space.ndrange
        is_used = axis < ndrange.dimensions
        size = ndrange.global_size[axis] if is_used else 1
        local = ndrange.known_local_size[axis] if is_used else 1
        groups = ndrange.group_counts[axis] if is_used else 1
        offset = ndrange.global_offset[axis] if is_used else 0
        first: int | IntArray = 0
        last: int | IntArray = groups - 1
        if axis == self.space.axis:
            numbers = np.arange(self.space.count, dtype=np.int64)
            first = numbers * self.space.thickness
            last = np.minimum(first + self.space.thickness, groups) - 1
        items = np.minimum((np.asarray(last) + 1) * local, size) - 1
        # A work-group at the edge may be smaller: then its size is not the usual one.
        least = size % local if size % local else local
        limits = {
            SymbolKind.LOCAL_ID: Interval.of(0, local - 1),
            SymbolKind.GROUP_ID: Interval.of(first, last),
            SymbolKind.GLOBAL_ID: Interval.of(np.asarray(first) * local + offset, items + offset),
            SymbolKind.LOCAL_SIZE: Interval.of(least, local),
            SymbolKind.GLOBAL_SIZE: Interval.of(size, size),
            SymbolKind.GROUP_COUNT: Interval.of(groups, groups),
            SymbolKind.GLOBAL_OFFSET: Interval.of(offset, offset),
        }
        return {Symbol(kind, axis=axis): value for kind, value in limits.items()}


def find_footprint(
    accesses: Iterable[MemoryAccess], ranges: SlabRanges, size_bytes: int, *, detail: int = 0
) -> Footprint:
    """Find what each slab touches of a buffer.

    Parameters
    ----------
    accesses : iterable of MemoryAccess
        Of that buffer.
    ranges : SlabRanges
        Limits of ids.
    size_bytes : int
        Size of the buffer; nothing is touched behind its end.
    detail : int
        How many loops or dimensions are followed step by step, so that stretches far apart are
        not taken for one.

    Returns
    -------
    Footprint
        It holds every byte that is touched, and perhaps more.

    Raises
    ------
    NoBoundError
        If an address is not known, or there are too many stretches.
    """
    symbols = ranges.symbols()
    parts = [_follow(one, symbols, ranges.space.count, detail) for one in accesses]
    for part in parts:
        np.clip(part.starts, 0, size_bytes, out=part.starts)
        np.clip(part.stops, 0, size_bytes, out=part.stops)
    return Footprint.join(parts)


def _follow(
    access: MemoryAccess, symbols: Mapping[Symbol, Interval], slabs: int, detail: int
) -> Footprint:
    """Find what an access touches in each slab."""
    if access.offset_bytes is None:
        raise NoBoundError
    limits = dict(symbols)
    for loop in access.loops:
        symbol = Symbol(SymbolKind.LOOP, loop.name)
        if loop.trip_count is not None:
            last = bound(loop.trip_count, limits).high - 1
            limits[symbol] = Interval.of(np.zeros_like(last), last)
    limits = tighten(limits, access.guard)
    fixed = {
        symbol: int(found)
        for symbol in access.offset_bytes.symbols() | access.guard.symbols()
        if symbol in limits and (found := limits[symbol].constant) is not None
    }
    offset = fold(access.offset_bytes.substitute(fixed))
    used = [limits[symbol] for symbol in offset.symbols() if symbol in limits]
    is_some = np.ones(slabs, dtype=np.bool_)
    for one in (*used, *(limits[s] for s in access.guard.symbols() if s in limits)):
        is_some &= np.broadcast_to(one.low <= one.high, slabs)
    steps, rest = _split_off(offset, limits, access.bytes, detail)
    whole = bound_where(rest, limits, access.guard.substitute(fixed))
    is_some &= np.broadcast_to(whole.low <= whole.high, slabs)
    low = np.broadcast_to(whole.low, slabs)[is_some]
    high = np.broadcast_to(whole.high, slabs)[is_some] + access.bytes
    if steps.size * low.size > MOST_STRETCHES:
        raise NoBoundError
    return Footprint(
        (low[:, None] + steps).reshape(-1),
        (high[:, None] + steps).reshape(-1),
        np.repeat(np.flatnonzero(is_some), steps.size),
    )


def _split_off(
    offset: Expr, limits: Mapping[Symbol, Interval], size_bytes: int, detail: int
) -> tuple[IntArray, Expr]:
    """Take the widest strides out of an offset: their multiples, and what is left.

    Strides are left in as long as their steps touch each other.
    """
    wide: list[tuple[int, int, Symbol]] = []
    for monomial, factor in offset.products:
        if len(monomial) == 1 and isinstance(monomial[0], Symbol):
            symbol = monomial[0]
            found = limits.get(symbol)
            if found is None:
                continue
            # Of a loop that runs longer in some slabs, all are taken to run the longest.
            if symbol.kind is SymbolKind.LOOP or found.low.size == found.high.size == 1:
                count = int(found.high.max()) - int(found.low.min()) + 1
                wide.append((abs(factor), count, symbol))
    wide.sort(key=lambda one: one[0], reverse=True)
    steps = np.zeros(1, dtype=np.int64)
    taken: dict[Symbol, int] = {}
    for stride, count, symbol in wide[:detail]:
        if stride <= size_bytes or count * steps.size > MOST_STRETCHES:
            continue
        factor = dict(offset.products)[symbol,]
        first = int(limits[symbol].low.min())
        own = factor * (first + np.arange(count, dtype=np.int64))
        steps = (steps[:, None] + own).reshape(-1)
        taken[symbol] = 0
    alone = {monomial for monomial, _ in offset.products if monomial and monomial[0] in taken
             and len(monomial) == 1}  # fmt: skip
    rest = Expr({monomial: f for monomial, f in offset.products if monomial not in alone})
    return steps, rest


def _unite(starts: IntArray, stops: IntArray, slabs: IntArray) -> tuple[IntArray, ...]:
    """Join stretches of the same slab that overlap or touch."""
    some = stops > starts
    starts, stops, slabs = starts[some], stops[some], slabs[some]
    if not starts.size:
        return starts, stops, slabs
    order = np.lexsort((starts, slabs))
    starts, stops, slabs = starts[order], stops[order], slabs[order]
    # Far apart from slab to slab, so that one running maximum serves all.
    apart = slabs * (int(stops.max()) + 1)
    reach = np.maximum.accumulate(stops + apart)
    is_new = np.ones(starts.size, dtype=np.bool_)
    is_new[1:] = (starts + apart)[1:] > reach[:-1]
    is_new[1:] |= slabs[1:] != slabs[:-1]
    begins = np.flatnonzero(is_new)
    ends = np.concatenate([begins[1:], [starts.size]]) - 1
    return starts[begins], (reach - apart)[ends], slabs[begins]
