"""A launch as analytic models see it: what it touches and what it executes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, WarpCounters

NOTHING = OperationCounts(operations={}, memory={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledLaunch:
    kernel: str
    ndrange: NDRange
    accesses: tuple[MemoryAccess, ...]
    """What each work-item touches, from the source, from text or from a code generator."""
    scalars: Mapping[str, int] = field(default_factory=dict)
    buffers: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each buffer, where known. A buffer that is missing has no known end."""
    alignments: Mapping[str, int] = field(default_factory=dict)
    """Offset of a buffer's first byte from a 128-byte boundary, in bytes, 0 when left out."""
    executed: OperationCounts = NOTHING
    work: Mapping[str, float] | None = None
    """What a warp executes by compiled code, see `kernelcast.analytic.gpu.code.read_work`; None
    where no compiler for GPUs was asked, or data decide of loops."""
    registers: int | None = None
    local_bytes: int = 0
    updates_per_work_item: int = 1
    """Results that one work-item computes (thread folding); what volumes per update refer to."""
    recorded: RecordedAddresses | None = None
    warps: tuple[WarpCounters, ...] = ()
    """How work-items that run in step share instructions, by width; none if it was not counted."""
    notes: tuple[str, ...] = ()
    unjumped: OperationCounts = NOTHING
    """Mean per work-item of a device that goes through both sides of every condition."""
    problem: Problem | None = None
    """Whose source has its code; None of folded launches, and of accesses written down."""
    doubt: float = 0.0
    """By how much the logarithm of the work may be off, where data end loops."""
