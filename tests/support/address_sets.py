"""Enumerates the addresses that an access expression describes, one by one: slow and obvious."""

from collections.abc import Mapping
from itertools import count

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Expr, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.records.ndrange import NDRange

_AXES = 3


def bind_group(ndrange: NDRange, group: int, scalars: Mapping[str, int]) -> dict[Symbol, Value]:
    """Give the values of all symbols for the work-items of one uniform work-group."""
    items = np.arange(ndrange.work_group_size, dtype=np.int64)[:, None]
    bound: dict[Symbol, Value] = {
        Symbol(SymbolKind.SCALAR, name): value for name, value in scalars.items()
    }
    for axis in range(_AXES):
        is_used = axis < ndrange.dimensions
        size = ndrange.known_local_size[axis] if is_used else 1
        count = ndrange.group_counts[axis] if is_used else 1
        offset = ndrange.global_offset[axis] if is_used else 0
        own, local = group % count, items % size
        values: dict[SymbolKind, Value] = {
            SymbolKind.LOCAL_ID: local,
            SymbolKind.GROUP_ID: own,
            SymbolKind.GLOBAL_ID: own * size + local + offset,
            SymbolKind.LOCAL_SIZE: size,
            SymbolKind.GLOBAL_SIZE: ndrange.global_size[axis] if is_used else 1,
            SymbolKind.GROUP_COUNT: count,
            SymbolKind.GLOBAL_OFFSET: offset,
        }
        bound |= {Symbol(kind, axis=axis): value for kind, value in values.items()}
        items, group = items // size, group // count
    return bound


def bind_item(
    ndrange: NDRange, group: int, item: int, scalars: Mapping[str, int]
) -> dict[Symbol, Value]:
    """Give the values of all symbols for one work-item of a uniform work-group."""
    return {
        symbol: value[item : item + 1] if isinstance(value, np.ndarray) else value
        for symbol, value in bind_group(ndrange, group, scalars).items()
    }


def enumerate_offsets(access: MemoryAccess, bound: Mapping[Symbol, Value]) -> set[int]:
    """Give every offset that the work-items of a work-group touch through one access."""
    return _enumerate(access, dict(bound), depth=0, active=np.array([[True]]))


def _enumerate(
    access: MemoryAccess, bound: dict[Symbol, Value], *, depth: int, active: npt.NDArray[np.bool_]
) -> set[int]:
    if depth == len(access.loops):
        return _offsets(access, bound, active)
    loop = access.loops[depth]
    symbol = Symbol(SymbolKind.LOOP, loop.name)
    if depth == len(access.loops) - 1 and isinstance(loop.trip_count, Expr):
        # All iterations of an innermost loop at once.
        trips = int(np.max(loop.trip_count.evaluate(bound)))
        inner = {**bound, symbol: np.arange(trips, dtype=np.int64)[None, :]}
        runs = np.logical_and(active, loop.condition.evaluate(inner))
        return _enumerate(access, inner, depth=depth + 1, active=runs)
    found: set[int] = set()
    for number in count():
        inner = {**bound, symbol: number}
        runs = np.logical_and(active, loop.condition.evaluate(inner))
        if not runs.any():
            break
        found |= _enumerate(access, inner, depth=depth + 1, active=runs)
    return found


def _offsets(
    access: MemoryAccess, bound: Mapping[Symbol, Value], active: npt.NDArray[np.bool_]
) -> set[int]:
    if access.offset_bytes is None:
        return set()
    offsets = access.offset_bytes.evaluate(bound)
    is_met = np.logical_and(active, access.guard.evaluate(bound))
    wide, met = np.broadcast_arrays(np.asarray(offsets), is_met)
    return set(np.unique(wide[met]).tolist())
