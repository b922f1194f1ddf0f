"""Where a collection stands, and what it has come to."""

from dataclasses import dataclass, field

from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import FailureRecord, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionProgress:
    """Where a collection stands."""

    device_id: str
    """What is at work, with the kernel and its stage."""
    kernel: str
    stage: str
    done: int
    """Kernels on devices."""
    total: int
    """Of so many."""
    rows: int
    """Rows measured so far."""
    remaining_s: float | None = None
    """About what the rest will take, in seconds; None as long as nobody knows."""


@dataclass(slots=True, kw_only=True)
class DeviceOutcome:
    """What a collection has come to on one device."""

    device_id: str
    kernels: int = 0
    measured: int = 0
    """Rows measured now."""
    present: int = 0
    """Rows that were there already."""
    disturbed: int = 0
    """Measured rows that stay contaminated."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Kernels, or rows of kernels, that were left out, with the reason."""
    failures: list[FailureRecord] = field(default_factory=list)
    """Launches that could not be observed."""
    errors: dict[str, str] = field(default_factory=dict)
    """Kernels that could not even be begun, with the reason."""

    def absorb(self, other: "DeviceOutcome") -> None:
        """Add what another part of the collection has come to on the same device."""
        self.kernels += other.kernels
        self.measured += other.measured
        self.present += other.present
        self.disturbed += other.disturbed
        self.skipped.update(other.skipped)
        self.failures += other.failures
        self.errors.update(other.errors)


@dataclass(slots=True, kw_only=True)
class CollectionOutcome:
    """What a collection has come to."""

    devices: list[DeviceOutcome] = field(default_factory=list)
    """In the order they were asked."""
    is_interrupted: bool = False
    """Whether Ctrl-C ended it."""
    is_out_of_time: bool = False
    """Whether the time budget ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesChosen:
    """At which sizes a kernel is collected on this device."""

    sizes: tuple[int, ...]
    """Values of its size parameter, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStarted:
    """A launch is about to be measured; if the process dies, it was this one."""

    launch: LaunchIdentity
    number: int
    """Which row of this kernel, from 1."""
    total: int
    """Of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSkipped:
    """A row that is not measured: it is there already, or too small or long for the collection."""

    launch_key: str
    reason: str = ""
    """Why; empty if it is there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMeasured:
    """An observation, to be stored at once."""

    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFailed:
    """A launch that the device refused or failed at."""

    failure: FailureRecord


Message = SizesChosen | RowStarted | RowSkipped | RowMeasured | RowFailed
