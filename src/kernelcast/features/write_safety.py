"""Whether a kernel's work-groups may run on different devices, and how their results merge.

Each device works on buffers of its own. That gives the right result if no work-group reads what
another one writes, and if it is clear which device wrote what: by address expressions, where the
work-groups' places are provably apart, else by comparing with the content before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelcast.expressions import EvaluationError
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.isl import NotKnownError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import SLAB, LaunchPoints, PlacedAccesses
from kernelcast.expressions.point_sets import are_apart, relate_bytes
from kernelcast.features.write_safety_footprints import WrittenRanges, find_footprint
from kernelcast.records.balance import MergeRule, SlabSpace
from kernelcast.records.operations import MemorySpace

_SHARED = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_MOST_DETAIL = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitSafety:
    """How a launch may be split."""

    space: SlabSpace
    """The slabs."""
    rules: Mapping[str, MergeRule] = field(default_factory=dict)
    """By buffer."""
    footprints: Mapping[str, WrittenRanges] = field(default_factory=dict)
    """What each slab writes, for buffers that merge by ranges."""
    refusals: tuple[str, ...] = ()
    """Why it may not be split; empty if it may."""
    unread: frozenset[str] = frozenset()
    """Buffers that merge by ranges and are never read."""

    @property
    def is_proven(self) -> bool:
        """Whether address expressions tell all that is written."""
        return not self.refusals and MergeRule.COMPARE not in self.rules.values()


def assess_split(
    facts: KernelFacts,
    space: SlabSpace,
    scalars: Mapping[str, int],
    sizes_bytes: Mapping[str, int],
    *,
    assumes_independence: bool = False,
) -> SplitSafety:
    """Find out whether slabs of a launch may run on different devices.

    Parameters
    ----------
    sizes_bytes : mapping of str to int
        Size of each buffer by its name.
    assumes_independence : bool
        Whether the caller vouches that no work-group reads what another one writes; then what
        cannot be proven is no reason to refuse. Atomic operations still are.

    Notes
    -----
    Buffers are taken to lie apart from each other.
    """
    shared = [one for one in facts.accesses if one.space in _SHARED]
    refusals = _refuse_atomics(shared)
    if not assumes_independence:
        refusals += _refuse_unknown(facts, shared)
    rules: dict[str, MergeRule] = {}
    footprints: dict[str, WrittenRanges] = {}
    unread: set[str] = set()
    launch = LaunchPoints(ndrange=space.ndrange, scalars=scalars, slabs=space)
    is_followed = not facts.gaps and all(one.buffer is not None for one in shared)
    for name, size_bytes in sizes_bytes.items():
        own = [one for one in shared if one.buffer == name]
        loads = [one for one in own if one.kind is AccessKind.LOAD]
        stores = [one for one in own if one.kind is not AccessKind.LOAD]
        if is_followed and not stores:
            rules[name] = MergeRule.READ
            continue
        places = _place(stores, loads, launch) if is_followed else None
        footprint = _find_disjoint(*places, launch, size_bytes) if places else None
        rules[name] = MergeRule.COMPARE if footprint is None else MergeRule.RANGES
        if footprint is not None:
            footprints[name] = footprint
            if all(one.kind is AccessKind.STORE for one in own):
                unread.add(name)
        elif loads and not assumes_independence and not (places and _is_own(*places)):
            refusals.append(_explain_loads(name, loads, stores))
    return SplitSafety(
        space=space,
        rules=rules,
        footprints=footprints,
        refusals=tuple(dict.fromkeys(refusals)),
        unread=frozenset(unread),
    )


def _refuse_atomics(accesses: Sequence[MemoryAccess]) -> list[str]:
    return [
        f"line {one.line}: {one.text} is an atomic operation on global memory: work-groups on "
        "different devices would not see each other's"
        for one in accesses
        if one.kind is AccessKind.ATOMIC
    ]


def _refuse_unknown(facts: KernelFacts, accesses: Sequence[MemoryAccess]) -> list[str]:
    """Refuse what might hide a store or a load."""
    found = [f"line {gap.line}: {gap.reason}" if gap.line else gap.reason for gap in facts.gaps]
    found += [
        f"line {one.line}: it is not known into which buffer {one.text} points"
        for one in accesses
        if one.buffer is None
    ]
    return [f"{one}; so what work-groups write cannot be told" for one in found]


_Places = tuple[list[PlacedAccesses], list[PlacedAccesses]]


def _place(
    stores: Sequence[MemoryAccess], loads: Sequence[MemoryAccess], launch: LaunchPoints
) -> _Places | None:
    """Find the points at which a buffer is written and read; None if that is not known."""
    context = make_context()
    try:
        written = list(launch.place(stores, context, is_exact=False))
        return written, list(launch.place(loads, context, is_exact=False))
    except NotKnownError:
        return None


def _find_disjoint(
    stores: Sequence[PlacedAccesses],
    loads: Sequence[PlacedAccesses],
    launch: LaunchPoints,
    size_bytes: int,
) -> WrittenRanges | None:
    """Find what each slab writes, if that is provably nobody else's."""
    for detail in range(_MOST_DETAIL + 1):
        try:
            written = find_footprint(stores, launch, size_bytes, detail=detail)
            if not written.is_disjoint:
                continue
            read = find_footprint(loads, launch, size_bytes, detail=detail)
        except (NotKnownError, EvaluationError):
            return None
        if read.meets_only_own(written):
            return written.sort()
    return None


def _is_own(stores: Sequence[PlacedAccesses], loads: Sequence[PlacedAccesses]) -> bool:
    """Tell whether no slab writes or reads what another one writes, stretches or not."""
    if not all(one.curved_bytes.is_zero for one in (*stores, *loads)):
        return False
    try:
        written, read = (
            [
                relate_bytes(one.points, one.offset_bytes + shift, access.bytes, SLAB)
                for one in some
                for shift, access in one.members
            ]
            for some in (stores, loads)
        )
        return are_apart(written, [*written, *read])
    except NotKnownError:
        return False


def _explain_loads(name: str, loads: Sequence[MemoryAccess], stores: Sequence[MemoryAccess]) -> str:
    read, written = loads[0], stores[0] if stores else loads[0]
    if any(one.line == other.line and one.offset_bytes == other.offset_bytes
           for one in loads for other in stores):  # fmt: skip
        return (
            f"line {written.line}: {written.text} is read and written, and work-groups may share "
            f"elements of {name}: such sums would be lost between devices"
        )
    return (
        f"line {read.line}: {read.text} may read what another work-group writes to {name} "
        f"(line {written.line}), which may have run on another device"
    )
