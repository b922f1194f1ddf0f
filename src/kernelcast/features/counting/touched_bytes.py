"""How many different bytes of its buffers a launch touches, at least."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.evaluation import BoolArray, evaluate_where
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace

_MOST_ITEMS: Final = 1 << 16
_MOST_GROUPS: Final = 64
_SPACES: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT})


def count_touched_bytes(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], sizes: Mapping[str, int]
) -> float:
    """Count the different bytes of buffers that a launch loads or stores, at least.

    Parameters
    ----------
    ndrange : NDRange
        Its launch; the local size is chosen.
    sizes : mapping of str to int
        Bytes of buffers by the names of their parameters.

    Returns
    -------
    float
        By work-groups spread over the index space, of each buffer by the access that touches most
        of it in the first iteration of its loops; never more than the buffer has. What depends on
        data counts as nothing.
    """
    total = ndrange.work_group_count
    count = max(1, min(total, _MOST_GROUPS, _MOST_ITEMS // ndrange.work_group_size))
    items = bind_ids(ndrange, sorted({total * place // count for place in range(count)}))
    known = items.bindings | bind_names(scalars)
    most: dict[str, float] = {}
    for access in facts.accesses:
        size = sizes.get(access.buffer or "")
        if size is None or access.space not in _SPACES or not access.is_exact:
            continue
        touched = _count(access, known, items.is_present) * total / count
        most[str(access.buffer)] = max(most.get(str(access.buffer), 0.0), min(touched, size))
    return sum(most.values())


def _count(access: MemoryAccess, known: Mapping[Symbol, Value], mask: BoolArray) -> int:
    """Count the different bytes that an access touches in the first iterations of its loops."""
    assert access.offset_bytes is not None
    bindings = dict(known)
    runs = mask
    try:
        for loop in access.loops:
            if loop.trip_count is None:
                return 0
            trips = np.asarray(evaluate_where(loop.trip_count, runs, bindings))
            runs = np.logical_and(runs, trips > 0)
            bindings[Symbol(SymbolKind.LOOP, loop.name)] = 0
        runs = np.logical_and(runs, evaluate_where(access.guard, runs, bindings))
        offsets = np.asarray(evaluate_where(access.offset_bytes, runs, bindings))
    except EvaluationError:
        return 0
    return int(np.unique(np.broadcast_to(offsets, runs.shape)[runs]).size) * access.bytes
