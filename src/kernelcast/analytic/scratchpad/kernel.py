"""A processor whose cores fill scratchpads themselves (Table I), and a kernel on it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadMachine:
    """A processor in the numbers of Table I."""

    id: str
    name: str
    clock_hz: float
    """``Freq``."""
    bandwidth_bytes_per_s: float
    """``mem_bw``: of memory, per core group."""
    transaction_bytes: int
    """``Trans_size``: bytes of a transaction with memory."""
    delay_cycles: float
    """Delta delay: what each further transaction of a request adds to its latency."""
    base_latency_cycles: float
    """``L_base``: of a request that meets no other."""
    latencies_cycles: Mapping[str, float]
    """``L_t``: of each type of compute instruction."""
    cpes_per_group: int
    core_groups: int
    """Computing elements of a core group, and core groups."""
    spm_bytes: int
    gload_bytes: int

    def __post_init__(self) -> None:
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not (math.isfinite(value) and value > 0):
                raise InputError(f"machine {self.id}: {name} is {value}; expected a number above 0")
        if not self.latencies_cycles:
            raise InputError(f"machine {self.id}: no latency of a compute instruction is given")

    @property
    def most_cpes(self) -> int:
        """Computing elements of the whole processor."""
        return self.cpes_per_group * self.core_groups

    def bandwidth(self, active_cpes: int) -> float:
        """Compute the bandwidth of the core groups that active elements fill (Section V-C3)."""
        if not 1 <= active_cpes <= self.most_cpes:
            raise InputError(
                f"{active_cpes} active CPEs: {self.name} has {self.most_cpes} "
                f"({self.core_groups} core groups of {self.cpes_per_group}); give 1 to "
                f"{self.most_cpes}"
            )
        return -(-active_cpes // self.cpes_per_group) * self.bandwidth_bytes_per_s


class Direction(StrEnum):
    """Which way a DMA request copies."""

    IN = "in"
    """From memory to the scratchpad."""
    OUT = "out"
    """From the scratchpad to memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One array's part of a DMA request."""

    bytes: float
    chunk_bytes: float | None = None
    """Bytes that lie side by side in memory; None if all do. Each chunk takes whole transactions
    (Section III-C, strided transfers)."""

    def __post_init__(self) -> None:
        chunk = self.bytes if self.chunk_bytes is None else self.chunk_bytes
        if not 0 < chunk <= self.bytes:
            raise InputError(
                f"a copy of {self.bytes} bytes in chunks of {chunk}; expected both above 0, and "
                "chunks no larger than the copy"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaRequest:
    """DMA requests of one kind, as one CPE issues them: one for all arrays of a copy intrinsic."""

    name: str
    direction: Direction
    copies: tuple[Copy, ...]
    count: float = 1.0
    """Requests of one CPE."""

    def __post_init__(self) -> None:
        if not self.copies or self.count <= 0:
            msg = f"DMA request {self.name}: needs at least one copy and a count above 0"
            raise InputError(msg)

    @property
    def bytes(self) -> float:
        """What one request copies: ``Req_size_DMA``."""
        return sum(one.bytes for one in self.copies)

    def divided(self, parts: int) -> "DmaRequest":
        """Give smaller requests that copy the same in all (Section IV-1)."""
        copies = tuple(
            replace(
                one,
                bytes=one.bytes / parts,
                chunk_bytes=None
                if one.chunk_bytes is None
                else min(one.chunk_bytes, one.bytes / parts),
            )
            for one in self.copies
        )
        return replace(self, copies=copies, count=self.count * parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GloadRequest:
    """Gload requests of one kind: loads and stores of registers, around the scratchpad."""

    name: str
    bytes: float
    """What one request moves: ``Req_size_g``."""
    count: float
    """Requests of one CPE."""

    def __post_init__(self) -> None:
        if self.bytes <= 0 or self.count <= 0:
            msg = f"Gload request {self.name}: {self.count} of {self.bytes} bytes; expected above 0"
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadKernel:
    """A kernel as one CPE executes it, the longest where they differ."""

    name: str
    active_cpes: int
    """``#active_CPEs``."""
    dma: tuple[DmaRequest, ...] = ()
    """``#DMA_reqs`` is the sum of their counts."""
    gloads: tuple[GloadRequest, ...] = ()
    """``#g_reqs`` is the sum of their counts."""
    compute: Mapping[str, float] = field(default_factory=dict)
    """``#t``: compute instructions by type; types are those of the machine."""
    average_ilp: float = 1.0
    """``avg_ILP``: compute instructions in flight together, at least 1."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.average_ilp < 1 or self.active_cpes < 1:
            raise InputError(
                f"{self.name}: average ILP {self.average_ilp}, {self.active_cpes} active CPEs; "
                "expected both at least 1"
            )
        if any(count < 0 for count in self.compute.values()):
            raise InputError(f"{self.name}: a number of compute instructions is negative")
        if not self.dma and not self.gloads and not any(self.compute.values()):
            msg = f"{self.name}: no DMA or Gload request and no compute instruction is given"
            raise InputError(msg)
