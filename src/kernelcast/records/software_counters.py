"""What sampled work-items executed: counted by an instrumented kernel, or derived from source."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import RecordingError
from kernelcast.records.operations import MemorySpace, OperationCounts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterSample:
    """Counters of some work-groups, work-item by work-item."""

    work_groups: tuple[int, ...]
    """Numbers of the work-groups, dimension 0 fastest."""
    counts: npt.NDArray[np.float64]
    """Shape (work-groups, work-items, counters). Work-items in the order of their local linear id.
    A remainder work-group that is smaller holds NaN for those it lacks."""
    is_exact: tuple[bool, ...]
    """Per counter: whether it was counted, or follows exactly from the source; False for an
    estimate."""
    work_items: tuple[int, ...] | None = None
    """Work-items of each work-group; None if NaN tells, or there are no smaller ones. A kernel
    without counters needs it for its remainder work-groups."""

    def __post_init__(self) -> None:
        wanted = (len(self.work_groups), len(self.is_exact))
        shape = self.counts.shape
        if self.counts.ndim != 3 or (shape[0], shape[2]) != wanted:
            msg = (
                f"counts have shape {shape}; expected ({wanted[0]}, work-items, {wanted[1]}): "
                "one row per work-group, one column per counter"
            )
            raise RecordingError(msg)
        if self.work_items is not None and len(self.work_items) != len(self.work_groups):
            msg = (
                f"sizes of {len(self.work_items)} work-groups given; "
                f"expected {len(self.work_groups)}: one per work-group"
            )
            raise RecordingError(msg)

    @property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Whether a work-group has a work-item: bools of shape (work-groups, work-items)."""
        if self.work_items is not None:
            sizes = np.asarray(self.work_items).reshape(-1, 1)
            return np.asarray(np.arange(self.counts.shape[1])[None, :] < sizes, dtype=np.bool_)
        return np.asarray(np.isfinite(self.counts).all(axis=2), dtype=np.bool_)

    def repeat(self, times: Sequence[int]) -> "CounterSample":
        """Repeat each work-group of the sample so many times."""
        if all(time == 1 for time in times):
            return self
        return CounterSample(
            work_groups=tuple(np.repeat(self.work_groups, times).tolist()),
            counts=np.repeat(self.counts, times, axis=0),
            is_exact=self.is_exact,
            work_items=None
            if self.work_items is None
            else tuple(np.repeat(self.work_items, times).tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpCounters:
    """How work-items that run in step share instructions."""

    width: int
    """Work-items that run in step: a warp, a wavefront, a sub-group."""
    issued: float
    """Instructions issued per warp: a block is issued as often as the work-item that executes it
    most often."""
    executed: float
    """Instructions executed per warp, summed over its work-items."""
    branches: float
    """Conditional branches issued per warp."""
    divergent_branches: float
    """Those of them, at least, at which work-items part."""

    @property
    def lane_efficiency(self) -> float:
        """Share of lanes that do useful work, 1 without divergence."""
        return self.executed / (self.width * self.issued) if self.issued else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTrips:
    """How many iterations a loop makes per entry of the kernel and work-item."""

    line: int
    function: str
    mean: float
    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPattern:
    """How the work-items of a warp touch memory at one place of the source."""

    site: int
    line: int
    buffer: str | None
    space: MemorySpace
    """Address space."""
    is_store: bool
    """Whether it writes."""
    requests: float
    sectors_per_request: float
    """Distinct 32-byte sectors that one request touches."""
    ideal_sectors_per_request: float
    """As many as the bytes would need if they were contiguous."""
    bank_conflicts_per_request: float
    """Extra passes for local memory of 32 banks, 4 bytes wide; 0 for other memory."""
    is_measured: bool
    """Whether addresses were recorded; else they were computed."""

    @property
    def is_coalesced(self) -> bool:
        """Whether a request needs hardly more sectors than its bytes."""
        return self.sectors_per_request <= 1.5 * self.ideal_sectors_per_request


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareCounters:
    """What a work-item executes on average, and how warps share it."""

    work_groups: int
    work_items: int
    """How many were sampled."""
    executed: OperationCounts
    """Mean per work-item."""
    block_counts: tuple[float, ...]
    """How often each block of `KernelFacts.blocks` is executed, mean per work-item."""
    warps: tuple[WarpCounters, ...]
    """One per width asked for."""
    loops: tuple[LoopTrips, ...]
    """One per loop of the source."""
    patterns: tuple[RequestPattern, ...]
    """One per place that touches memory, where addresses are known or were recorded."""
    is_exact: bool
    """Whether nothing was estimated."""
    instrumented_s: float | None = None
    plain_s: float | None = None
    """Time of the instrumented run and of the same work-groups of the plain kernel, in seconds."""
