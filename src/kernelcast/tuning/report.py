"""What tuning has found on a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from kernelcast.tuning.settings import TuneModels

UNKNOWN = 3
"""Grade of a configuration of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedConfiguration:
    """What is known of a configuration.

    Parameters
    ----------
    number : int
        Place in the search space.
    parameters : mapping of str to number
        Its values.
    global_size, local_size : tuple of int
        Of its launch; empty where there is none.
    build_options : tuple of str
        Of its kernel.
    predicted_s : float or None
        By the analytic model, in seconds.
    sampled_s : float or None
        By a few work-groups that ran, in seconds.
    runs_s : tuple of float
        Measured whole runs, in seconds.
    build_s : float
        Host time of building it and of its first run, in seconds; 0 if it was not built.
    obstacle : str
        Why it cannot be launched.
    limiter : str
        What the analytic model says bounds it.
    note : str
        What the model did not understand.
    """

    number: int
    parameters: Mapping[str, int | float]
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()
    build_options: tuple[str, ...] = ()
    predicted_s: float | None = None
    sampled_s: float | None = None
    runs_s: tuple[float, ...] = ()
    build_s: float = 0.0
    obstacle: str = ""
    limiter: str = ""
    note: str = ""

    @property
    def measured_s(self) -> float | None:
        """Median of the measured runs, in seconds."""
        return median(self.runs_s) if self.runs_s else None

    @property
    def expected_s(self) -> float | None:
        """The best that is known: measured, else sampled, else predicted, in seconds."""
        for one in (self.measured_s, self.sampled_s, self.predicted_s):
            if one is not None:
                return one
        return None

    @property
    def grade(self) -> int:
        """How far it was looked at: 0 measured, 1 sampled, 2 predicted, 3 nothing known."""
        for grade, one in enumerate((self.measured_s, self.sampled_s, self.predicted_s)):
            if one is not None:
                return grade
        return UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneReport:
    """How a kernel is best launched on a device.

    Parameters
    ----------
    problem, kernel : str
        The problem's name and its kernel.
    device, device_id : str
        The device.
    names : tuple of str
        What was searched over.
    models : TuneModels
        What ranked.
    configurations : tuple of TunedConfiguration
        Best first: measured ones by their medians, then sampled ones, then predicted ones, then
        those that cannot be launched.
    models_s, sampling_s, measuring_s : float
        Host time of ranking by models, of sampling, and of measuring, builds included, in
        seconds.
    is_complete : bool
        False if it was interrupted.
    warnings : tuple of str
        What to know.
    """

    problem: str
    kernel: str
    device: str
    device_id: str
    names: tuple[str, ...]
    models: TuneModels
    configurations: tuple[TunedConfiguration, ...]
    models_s: float
    sampling_s: float = 0.0
    measuring_s: float = 0.0
    is_complete: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def pick(self) -> TunedConfiguration | None:
        """The configuration to use; None if none can be launched."""
        return next((one for one in self.configurations if one.grade < UNKNOWN), None)

    @property
    def valid_count(self) -> int:
        """Configurations that can be launched, as far as is known."""
        return sum(not one.obstacle for one in self.configurations)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneFailure:
    """A device that could not be tuned for.

    Parameters
    ----------
    problem, device, device_id : str
        Which.
    message : str
        Why.
    """

    problem: str
    device: str
    device_id: str
    message: str


def sort_configurations(
    found: Mapping[int, TunedConfiguration],
) -> tuple[TunedConfiguration, ...]:
    """Put the best first; what cannot be launched comes last."""

    def key(one: TunedConfiguration) -> tuple[bool, int, float, int]:
        seconds = one.expected_s
        known = float("inf") if seconds is None else seconds
        return (bool(one.obstacle), one.grade, known, one.number)

    return tuple(sorted(found.values(), key=key))
