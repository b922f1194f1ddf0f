"""A launch as analytic models see it: what it touches and what it executes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.records.software_counters import WarpCounters

NOTHING = OperationCounts(operations={}, memory={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledLaunch:
    """Everything an analytic model knows of a launch; no device and no source behind it.

    Parameters
    ----------
    kernel : str
        Its name, for messages.
    ndrange : NDRange
        The index space; the local size is chosen.
    accesses : tuple of MemoryAccess
        What each work-item touches, from the source, from text or from a code generator.
    scalars : mapping of str to int
        Values of the scalar arguments that expressions name.
    buffers : mapping of str to int
        Bytes of each buffer, where known. A buffer that is missing has no known end.
    alignments : mapping of str to int
        Offset of a buffer's first byte from a 128-byte boundary, in bytes, 0 when left out.
    executed : OperationCounts
        Mean per work-item.
    registers : int or None
        32-bit registers per work-item; None if no compiler was asked.
    local_bytes : int
        Local memory per work-group.
    updates_per_work_item : int
        Results that one work-item computes (thread folding); what volumes per update refer to.
    recorded : RecordedAddresses or None
        Addresses of sampled work-groups, for accesses whose address depends on data.
    warps : tuple of WarpCounters
        How work-items that run in step share instructions, by width; none if it was not counted.
    notes : tuple of str
        What is estimated or missing.
    """

    kernel: str
    ndrange: NDRange
    accesses: tuple[MemoryAccess, ...]
    scalars: Mapping[str, int] = field(default_factory=dict)
    buffers: Mapping[str, int] = field(default_factory=dict)
    alignments: Mapping[str, int] = field(default_factory=dict)
    executed: OperationCounts = NOTHING
    registers: int | None = None
    local_bytes: int = 0
    updates_per_work_item: int = 1
    recorded: RecordedAddresses | None = None
    warps: tuple[WarpCounters, ...] = ()
    notes: tuple[str, ...] = ()
