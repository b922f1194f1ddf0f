"""What the host and the devices' processes tell each other. Times are CLOCK_MONOTONIC's."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.records.arguments import Argument, LocalArgument
from kernelcast.records.balance import SlabSpace, Span
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

ByteSpan = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRange:
    """A buffer's place in the memory that all processes share, in bytes."""

    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Build the kernel, take the buffers."""

    kernel: Kernel
    ndrange: NDRange
    arguments: tuple[Argument, ...]
    contents: tuple[MemoryRange | np.generic | LocalArgument, ...]
    memory_bytes: int
    in_place: frozenset[int] = frozenset()
    """Positions of buffers that all devices may use where they lie: those that are only read, and
    those that are only written, each byte by one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run some slabs, each span as a launch of its own."""

    space: SlabSpace
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Write stretches of buffers, by the argument's position, into the shared memory."""

    spans: Mapping[int, tuple[ByteSpan, ...]]
    targets: Mapping[int, MemoryRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Drop the buffers; the device stays open."""


Command = Prepare | Run | Collect | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A command is done; it began and ended then."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Reply):
    """The device is open; comes once, before any command."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Reply):
    """Kernel and buffers are on the device."""

    upload_s: float
    uploaded_bytes: int = 0
    in_place: frozenset[int] = frozenset()
    """Positions of the buffers that are used where they lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Reply):
    """Slabs are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected(Reply):
    """Results are in the shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Reply):
    """The device has failed; what its buffers hold is unknown."""

    error: KernelcastError
    is_final: bool = True
