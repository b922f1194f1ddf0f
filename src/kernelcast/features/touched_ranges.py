"""Which bytes of its buffers a box of work-groups can touch, and which work-groups touch any."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import Axis, bind_names, list_axes
from kernelcast.expressions.intervals import Interval, bound_pieces, bound_values
from kernelcast.expressions.isl import NotKnownError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import LaunchPoints, PlacedAccesses
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.operations import MemorySpace

_KINDS = (
    SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID, SymbolKind.LOCAL_SIZE,
    SymbolKind.GLOBAL_SIZE, SymbolKind.GROUP_COUNT, SymbolKind.GLOBAL_OFFSET,
)  # fmt: skip
_LOCAL = frozenset({MemorySpace.LOCAL, MemorySpace.PRIVATE})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TouchedRanges:
    """Ranges of bytes that boxes of work-groups touch; made by `find_touched`."""

    places: frozenset[int]
    """Positions of the buffers of which that is known."""
    _axes: tuple[Axis, ...]
    _fixed: Mapping[Symbol, Interval]
    _accesses: tuple[tuple[int, MemoryAccess], ...]

    def without(self, places: Collection[int]) -> "TouchedRanges":
        """Leave out some buffers."""
        left = tuple(one for one in self._accesses if one[0] not in places)
        return replace(self, places=self.places - {*places}, _accesses=left)

    def list_ranges(self, box: GroupBox) -> dict[int, list[Interval]]:
        """List the ranges of bytes that a box of work-groups touches, by place: first and end.

        An access that strides over gaps, as one to rows of a matrix, has a range for each row.
        """
        ranges = {**self._fixed, **_bind_box(self._axes, box)}
        found: dict[int, list[Interval]] = {place: [] for place in self.places}
        for place, access in self._accesses:
            known = bind_loops(access, ranges)
            if known is not None and access.offset_bytes is not None:
                # To copy 32 KiB takes about as long as to begin a copy anew.
                pieces = bound_pieces(access.offset_bytes, known, least_gap=32 << 10, most=2048)
                found[place] += [(low, high + access.bytes) for low, high in pieces]
        return found


def find_touched(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int]
) -> TouchedRanges | None:
    """Find buffers whose touched bytes addresses tell; None if parts are not followed."""
    if facts.gaps:
        return None
    accesses = [one for one in facts.accesses if one.space not in _LOCAL]
    numbers = {one.name: place for place, one in enumerate(facts.parameters) if one.is_pointer}
    if any(one.buffer is None for one in accesses):
        return None
    accesses = [one for one in accesses if one.buffer in numbers]  # without tables of the source
    fixed, axes = _bind_scalars(scalars), list_axes(ndrange)
    ranges = bind_launch(ndrange, scalars)
    unknown = {str(one.buffer) for one in accesses if not _is_bounded(one, ranges)}
    places = frozenset(place for name, place in numbers.items() if name not in unknown)
    # Loads and stores of the same bytes are one.
    different = {
        (one.buffer, one.offset_bytes, one.bytes, one.loops): one
        for one in accesses
        if str(one.buffer) not in unknown
    }
    known = tuple((numbers[str(one.buffer)], one) for one in different.values())
    return TouchedRanges(places=places, _axes=axes, _fixed=fixed, _accesses=known)


def bind_launch(ndrange: NDRange, scalars: Mapping[str, int]) -> dict[Symbol, Interval]:
    """Give the ids, sizes and scalars of a whole launch."""
    whole = GroupBox(start=(0,) * ndrange.dimensions, shape=ndrange.group_counts)
    return {**_bind_scalars(scalars), **_bind_box(list_axes(ndrange), whole)}


def _bind_scalars(scalars: Mapping[str, int]) -> dict[Symbol, Interval]:
    return {symbol: (value, value) for symbol, value in bind_names(scalars).items()}


def _is_bounded(access: MemoryAccess, ranges: Mapping[Symbol, Interval]) -> bool:
    try:
        known = bind_loops(access, ranges)
        if access.offset_bytes is not None and known is not None:
            bound_values(access.offset_bytes, known)
    except EvaluationError:
        return False
    return access.offset_bytes is not None


def bind_loops(
    access: MemoryAccess, ranges: Mapping[Symbol, Interval]
) -> Mapping[Symbol, Interval] | None:
    """Give the iterations of an access's loops too; None where some loop does not run."""
    if not access.loops:
        return ranges
    known = dict(ranges)
    for loop in access.loops:
        if loop.trip_count is None:
            msg = f"line {loop.line}: nobody knows how often the loop runs"
            raise EvaluationError(msg)
        _, most = bound_values(loop.trip_count, known)
        if most <= 0:
            return None
        known[Symbol(SymbolKind.LOOP, loop.name)] = (0, most - 1)
    return known


def _bind_box(axes: tuple[Axis, ...], box: GroupBox) -> dict[Symbol, Interval]:
    """Give the ids and sizes of a box of work-groups, in dimensions that it has not too."""
    found: dict[Symbol, Interval] = {}
    for one, first, count in zip(axes, (*box.start, 0, 0), (*box.shape, 1, 1), strict=False):
        last = first + count - 1
        greatest = min((last + 1) * one.local, one.items) - 1 + one.offset
        least_local = one.items - last * one.local if last == one.groups - 1 else one.local
        values = (
            (0, one.local - 1),
            (first, last),
            (first * one.local + one.offset, greatest),
            (least_local, one.local),
            (one.items, one.items),
            (one.groups, one.groups),
            (one.offset, one.offset),
        )
        symbols = (Symbol(kind, axis=one.number) for kind in _KINDS)
        found |= zip(symbols, values, strict=True)
    return found


_OUTSIDE = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC)


def find_active_box(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int]
) -> GroupBox | None:
    """Find the box of work-groups that touch memory: the whole launch where that is not known."""
    everything = GroupBox(start=(0,) * ndrange.dimensions, shape=ndrange.group_counts)
    accesses = [one for one in facts.accesses if one.space in _OUTSIDE]
    if facts.gaps or any(one.offset_bytes is None for one in accesses):
        return everything
    launch = LaunchPoints(ndrange=ndrange, scalars=scalars)
    try:
        placed = list(launch.place(accesses, make_context(), is_exact=False))
        spans = [span for one in placed if (span := _list_groups(one, ndrange))]
    except NotKnownError:
        return everything
    if not spans:
        return None
    axes = [
        (min(span[axis].start for span in spans), max(span[axis].stop for span in spans))
        for axis in range(ndrange.dimensions)
    ]
    return GroupBox(
        start=tuple(first for first, _ in axes), shape=tuple(end - first for first, end in axes)
    )


def _list_groups(placed: PlacedAccesses, ndrange: NDRange) -> list[range] | None:
    """Give the work-groups of each dimension that do some accesses; None if none does."""
    found = []
    for axis, count in enumerate(ndrange.group_counts):
        group, item = (
            Symbol(kind, axis=axis) for kind in (SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID)
        )
        if group in placed.symbols:
            groups = placed.points.list_values(group)
        elif item in placed.symbols:
            items = placed.points.list_values(item)
            local, offset = ndrange.known_local_size[axis], ndrange.global_offset[axis]
            groups = range((items.start - offset) // local, (items.stop - 1 - offset) // local + 1)
        else:
            groups = range(count)
        if not groups:
            return None
        found.append(groups)
    return found
