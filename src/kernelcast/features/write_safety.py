"""Whether a kernel's work-groups may run on different devices, and how their results merge.

Each device works on buffers of its own. That gives the right result if no work-group reads what
another one writes, and if it is clear which device wrote what: by address expressions, where the
work-groups' places are provably apart, else by comparing with the content before.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.point_sets import (
    SLAB,
    LaunchPoints,
    NotKnownError,
    PlacedAccesses,
    are_apart,
    make_context,
    relate_bytes,
)
from kernelcast.expressions.symbols import BoolArray, IntArray
from kernelcast.records.balance import MergeRule, SlabSpace
from kernelcast.records.operations import MemorySpace

MOST_STRETCHES = 1 << 19
"""Stretches of bytes of one access that are told apart, at most."""
_MOST_STEPS = 2 * MOST_STRETCHES
_MOST_TOGETHER = 16 * MOST_STRETCHES  # 200 MB
_SHARED = (MemorySpace.GLOBAL, MemorySpace.GENERIC)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRanges:
    """Stretches of a buffer's bytes, each touched by one slab, in the order of their places."""

    starts: IntArray
    stops: IntArray
    """First byte, and the one behind the last."""
    slabs: IntArray
    """Which slab touches it."""

    @classmethod
    def join(cls, parts: Sequence["WrittenRanges"]) -> "WrittenRanges":
        """Put footprints together; stretches of the same slab that overlap or touch become one."""
        starts, stops, slabs = (
            np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(one, name) for one in parts)])
            for name in ("starts", "stops", "slabs")
        )
        some = np.flatnonzero(stops > starts)
        if not some.size:
            return cls(starts[some], stops[some], slabs[some])
        order = some[np.lexsort((starts[some], slabs[some]))]
        starts, stops, slabs = starts[order], stops[order], slabs[order]
        # Far apart from slab to slab, so that one running maximum serves all.
        apart = slabs * (int(stops.max()) + 1)
        reach = np.maximum.accumulate(stops + apart)
        is_new = np.ones(starts.size, dtype=np.bool_)
        is_new[1:] = ((starts + apart)[1:] > reach[:-1]) | (slabs[1:] != slabs[:-1])
        begins = np.flatnonzero(is_new)
        starts, stops, slabs = starts[begins], np.maximum.reduceat(stops, begins), slabs[begins]
        order = np.lexsort((stops, starts))
        return cls(starts[order], stops[order], slabs[order])

    def meets_only_own(self, other: "WrittenRanges") -> bool:
        """Tell whether what a slab touches here no other slab touches in a disjoint `other`."""
        first = np.searchsorted(other.stops, self.starts, side="right")
        behind = np.searchsorted(other.starts, self.stops, side="left")
        some = behind > first
        changes = np.concatenate([[0], np.cumsum(np.diff(other.slabs) != 0)])
        first, last, own = first[some], behind[some] - 1, self.slabs[some]
        is_own = (other.slabs[first] == own) & (changes[first] == changes[last])
        return bool(is_own.all())

    def spans(self, slabs: BoolArray) -> list[tuple[int, int]]:
        """List bytes to copy for some slabs of a footprint, untouched gaps included."""
        is_mine = np.concatenate([[False], slabs[self.slabs], [False]])
        edges = np.flatnonzero(is_mine[1:] != is_mine[:-1])
        first, last = edges[::2], edges[1::2] - 1
        return [(int(a), int(b)) for a, b in zip(self.starts[first], self.stops[last], strict=True)]


def _find_footprint(
    placed: Iterable[PlacedAccesses], launch: LaunchPoints, size_bytes: int, detail: int
) -> WrittenRanges:
    """Find what slabs touch of a buffer, or more; `detail` widest strides are followed by steps."""
    parts: list[WrittenRanges] = []
    total = 0
    for one in placed:
        slabs, low, high = _follow(one, launch, detail)
        total += low.size * len(one.members)
        if total > _MOST_TOGETHER:
            raise NotKnownError
        for shift, access in one.members:
            starts = np.clip(low + shift, 0, size_bytes)
            stops = np.clip(high + shift + access.bytes, 0, size_bytes)
            parts.append(WrittenRanges(starts, stops, slabs))
    return WrittenRanges.join(parts)


def _follow(
    placed: PlacedAccesses, launch: LaunchPoints, detail: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Find stretches of offsets along the widest strides: slab, least and greatest of each."""
    space = launch.slabs
    assert space is not None
    cuts = {Symbol(kind, axis=space.axis) for kind in (SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID)}
    strides = [
        (abs(factor), monomial[0])
        for monomial, factor in placed.points.simplify(placed.offset_bytes).products
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and monomial[0] not in cuts
    ]
    # Strides are left alone as long as their steps touch each other, and so are ids that are cut.
    least_bytes = min(access.bytes for _, access in placed.members)
    followed: dict[Symbol, range] = {}
    most = _MOST_STEPS // space.count
    for stride, symbol in sorted(strides, key=lambda one: -one[0]):
        if len(followed) == detail or stride <= least_bytes:
            break
        values = placed.points.list_values(symbol)
        if 1 < len(values) <= most:
            followed[symbol] = values
            most //= len(values)
    followed |= {one: placed.points.list_values(one) for one in placed.curved_bytes.symbols()}
    group = launch.find_group(space.axis, followed)
    if group is None:
        followed[SLAB] = range(space.count)
    if math.prod(map(len, followed.values())) > _MOST_STEPS:
        raise NotKnownError
    some, low, high = placed.bound_each(followed)
    if low.size > MOST_STRETCHES:
        raise NotKnownError
    slabs = some[SLAB] if group is None else group.evaluate(some) // space.thickness
    return np.asarray(slabs), low, high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitSafety:
    space: SlabSpace
    rules: Mapping[str, MergeRule] = field(default_factory=dict)
    footprints: Mapping[str, WrittenRanges] = field(default_factory=dict)
    """What each slab writes, for buffers that merge by ranges."""
    refusals: tuple[str, ...] = ()
    """Why it may not be split; empty if it may."""
    unread: frozenset[str] = frozenset()
    """Buffers that merge by ranges and are never read."""

    @property
    def is_proven(self) -> bool:
        return not self.refusals and MergeRule.COMPARE not in self.rules.values()


def assess_split(
    facts: KernelFacts,
    space: SlabSpace,
    scalars: Mapping[str, int],
    sizes_bytes: Mapping[str, int],
    *,
    assumes_independence: bool = False,
) -> SplitSafety:
    """Tell whether slabs of a launch may run on different devices, if buffers lie apart."""
    shared = [one for one in facts.accesses if one.space in _SHARED]
    refusals = [
        f"line {one.line}: {one.text} is an atomic operation on global memory: work-groups on "
        "different devices would not see each other's"
        for one in shared if one.kind is AccessKind.ATOMIC
    ]  # fmt: skip
    unknown = [f"line {gap.line}: {gap.reason}" if gap.line else gap.reason for gap in facts.gaps]
    unknown += [f"line {one.line}: it is not known into which buffer {one.text} points"
                for one in shared if one.buffer is None]  # fmt: skip
    if not assumes_independence:
        refusals += [f"{one}; so what work-groups write cannot be told" for one in unknown]
    rules: dict[str, MergeRule] = {}
    footprints: dict[str, WrittenRanges] = {}
    unread: set[str] = set()
    launch = LaunchPoints(ndrange=space.ndrange, scalars=scalars, slabs=space)
    for name, size_bytes in sizes_bytes.items():
        own = [one for one in shared if one.buffer == name]
        loads = [one for one in own if one.kind is AccessKind.LOAD]
        stores = [one for one in own if one.kind is not AccessKind.LOAD]
        if not unknown and not stores:
            rules[name] = MergeRule.READ
            continue
        placed: tuple[list[PlacedAccesses], list[PlacedAccesses]] | None = None
        with contextlib.suppress(NotKnownError):
            context = make_context()
            placed = None if unknown else (
                [*launch.place(stores, context, is_exact=False)],
                [*launch.place(loads, context, is_exact=False)],
            )  # fmt: skip
        footprint = _find_disjoint(*placed, launch, size_bytes) if placed else None
        rules[name] = MergeRule.COMPARE if footprint is None else MergeRule.RANGES
        if footprint is not None:
            footprints[name] = footprint
            if all(one.kind is AccessKind.STORE for one in own):
                unread.add(name)
        elif loads and not assumes_independence and not (placed and _is_own(*placed)):
            read, written = loads[0], stores[0] if stores else loads[0]
            is_sum = any(one.line == other.line and one.offset_bytes == other.offset_bytes
                         for one in loads for other in stores)  # fmt: skip
            refusals.append(
                f"line {written.line}: {written.text} is read and written, and work-groups may "
                f"share elements of {name}: such sums would be lost between devices"
                if is_sum else
                f"line {read.line}: {read.text} may read what another work-group writes to {name} "
                f"(line {written.line}), which may have run on another device"
            )  # fmt: skip
    return SplitSafety(
        space=space, rules=rules, footprints=footprints,
        refusals=tuple(dict.fromkeys(refusals)), unread=frozenset(unread),
    )  # fmt: skip


def _find_disjoint(
    stores: Sequence[PlacedAccesses],
    loads: Sequence[PlacedAccesses],
    launch: LaunchPoints,
    size_bytes: int,
) -> WrittenRanges | None:
    """Find what each slab writes, if that is provably nobody else's."""
    for detail in range(3):
        try:
            written = _find_footprint(stores, launch, size_bytes, detail)
            # Stretches of one slab are apart, so two that overlap have neighbours that do.
            if (written.starts[1:] < written.stops[:-1]).any():
                continue
            read = _find_footprint(loads, launch, size_bytes, detail)
        except (NotKnownError, EvaluationError):
            return None
        if read.meets_only_own(written):
            return written
    return None


def _is_own(stores: Sequence[PlacedAccesses], loads: Sequence[PlacedAccesses]) -> bool:
    """Tell whether no slab writes or reads what another one writes, stretches or not."""
    if not all(one.curved_bytes.is_zero for one in (*stores, *loads)):
        return False
    try:
        written, read = (
            [relate_bytes(one.points, one.offset_bytes + shift, access.bytes, SLAB)
             for one in some for shift, access in one.members]
            for some in (stores, loads)
        )  # fmt: skip
        return are_apart(written, [*written, *read])
    except NotKnownError:
        return False
