"""Which work-groups do anything: borders of the index space that provably touch no memory."""

from collections.abc import Mapping

from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.isl import NotKnownError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import LaunchPoints, PlacedAccesses
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.operations import MemorySpace

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
