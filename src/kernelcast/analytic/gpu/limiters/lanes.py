"""Addresses of a few warps, lane by lane."""

import math

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Bindings, EvaluationError, Symbol, SymbolKind
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch

IntArray = npt.NDArray[np.int64]


def list_warp(launch: ModelledLaunch, warp_width: int) -> IntArray:
    """Give the local linear ids of a work-group's first warp."""
    return np.arange(min(warp_width, launch.ndrange.work_group_size))


def bind_lanes(launch: ModelledLaunch, lanes: IntArray, work_groups: int) -> Bindings:
    """Give the ids of some work-items of some work-groups.

    Parameters
    ----------
    launch : ModelledLaunch
        Index space and scalar arguments count.
    lanes : ndarray of int64, shape (work-items,)
        Local linear ids.
    work_groups : int
        Neighbours along dimension 0, from the middle of the index space on, as many as there are.

    Returns
    -------
    mapping of Symbol to int or ndarray of shape (work-groups, work-items)
    """
    ndrange = launch.ndrange
    sizes, counts = ndrange.known_local_size, ndrange.group_counts
    bound: dict[Symbol, int | IntArray] = {
        Symbol(SymbolKind.SCALAR, name): value for name, value in launch.scalars.items()
    }
    for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        local = lanes[np.newaxis, :] // math.prod(sizes[:axis]) % size
        group = np.full((1, 1), count // 2)
        if axis == 0:
            group = np.arange(count // 2, min(count // 2 + work_groups, count))[:, np.newaxis]
        first = ndrange.global_offset[axis]
        bound |= {
            Symbol(SymbolKind.LOCAL_ID, axis=axis): local,
            Symbol(SymbolKind.GROUP_ID, axis=axis): group,
            Symbol(SymbolKind.GLOBAL_ID, axis=axis): group * size + local + first,
            Symbol(SymbolKind.LOCAL_SIZE, axis=axis): size,
            Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): ndrange.global_size[axis],
            Symbol(SymbolKind.GROUP_COUNT, axis=axis): count,
            Symbol(SymbolKind.GLOBAL_OFFSET, axis=axis): first,
        }
    return bound


def find_offsets(access: MemoryAccess, ids: Bindings) -> IntArray | None:
    """Give the offsets of an access, all loops around it at their first iteration.

    Parameters
    ----------
    access : MemoryAccess
        Any access.
    ids : mapping of Symbol to value
        From `bind_lanes`.

    Returns
    -------
    ndarray of int64, shape (work-groups, lanes), or None if the address is not known
    """
    if access.offset_bytes is None:
        return None
    first = {Symbol(SymbolKind.LOOP, one.name): 0 for one in access.loops}
    try:
        return np.atleast_2d(access.offset_bytes.evaluate({**ids, **first} if first else ids))
    except EvaluationError:
        return None
