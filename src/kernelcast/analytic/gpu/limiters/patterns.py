"""What the addresses of a few work-items tell: bank conflicts of local memory, pages."""

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.limiters.demands import SECTOR_BYTES
from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.expressions import Bindings, EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import MemorySpace

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


_BANKS = 32
_BANK_BYTES = 4
_MOST_ACCESSES = 16
"""Beyond these a kernel's mean hardly changes, and its time limit matters."""


def count_local_ways(launch: ModelledLaunch, warp_width: int) -> float:
    """Count how often banks of local memory are read per access, mean over the accesses.

    Parameters
    ----------
    launch : ModelledLaunch
        Its accesses to local memory whose addresses are known count.
    warp_width : int
        Work-items that access together; the first warp of the first work-group stands for all.

    Returns
    -------
    float
        1 without conflicts, and where no address is known.

    Examples
    --------
    >>> from kernelcast.records.ndrange import NDRange
    >>> ndrange = NDRange(global_size=(64,), local_size=(64,))
    >>> count_local_ways(ModelledLaunch(kernel="k", ndrange=ndrange, accesses=()), 32)
    1.0
    """
    local = [
        one
        for one in launch.accesses
        if one.space is MemorySpace.LOCAL and one.offset_bytes is not None
    ][:_MOST_ACCESSES]
    if not local:
        return 1.0
    ids = bind_lanes(launch, list_warp(launch, warp_width), 1)
    known = [
        _count_ways(offsets, one.bytes)
        for one in local
        if (offsets := find_offsets(one, ids)) is not None
    ]
    return sum(known) / len(known) if known else 1.0


def _count_ways(offsets: IntArray, size: int) -> float:
    words = np.unique(offsets // _BANK_BYTES)
    # Wider elements are served in parts; each part's conflicts are those of its first word.
    stride = max(size // _BANK_BYTES, 1)
    per_bank = np.bincount(words // stride % max(_BANKS // stride, 1))
    parts = max(len(words) * stride / _BANKS, 1.0)
    return max(float(per_bank.max()) / parts, 1.0)


_PAGE_BYTES = 2**21
_MAPPED = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})


def count_pages(launch: ModelledLaunch, volumes: GpuVolumes, enough: float) -> float:
    """Count the pages of 2 MiB that a work-group uses at once.

    The pages of its wave and the sectors it moves bound them from above; where that bound is low
    enough, it is the answer. Of a loop one iteration counts. Addresses that depend on data are
    left out: a random walk over 1.7 GB takes 314 ns a load on a V100, one over 24 MB 308 ns.

    Parameters
    ----------
    enough : float
        Pages up to which nobody needs to know more.

    Returns
    -------
    float
        Of a work-group in the middle of the index space.
    """
    sectors = (volumes.l1.compulsory_bytes + volumes.l1.stored_bytes) / SECTOR_BYTES
    most = min(volumes.wave.tlb_pages, sectors)
    accesses = [one for one in launch.accesses if one.space in _MAPPED]
    if most <= enough:
        return most
    corners = _list_corners(launch)
    ids = bind_lanes(launch, corners.ravel(), 1)
    found: dict[str | None, list[IntArray]] = {}
    for one in accesses:
        offsets = find_offsets(one, ids)
        if offsets is not None:
            same = np.broadcast_to(offsets, (1, corners.size))
            found.setdefault(one.buffer, []).append(same)
    touched = 0
    for parts in found.values():
        places = np.stack(parts).reshape(-1, *corners.shape)
        if not _fit_pages(places):
            return most
        touched += np.unique(places // _PAGE_BYTES).size
    return min(float(touched), most)


def _list_corners(launch: ModelledLaunch) -> IntArray:
    """Give local linear ids: all of dimension 2, first and last of dimensions 1 and 0."""
    x, y, z = (*launch.ndrange.known_local_size, 1, 1)[:3]
    layers = np.arange(z)[:, np.newaxis, np.newaxis] * x * y
    rows = np.array([0, y - 1])[:, np.newaxis] * x
    corners: IntArray = layers + rows + np.array([0, x - 1])
    return corners


def _fit_pages(places: IntArray) -> bool:
    """Tell whether no page lies between corners: then corners touch every page there is."""
    return all(int(np.ptp(places, axis=axis).max()) <= _PAGE_BYTES for axis in (2, 3))
