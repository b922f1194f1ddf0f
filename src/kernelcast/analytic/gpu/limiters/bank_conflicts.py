"""Bank conflicts of local memory, from the addresses of one warp."""

import numpy as np

from kernelcast.analytic.gpu.limiters.lanes import IntArray, bind_lanes, find_offsets, list_warp
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import MemorySpace

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
