"""Which bytes of a buffer each slab of an index space touches, by address expressions."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.isl import NotKnownError
from kernelcast.expressions.launch_points import SLAB, LaunchPoints, PlacedAccesses
from kernelcast.records.balance import SlabSpace

IntArray = npt.NDArray[np.int64]

MOST_STRETCHES = 1 << 19
"""Stretches of bytes of one access that are told apart, at most."""
_MOST_STEPS = 2 * MOST_STRETCHES
_MOST_TOGETHER = 16 * MOST_STRETCHES  # 200 MB
_CUT = (SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRanges:
    """Stretches of a buffer's bytes, each touched by one slab."""

    starts: IntArray
    stops: IntArray
    """First byte, and the one behind the last."""
    slabs: IntArray
    """Which slab touches it."""

    @classmethod
    def join(cls, parts: Sequence["WrittenRanges"]) -> "WrittenRanges":
        """Put footprints together; stretches of the same slab that touch become one."""
        if not parts:
            nothing = np.zeros(0, dtype=np.int64)
            return cls(nothing, nothing, nothing)
        starts, stops, slabs = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("starts", "stops", "slabs")
        )
        return cls(*_unite(starts, stops, slabs))

    def sort(self) -> "WrittenRanges":
        """Order stretches by where they begin."""
        order = np.lexsort((self.stops, self.starts))
        return WrittenRanges(self.starts[order], self.stops[order], self.slabs[order])

    @property
    def is_disjoint(self) -> bool:
        """Whether no byte belongs to two slabs."""
        ordered = self.sort()
        # Stretches of one slab are apart, so two that overlap have neighbours that do.
        return bool((ordered.starts[1:] >= ordered.stops[:-1]).all())

    def meets_only_own(self, other: "WrittenRanges") -> bool:
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


def find_footprint(
    placed: Iterable[PlacedAccesses], launch: LaunchPoints, size_bytes: int, *, detail: int = 0
) -> WrittenRanges:
    """Find what each slab touches of a buffer.

    Parameters
    ----------
    placed : iterable of PlacedAccesses
        Of that buffer, by slabs.
    launch : LaunchPoints
        With slabs.
    size_bytes : int
        Size of the buffer; nothing is touched behind its end.
    detail : int
        How many loops or dimensions are followed step by step, so that stretches far apart are
        not taken for one.

    Returns
    -------
    WrittenRanges
        It holds every byte that is touched, and perhaps more.

    Raises
    ------
    NotKnownError
        If addresses are not quasi-affine, or there are too many stretches.
    """
    parts: list[WrittenRanges] = []
    for part in itertools.chain.from_iterable(_follow(one, launch, detail) for one in placed):
        parts.append(part)
        if sum(one.starts.size for one in parts) > _MOST_TOGETHER:
            raise NotKnownError
    for part in parts:
        np.clip(part.starts, 0, size_bytes, out=part.starts)
        np.clip(part.stops, 0, size_bytes, out=part.stops)
    return WrittenRanges.join(parts)


def _follow(placed: PlacedAccesses, launch: LaunchPoints, detail: int) -> Iterator[WrittenRanges]:
    """Find what accesses touch in each slab, stretch by stretch along the widest strides."""
    space = _slabs_of(launch)
    followed = _choose_wide(placed, space, detail)
    followed |= {one: placed.points.list_values(one) for one in placed.curved_bytes.symbols()}
    cut = next((one for one in followed if _is_cut(one, space)), None)
    if cut is None:
        followed[SLAB] = range(space.count)
    if math.prod(map(len, followed.values())) > _MOST_STEPS:
        raise NotKnownError
    bounds = placed.points.bound(placed.offset_bytes, followed)
    steps = (np.arange(one.start, one.stop, dtype=np.int64) for one in followed.values())
    grid = dict(zip(followed, np.meshgrid(*steps, indexing="ij"), strict=True))
    shape = next(iter(grid.values())).shape
    is_some = np.broadcast_to(bounds.exists.evaluate(grid), shape)
    if np.count_nonzero(is_some) > MOST_STRETCHES:
        raise NotKnownError
    some = {symbol: values[is_some] for symbol, values in grid.items()}
    slabs = some[SLAB] if cut is None else launch.find_slab(cut, some[cut])
    low, high = (
        np.broadcast_to((one + placed.curved_bytes).evaluate(some), slabs.shape)
        for one in (bounds.low, bounds.high)
    )
    for shift, access in placed.members:
        yield WrittenRanges(low + shift, high + shift + access.bytes, slabs)


def _slabs_of(launch: LaunchPoints) -> SlabSpace:
    assert launch.slabs is not None
    return launch.slabs


def _is_cut(symbol: Symbol, space: SlabSpace) -> bool:
    """Tell whether slabs cut along an id."""
    return symbol.kind in _CUT and symbol.axis == space.axis


def _choose_wide(placed: PlacedAccesses, space: SlabSpace, detail: int) -> dict[Symbol, range]:
    """Choose coordinates with the widest strides, with all values that they take.

    Strides are left alone as long as their steps touch each other, and so are ids that are cut.
    """
    strides = sorted(
        (
            (abs(factor), monomial[0])
            for monomial, factor in placed.points.simplify(placed.offset_bytes).products
            if len(monomial) == 1
            and isinstance(monomial[0], Symbol)
            and not _is_cut(monomial[0], space)
        ),
        key=lambda one: -one[0],
    )
    least_bytes = min(access.bytes for _, access in placed.members)
    chosen: dict[Symbol, range] = {}
    most = _MOST_STEPS // space.count
    for stride, symbol in strides:
        if len(chosen) == detail or stride <= least_bytes:
            break
        values = placed.points.list_values(symbol)
        if 1 < len(values) <= most:
            chosen[symbol] = values
            most //= len(values)
    return chosen


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
