"""Work-groups larger than the domain: idle work-items, kept out by a guard."""

import math
from dataclasses import replace

from kernelcast.expressions import Symbol, SymbolKind, conjunction, less
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import add_weighted


def pad(launch: ModelledLaunch, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Enlarge the index space to at least one work-group; what is added does nothing.

    Parameters
    ----------
    local_size : tuple of int
        May exceed the domain.

    Returns
    -------
    ModelledLaunch
        With a guard along each dimension that was enlarged; what is executed is the mean over
        all work-items, idle ones too.
    """
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
