"""Addresses of a few warps, lane by lane."""

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Bindings, EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.modelled_launch import ModelledLaunch

IntArray = npt.NDArray[np.int64]


def list_warp(launch: ModelledLaunch, warp_width: int) -> IntArray:
    """Give the local linear ids of a work-group's first warp."""
    return np.arange(min(warp_width, launch.ndrange.work_group_size))


def bind_lanes(launch: ModelledLaunch, lanes: IntArray, work_groups: int) -> Bindings:
    """Give the ids of some work-items of some work-groups.

    Parameters
    ----------
    lanes : ndarray of int64, shape (work-items,)
        Local linear ids.
    work_groups : int
        Neighbours along dimension 0, from the middle of the index space on, as many as there are.

    Returns
    -------
    mapping of Symbol to int or ndarray of shape (work-groups, work-items)
    """
    bound: dict[Symbol, Value] = {**bind_names(launch.scalars)}
    for axis in list_axes(launch.ndrange):
        first = axis.groups // 2
        end = min(first + work_groups, axis.groups) if axis.number == 0 else first + 1
        groups = np.arange(first, end)[:, np.newaxis]
        bound |= axis.bind(groups, lanes[np.newaxis, :] % axis.local, axis.local)
        lanes = lanes // axis.local
    return bound


def find_offsets(access: MemoryAccess, ids: Bindings) -> IntArray | None:
    """Give the offsets of an access, all loops around it at their first iteration.

    Parameters
    ----------
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
