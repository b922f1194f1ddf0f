"""What the host and the devices' processes tell each other. Times are CLOCK_MONOTONIC's."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.records.arguments import Argument, LocalArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange

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
    """Run work-groups, each box as a launch of its own."""

    boxes: tuple[GroupBox, ...]


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
    device: str = ""
    """The device's name, once it is open: that is said before any command."""
    upload_s: float = 0.0
    uploaded_bytes: int = 0
    """What a device that is prepared took over, and how long that took."""
    in_place: frozenset[int] = frozenset()
    """Positions of the buffers that it uses where they lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Reply):
    """The device has failed; what its buffers hold is unknown."""

    error: KernelcastError
    is_final: bool = True
