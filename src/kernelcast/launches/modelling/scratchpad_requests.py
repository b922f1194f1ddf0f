"""How the work-items of a work-group together touch memory: requests, bytes and chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import EvaluationError, Symbol
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.evaluation import evaluate_where
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.features.counting.broadcasting import widen
from kernelcast.features.counting.guards import estimate_share
from kernelcast.features.counting.points import Points, run_loops
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.trips import Loop

BUDGET = 65_536
"""Addresses evaluated per access, at most; beyond, some iterations stand for all."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequests:
    """What a work-group's executions of one access amount to, mean of some work-groups."""

    executions: float
    """By all its work-items."""
    requests: float
    """Executions that at least one work-item takes part in, all together."""
    bytes: float
    chunks: float
    """Of a request: distinct bytes, and contiguous pieces of memory that they lie in. 0 where the
    address is not known."""


def count_group_requests(access: MemoryAccess, launch: ModelledLaunch) -> GroupRequests:
    """Count an access's requests per work-group.

    Parameters
    ----------
    launch : ModelledLaunch
        Its index space and scalars count; conditions on data count as met half the time.
    """
    points = _follow(access, launch, choose_work_groups(launch.ndrange))
    groups = float(points.groups)
    weights = points.weights
    executions = float((weights[:, None] * points.share).sum()) / groups
    requests = float((weights * points.share.max(axis=1, initial=0.0)).sum()) / groups
    some = points.offsets is not None and weights.size > 0
    if not some or not requests:
        return GroupRequests(executions=executions, requests=requests, bytes=0.0, chunks=0.0)
    sizes, chunks = _measure(points, access.bytes)
    total = float(weights.sum())
    return GroupRequests(
        executions=executions,
        requests=requests,
        bytes=float((weights * sizes).sum()) / total,
        chunks=float((weights * chunks).sum()) / total,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Followed:
    """Iterations of an access: one row each, one column per work-item."""

    weights: FloatArray
    share: FloatArray
    offsets: npt.NDArray[np.int64] | None
    groups: int


def _follow(access: MemoryAccess, launch: ModelledLaunch, groups: Sequence[int]) -> _Followed:
    items = bind_ids(launch.ndrange, groups)
    bindings: Mapping[Symbol, object] = {**items.bindings, **bind_names(launch.scalars)}
    start = Points.start(bindings, items.is_present)  # type: ignore[arg-type]  # both are values
    loops = tuple(Loop(one) for one in access.loops)
    offset = access.offset_bytes
    own = frozenset(loop.symbol for loop in loops)
    if offset is not None and not offset.symbols() - own <= start.bindings.keys():
        offset = None
    wanted = access.guard.symbols() | (frozenset() if offset is None else offset.symbols())
    used = wanted.union(*(loop.symbols for loop in loops))
    points = run_loops(start.keep(used), loops, wanted, BUDGET)
    shape = points.is_active.shape
    share = estimate_share(access.guard, points.bindings, shape) * points.is_active
    kept = np.flatnonzero(share.any(axis=1))
    points, share = points.take(kept), share[kept]
    offsets = None
    if offset is not None:
        try:
            value = evaluate_where(offset, share > 0, points.bindings)
            offsets = widen(value, share.shape)
        except EvaluationError:
            offsets = None
    return _Followed(weights=points.weights, share=share, offsets=offsets, groups=len(groups))


def _measure(points: _Followed, element_bytes: int) -> tuple[FloatArray, FloatArray]:
    """Count the distinct bytes and the contiguous chunks of each row."""
    if points.offsets is None:
        nothing = np.zeros(points.weights.size)
        return nothing, nothing
    sizes, chunks = np.zeros(points.weights.size), np.zeros(points.weights.size)
    for row, (offsets, share) in enumerate(zip(points.offsets, points.share, strict=True)):
        begins = np.unique(offsets[share > 0])
        steps = np.diff(begins)
        sizes[row] = element_bytes + np.minimum(steps, element_bytes).sum()
        chunks[row] = 1 + np.count_nonzero(steps > element_bytes)
    return sizes, chunks
