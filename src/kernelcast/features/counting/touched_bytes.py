"""How many different bytes of its buffers a launch touches, at least, and a part of it."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.evaluation import BoolArray, evaluate_where
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.operations import MemorySpace

_UNITS_BYTES: Final = (64, 4096)
_SPACES: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT})


def count_touched_bytes(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], sizes: Mapping[str, int]
) -> float:
    """Estimate bytes that a launch touches by each buffer's widest access on some groups."""
    total = ndrange.work_group_count
    count = max(1, min(total, 64, (1 << 16) // ndrange.work_group_size))
    items = bind_ids(ndrange, sorted({total * place // count for place in range(count)}))
    known = items.bindings | bind_names(scalars)
    most: dict[str, float] = {}
    for access in facts.accesses:
        size = sizes.get(access.buffer or "")
        if size is None or access.space not in _SPACES or not access.is_exact:
            continue
        offsets = _find_offsets(access, known, items.is_present)
        elements = 0 if offsets is None else np.unique(offsets).size
        touched = elements * access.bytes * total / count
        most[str(access.buffer)] = max(most.get(str(access.buffer), 0.0), min(touched, size))
    return sum(most.values())


def compare_touched(
    facts: KernelFacts, ndrange: NDRange, scalars: Mapping[str, int], box: GroupBox
) -> tuple[float, float] | None:
    """Compare lines and pages per work-group of a box with the launch's; None if not known."""
    accesses = [one for one in facts.accesses if one.space in _SPACES]
    if not accesses or not all(one.is_exact and one.buffer for one in accesses):
        return None
    total, counts = ndrange.work_group_count, ndrange.group_counts
    # So many work-items take a few milliseconds for each access.
    most = max(1, (1 << 17) // ndrange.work_group_size)
    strides = np.cumprod([1, *counts[:-1]])
    places = np.indices(box.shape).reshape(len(counts), -1).T + np.array(box.start)
    own = np.sort(places @ strides)[:most]
    first = min(max(int(own[0]) - most // 2, 0), max(total - most, 0))
    per_group = []
    for groups in (own, np.arange(first, min(first + most, total))):
        items = bind_ids(ndrange, groups.tolist())
        known = items.bindings | bind_names(scalars)
        touched: dict[str, npt.NDArray[np.float64]] = {}
        for access in accesses:
            offsets = _find_offsets(access, known, items.is_present)
            if offsets is None:
                return None
            name = str(access.buffer)
            counted = [np.unique(offsets // unit).size / len(groups) for unit in _UNITS_BYTES]
            touched[name] = np.maximum(touched.get(name, np.zeros(len(_UNITS_BYTES))), counted)
        per_group.append(sum(touched.values()))
    lines, pages = np.asarray(per_group[0]) / np.asarray(per_group[1])
    return (float(lines), float(pages)) if np.isfinite([lines, pages]).all() else None


def _find_offsets(
    access: MemoryAccess, known: Mapping[Symbol, Value], mask: BoolArray
) -> npt.NDArray[np.int64] | None:
    """Find the offsets of an access in the first iterations of its loops; None if not known."""
    assert access.offset_bytes is not None
    bindings = dict(known)
    runs = mask
    try:
        for loop in access.loops:
            if loop.trip_count is None:
                return None
            trips = np.asarray(evaluate_where(loop.trip_count, runs, bindings))
            runs = np.logical_and(runs, trips > 0)
            bindings[Symbol(SymbolKind.LOOP, loop.name)] = 0
        runs = np.logical_and(runs, evaluate_where(access.guard, runs, bindings))
        offsets = np.asarray(evaluate_where(access.offset_bytes, runs, bindings))
    except EvaluationError:
        return None
    found: npt.NDArray[np.int64] = np.broadcast_to(offsets, runs.shape)[runs]
    return found
