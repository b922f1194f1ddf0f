"""What a launch touches of its buffers: ranges and numbers of bytes, idle work-groups, overruns."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import (
    EvaluationError,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    less,
)
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_ids, bind_names, list_axes
from kernelcast.expressions.intervals import Interval, bound_pieces, bound_values
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.point_sets import (
    LaunchPoints,
    NotKnownError,
    PlacedAccesses,
    TooHardError,
    make_context,
)
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.operations import MemorySpace

_OUTSIDE: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TouchedRanges:
    """Ranges of bytes that boxes of work-groups touch; made by `find_touched`."""

    places: frozenset[int]
    """Positions of the buffers of which that is known."""
    _ndrange: NDRange
    _scalars: Mapping[str, int]
    _accesses: tuple[tuple[int, MemoryAccess], ...]

    def without(self, places: Collection[int]) -> "TouchedRanges":
        left = tuple(one for one in self._accesses if one[0] not in places)
        return replace(self, places=self.places - {*places}, _accesses=left)

    def list_ranges(self, box: GroupBox) -> dict[int, list[Interval]]:
        """List ranges of bytes, first and end, by place; one for each row of a matrix."""
        ranges = _bind_box(self._ndrange, self._scalars, box)
        found: dict[int, list[Interval]] = {place: [] for place in self.places}
        for place, access in self._accesses:
            known = _bind_loops(access, ranges)
            if known and access.offset_bytes is not None:
                # To copy 32 KiB takes about as long as to begin a copy anew.
                pieces = bound_pieces(access.offset_bytes, known, least_gap=32 << 10, most=2048)
                found[place] += [(low, high + access.bytes) for low, high in pieces]
        return found


def find_touched(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int]
) -> TouchedRanges | None:
    """Find buffers whose touched bytes addresses tell; None if parts are not followed."""
    accesses = [one for one in facts.accesses if one.space in _OUTSIDE]
    if facts.gaps or any(one.buffer is None for one in accesses):
        return None
    numbers = {one.name: place for place, one in enumerate(facts.parameters) if one.is_pointer}
    ranges = _bind_box(ndrange, scalars)
    unknown = {str(one.buffer) for one in accesses if not _stays_inside(one, ranges)}
    places = frozenset(place for name, place in numbers.items() if name not in unknown)
    # Loads and stores of the same bytes are one; tables of the source are no buffers.
    different = {
        (one.buffer, one.offset_bytes, one.bytes, one.loops): (numbers[one.buffer], one)
        for one in accesses if one.buffer in numbers and one.buffer not in unknown
    }  # fmt: skip
    return TouchedRanges(
        places=places, _ndrange=ndrange, _scalars=scalars, _accesses=tuple(different.values())
    )


def _stays_inside(
    access: MemoryAccess, ranges: Mapping[Symbol, Interval], size: int | None = None
) -> bool:
    """Tell whether an access has bounds, within so many bytes where a size is given."""
    if access.offset_bytes is None:
        return False
    try:
        known = _bind_loops(access, ranges)
        if known is None:
            return True
        low, high = bound_values(access.offset_bytes, known)
    except EvaluationError:
        return False
    return size is None or (low >= 0 and high + access.bytes <= size)


def _bind_loops(
    access: MemoryAccess, ranges: Mapping[Symbol, Interval]
) -> Mapping[Symbol, Interval] | None:
    """Bind the iterations of an access's loops too; None where some loop does not run."""
    if not access.loops:
        return ranges
    known = dict(ranges)
    for loop in access.loops:
        if loop.trip_count is None:
            raise EvaluationError(f"line {loop.line}: nobody knows how often the loop runs")
        _, most = bound_values(loop.trip_count, known)
        if most <= 0:
            return None
        known[loop.symbol] = (0, most - 1)
    return known


def _bind_box(
    ndrange: NDRange, scalars: Mapping[str, int], box: GroupBox | None = None
) -> dict[Symbol, Interval]:
    """Bound scalars, ids and sizes of a box of work-groups, or of all of them."""
    found = {symbol: (value, value) for symbol, value in bind_names(scalars).items()}
    starts, counts = (box.start, box.shape) if box else ((0, 0, 0), ndrange.group_counts)
    axes = zip(list_axes(ndrange), (*starts, 0, 0), (*counts, 1, 1), strict=False)
    for one, first, count in axes:
        last = first + count - 1
        width = min(one.local, one.items - last * one.local)
        found |= {
            Symbol(SymbolKind.LOCAL_ID, axis=one.number): (0, one.local - 1),
            Symbol(SymbolKind.GROUP_ID, axis=one.number): (first, last),
            Symbol(SymbolKind.GLOBAL_ID, axis=one.number): (
                first * one.local + one.offset, last * one.local + width - 1 + one.offset
            ),
        }  # fmt: skip
        sizes = one.bind_sizes((width, one.local))
        found |= {key: (size, size) if isinstance(size, int) else size
                  for key, size in sizes.items()}  # fmt: skip
    return found


def find_active_box(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int]
) -> GroupBox | None:
    """Find the box of work-groups that touch memory: the whole launch where that is not known."""
    everything = GroupBox(start=(0,) * ndrange.dimensions, shape=ndrange.group_counts)
    accesses = [one for one in facts.accesses if one.space in _OUTSIDE]
    if facts.gaps or any(one.offset_bytes is None for one in accesses):
        return everything
    launch = LaunchPoints(ndrange=ndrange, scalars=scalars)
    spans = []
    try:
        for placed in launch.place(accesses, make_context(), is_exact=False):
            span = []
            for axis, count in enumerate(ndrange.group_counts):
                group = launch.find_group(axis, placed.points.symbols)
                span.append(range(count) if group is None else placed.points.list_values(group))
            if all(span):
                spans.append(span)
    except NotKnownError:
        return everything
    if not spans:
        return None
    axes = [*zip(*spans, strict=True)]
    start = tuple(min(groups.start for groups in axis) for axis in axes)
    stops = (max(groups.stop for groups in axis) for axis in axes)
    return GroupBox(start=start, shape=tuple(b - a for a, b in zip(start, stops, strict=True)))


def count_touched_bytes(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], sizes: Mapping[str, int]
) -> float:
    """Estimate bytes that a launch touches by each buffer's widest access on some groups."""
    total = ndrange.work_group_count
    count = max(1, min(total, 64, (1 << 16) // ndrange.work_group_size))
    groups = sorted({total * place // count for place in range(count)})
    most: dict[str, float] = {}
    for access, offsets in _find_offsets(facts, ndrange, scalars, groups):
        size = sizes.get(access.buffer or "")
        if size is not None and offsets is not None:
            touched = np.unique(offsets).size * access.bytes * total / count
            most[str(access.buffer)] = max(most.get(str(access.buffer), 0.0), min(touched, size))
    return sum(most.values(), 0.0)


def compare_touched(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], box: GroupBox
) -> tuple[float, float] | None:
    """Compare lines and pages per work-group of a box with the launch's; None if not known."""
    total, counts = ndrange.work_group_count, ndrange.group_counts
    # So many work-items take a few milliseconds for each access.
    most = max(1, (1 << 17) // ndrange.work_group_size)
    places = np.indices(box.shape).reshape(len(counts), -1) + np.array(box.start)[:, None]
    own = np.sort(np.ravel_multi_index([*places], counts, order="F"))[:most]
    first = min(max(int(own[0]) - most // 2, 0), max(total - most, 0))
    per_group = []
    for groups in (own.tolist(), range(first, min(first + most, total))):
        touched: dict[str, npt.NDArray[np.float64]] = {}
        for access, offsets in _find_offsets(facts, ndrange, scalars, groups):
            if offsets is None or not access.buffer:
                return None
            counted = [np.unique(offsets // unit).size / len(groups) for unit in (64, 4096)]
            touched[access.buffer] = np.maximum(touched.get(access.buffer, np.zeros(2)), counted)
        if not touched:
            return None
        per_group.append(sum(touched.values()))
    lines, pages = np.asarray(per_group[0]) / np.asarray(per_group[1])
    return (float(lines), float(pages)) if np.isfinite([lines, pages]).all() else None


def _find_offsets(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], groups: Sequence[int]
) -> Iterator[tuple[MemoryAccess, npt.NDArray[np.int64] | None]]:
    """Find offsets of accesses in the first iterations of their loops; None if not all known."""
    ids, is_present = bind_ids(ndrange, groups)
    for access in facts.accesses:
        if access.space not in _OUTSIDE:
            continue
        bindings, runs = ids | bind_names(scalars), is_present
        try:
            for loop in access.loops:
                if loop.trip_count is None:
                    raise EvaluationError
                trips = np.asarray(loop.trip_count.evaluate_where(runs, bindings))
                runs = np.logical_and(runs, trips > 0)
                bindings[loop.symbol] = 0
            runs = np.logical_and(runs, access.guard.evaluate_where(runs, bindings))
            if access.offset_bytes is None or not access.is_exact:
                raise EvaluationError
            offsets = np.asarray(access.offset_bytes.evaluate_where(runs, bindings))
        except EvaluationError:
            yield access, None
        else:
            yield access, np.broadcast_to(offsets, runs.shape)[runs]


def find_overruns(
    facts: KernelFacts, ndrange: NDRange, sizes: Mapping[str, int], scalars: Mapping[str, int]
) -> list[str]:
    """Describe accesses with exactly known addresses that leave their buffers, one per place."""
    ranges = _bind_box(ndrange, scalars)
    judged = [
        one for one in facts.accesses
        if one.is_exact and one.offset_bytes is not None
        and (size := sizes.get(one.buffer or "")) is not None
        and not _stays_inside(one, ranges, size)
    ]  # fmt: skip
    if not judged:
        return []
    # These are looked at closely, for the first work-item of each that leaves its buffer.
    launch = LaunchPoints(ndrange=ndrange, scalars=scalars)
    found: dict[int, str] = {}
    for placed in launch.place(judged, make_context(), is_exact=True):
        rooms = [
            (shift, sizes[one.buffer or ""] - shift - one.bytes) for shift, one in placed.members
        ]
        try:
            # The least room before and behind answers for all, mostly with "none".
            if _find_outside(placed, *map(min, zip(*rooms, strict=True))) is None:
                continue
            for (shift, one), room in zip(placed.members, rooms, strict=True):
                point = _find_outside(placed, *room)
                if point is None:
                    continue
                item = ", ".join(f"{number:,}" for number in launch.find_global_id(point))
                offset = (placed.offset_bytes + placed.curved_bytes + shift).evaluate(point)
                found.setdefault(one.site, (
                    f"line {one.line}: {one.text} leaves the buffer {one.buffer}: work-item "
                    f"({item}) is at byte {offset:,}, and the buffer has "
                    f"{sizes[one.buffer or '']:,}"
                ))  # fmt: skip
        except TooHardError:
            break
        except (NotKnownError, EvaluationError):
            continue
    return list(found.values())


def _find_outside(placed: PlacedAccesses, before: int, behind: int) -> dict[Symbol, int] | None:
    offset, values = placed.offset_bytes, dict[Symbol, int]()
    # What makes an offset more than affine gets values for which some point is outside.
    symbols = [one for one in placed.points.symbols if one in placed.curved_bytes.symbols()]
    if symbols:
        ranges = {one: placed.points.list_values(one) for one in symbols}
        if math.prod(map(len, ranges.values())) > 1 << 17:
            raise NotKnownError
        grid, low, high = placed.bound_each(ranges)
        places = np.flatnonzero((low < -before) | (high > behind))
        if not places.size:
            return None
        values = {symbol: int(one[places[0]]) for symbol, one in grid.items()}
    curve = placed.curved_bytes.evaluate(values)
    assert isinstance(curve, int)
    outside = disjunction(less(offset, -before - curve), less(behind - curve, offset))
    fixed = (equal(symbol, value) for symbol, value in values.items())
    return placed.points.find_first(conjunction(*fixed, outside))
