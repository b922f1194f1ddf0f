"""What a device is asked to run for tuning, in a child process, and what it tells."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.problem import Problem


class EventKind(StrEnum):
    """What happened to a configuration."""

    STARTED = "started"
    """It is being built; told first, so that it is known what a driver died of."""
    BUILT = "built"
    """Built and run once; `seconds` is what that took on the host."""
    RAN = "ran"
    """Run once more as a whole; `seconds` is its time."""
    SAMPLED = "sampled"
    """A few work-groups ran; `seconds` is the estimate of the whole launch."""
    REFUSED = "refused"
    """The device does not take it; `reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningEvent:
    """What happened to a configuration.

    Parameters
    ----------
    cost_s : float
        Host time of it, in seconds.
    cpu_s : float
        Of a build or run: time of all threads of the process that did it, in seconds. On a CPU
        device and a machine that others use as well, it says more than the time that passed.
    """

    number: int
    kind: EventKind
    seconds: float = 0.0
    cost_s: float = 0.0
    reason: str = ""
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTask:
    """Configurations to be measured on one device.

    Parameters
    ----------
    runs : dict of int to int
        Runs that each still needs.
    """

    device_id: str
    problems: dict[int, Problem]
    runs: dict[int, int]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTask:
    """Configurations to be sampled on one device."""

    device_id: str
    problems: dict[int, Problem]
    settings: EstimateSettings
