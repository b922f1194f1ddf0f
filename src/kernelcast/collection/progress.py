"""Where a collection stands, and what it has come to."""

from dataclasses import dataclass, field

from kernelcast.records.observation import FailureRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionProgress:
    """Where a collection stands.

    Parameters
    ----------
    device_id, kernel, stage : str
        What is at work.
    done, total : int
        Kernels on devices.
    rows : int
        Rows measured so far.
    remaining_s : float or None
        About what the rest will take, in seconds; None as long as nobody knows.
    """

    device_id: str
    kernel: str
    stage: str
    done: int
    total: int
    rows: int
    remaining_s: float | None = None


@dataclass(slots=True, kw_only=True)
class DeviceOutcome:
    """What a collection has come to on one device.

    Parameters
    ----------
    measured, present, disturbed : int
        Rows measured now, rows that were there already, measured rows that stay contaminated.
    skipped : dict of str to str
        Kernels, or rows of kernels, that were left out, with the reason.
    failures : list of FailureRecord
        Launches that could not be observed.
    errors : dict of str to str
        Kernels that could not even be begun, with the reason.
    """

    device_id: str
    kernels: int = 0
    measured: int = 0
    present: int = 0
    disturbed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    failures: list[FailureRecord] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

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
    """What a collection has come to.

    Parameters
    ----------
    devices : list of DeviceOutcome
        In the order they were asked.
    is_interrupted : bool
        Whether Ctrl-C ended it.
    is_out_of_time : bool
        Whether the time budget ended it.
    """

    devices: list[DeviceOutcome] = field(default_factory=list)
    is_interrupted: bool = False
    is_out_of_time: bool = False
