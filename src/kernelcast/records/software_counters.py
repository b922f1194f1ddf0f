"""What work-items execute: counted by an instrumented kernel, recorded, or read in the source."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.kernel import Kernel
from kernelcast.records.operations import MemorySpace, OperationCounts, add_weighted

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterSample:
    work_groups: tuple[int, ...]
    """Numbers of the work-groups, dimension 0 fastest."""
    counts: npt.NDArray[np.float64]
    """Shape (work-groups, work-items, counters). Work-items in the order of their local linear id;
    0 for those that a smaller remainder work-group lacks."""
    is_exact: tuple[bool, ...]
    """Per counter: whether it was counted or follows from the source, and is no estimate."""
    work_items: tuple[int, ...]

    @property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Whether a work-group has a work-item: bools of shape (work-groups, work-items)."""
        sizes = np.asarray(self.work_items).reshape(-1, 1)
        return np.asarray(np.arange(self.counts.shape[1])[None, :] < sizes, dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpCounters:
    """How work-items that run in step share instructions."""

    width: int
    """Work-items that run in step: a warp, a wavefront, a sub-group."""
    issued: float
    """Instructions issued per warp: a block as often as the work-item that executes it most."""
    executed: float
    branches: float
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
    is_store: bool
    requests: float
    sectors_per_request: float
    """Distinct 32-byte sectors that one request touches."""
    ideal_sectors_per_request: float
    """As many as the bytes would need if they were contiguous."""
    bank_conflicts_per_request: float
    """Extra passes for local memory of 32 banks, 4 bytes wide; 0 for other memory."""
    is_measured: bool

    @property
    def is_coalesced(self) -> bool:
        """Whether a request needs hardly more sectors than its bytes."""
        return self.sectors_per_request <= 1.5 * self.ideal_sectors_per_request


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareCounters:
    """What a work-item executes on average, and how warps share it."""

    work_groups: int
    work_items: int
    executed: OperationCounts
    block_counts: tuple[float, ...]
    """How often each block of `KernelFacts.blocks` is executed, mean per work-item."""
    warps: tuple[WarpCounters, ...]
    loops: tuple[LoopTrips, ...]
    patterns: tuple[RequestPattern, ...]
    """One per place that touches memory, where addresses are known or were recorded."""
    is_exact: bool
    is_measured: bool = False
    """Whether an instrumented run counted, or the source tells all that it would count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentedKernel:
    """A kernel with three more parameters at its end: ``__global uint *kc_counts``,
    ``__global ulong *kc_log`` and ``uint kc_capacity``.

    Rows are global ids of the launch, less its offset, dimension 0 fastest. The first one takes
    counter `c` of the work-item in row `r` of `n` at ``c * n + r``. The second one takes, per row,
    `kc_capacity` pairs of an access's site and address, which one more counter behind the others
    counts. Addresses are relative to the buffer or array where the source tells which it is.
    """

    kernel: Kernel
    header: str
    """Functions that must see OpenCL's own builtins, so it goes before everything else."""
    counter_count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedAddresses:
    """Memory accesses of some work-groups, one by one, in any order."""

    work_groups: tuple[int, ...]
    """Numbers of the work-groups that were recorded, dimension 0 fastest."""
    work_items: tuple[int, ...]
    sites: IntArray
    """Shape (accesses,). Place in the source: `MemoryAccess.site`."""
    groups: IntArray
    local_ids: IntArray
    """Shape (accesses,). Local linear id of the work-item."""
    sequences: IntArray
    """Shape (accesses,). How often the work-item had executed the site before."""
    offsets_bytes: IntArray
    """Shape (accesses,). Offset in the buffer, or any address if the buffer is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFacts:
    """A line with code of the kernel, or of a function that it calls."""

    line: int
    """Its number, from 1. What goes over several lines counts for the line where it begins."""
    parts: tuple[tuple[int, OperationCounts], ...]
    """Indices in `KernelFacts.blocks`, and what one execution of the block executes on the line."""

    @property
    def once(self) -> OperationCounts:
        return add_weighted((counts, 1) for _, counts in self.parts)

    def executions(self, block_counts: Sequence[float]) -> float:
        return max(block_counts[block] for block, _ in self.parts)

    def executed(self, block_counts: Sequence[float]) -> OperationCounts:
        """Count what is executed on it, where blocks are executed that often."""
        return add_weighted(
            (counts, block_counts[block]) for block, counts in self.parts if block_counts[block]
        )
