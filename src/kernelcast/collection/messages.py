"""What a collecting child process hands over before it ends."""

from dataclasses import dataclass

from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import FailureRecord, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesChosen:
    """At which sizes a kernel is collected on this device.

    Parameters
    ----------
    sizes : tuple of int
        Values of its size parameter, ascending.
    """

    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStarted:
    """A launch is about to be measured; if the process dies, it was this one.

    Parameters
    ----------
    number, total : int
        Which of how many rows of this kernel, from 1.
    """

    launch: LaunchIdentity
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSkipped:
    """A row that is not measured: it is there already, or too small or long for the collection.

    Parameters
    ----------
    reason : str
        Why; empty if it is there already.
    """

    launch_key: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMeasured:
    """An observation, to be stored at once."""

    observation: Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFailed:
    """A launch that the device refused or failed at."""

    failure: FailureRecord


Message = SizesChosen | RowStarted | RowSkipped | RowMeasured | RowFailed
