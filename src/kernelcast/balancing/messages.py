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
class Place:
    """A buffer's place in the memory that all processes share.

    Parameters
    ----------
    start, size : int
        In bytes.
    """

    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Build the kernel, take the buffers.

    Parameters
    ----------
    kernel, ndrange, arguments
        The launch.
    contents : tuple of Place, NumPy scalar or LocalArgument
        Of the arguments.
    memory_bytes : int
        Size of the shared memory; its descriptor comes beside this message if it is new.
    is_new_memory : bool
        Whether it does.
    in_place : frozenset of int
        Positions of buffers that all devices may use where they lie: those that are only read, and
        those that are only written, each byte by one device.
    """

    kernel: Kernel
    ndrange: NDRange
    arguments: tuple[Argument, ...]
    contents: tuple[Place | np.generic | LocalArgument, ...]
    memory_bytes: int
    is_new_memory: bool
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Run a few slabs and tell the speed.

    Parameters
    ----------
    space : SlabSpace
        The slabs.
    budget : float
        Share of the whole launch's time.
    seed : int
        Of the places.
    is_known_even : bool
        Whether the source proves that all work-groups do the same.
    """

    space: SlabSpace
    budget: float
    seed: int
    is_known_even: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run some slabs."""

    space: SlabSpace
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Write results into the shared memory.

    Parameters
    ----------
    spans : mapping of int to tuple of (int, int)
        Stretches of bytes, by the argument's position.
    targets : mapping of int to Place
        Where the argument's bytes go.
    """

    spans: Mapping[int, tuple[ByteSpan, ...]]
    targets: Mapping[int, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Drop the buffers; the device stays open."""


Command = Prepare | Sample | Run | Collect | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A command is done.

    Parameters
    ----------
    start_s, end_s : float
        When it began and ended.
    """

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Reply):
    """The device is open; comes once, before any command."""

    device_id: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Reply):
    """Kernel and buffers are on the device.

    Parameters
    ----------
    ndrange : NDRange
        With the local size that was chosen.
    build_s, upload_s : float
        Host time of building and of taking the buffers.
    uploaded_bytes : int
        What was taken.
    in_place : frozenset of int
        Positions of the buffers that are used where they lie.
    """

    ndrange: NDRange
    build_s: float
    upload_s: float
    uploaded_bytes: int = 0
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint(Reply):
    """A first idea of the speed while samples still run; answers no command.

    Parameters
    ----------
    rate : float
        Slabs per second, about.
    """

    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled(Reply):
    """What the samples say; they are done.

    Parameters
    ----------
    spans : tuple of Span
        Slabs that were run.
    seconds, low_s, high_s : float or None
        Of the whole launch on this device, with its interval; None if nothing was left to time.
    rates : tuple of (float, float)
        Middle of each timed place as a share of the index space, and seconds per slab there.
    is_even : bool
        Whether work seems the same everywhere.
    """

    spans: tuple[Span, ...]
    seconds: float | None
    low_s: float | None
    high_s: float | None
    rates: tuple[tuple[float, float], ...]
    is_even: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Reply):
    """Slabs are done."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected(Reply):
    """Results are in the shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Reply):
    """The device has failed; what its buffers hold is unknown.

    Parameters
    ----------
    error : KernelcastError
        Why.
    is_final : bool
        Whether its process has ended; otherwise it could take another launch.
    """

    error: KernelcastError
    is_final: bool = True
