"""What an estimate is asked for with."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError
from kernelcast.sampling.plan import SamplingPlan

DEFAULT_TIMEOUT_S = 300.0
# Longer waits do not fit the operating system's timers.
_LONGEST_TIMEOUT_S = 1e6
DEFAULT_LEAST_GAIN = 1.0
LONGEST_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSettings:
    """How an estimate is made.

    Raises
    ------
    InputError
        If a number is out of its range, or whole runs are to be measured without running any.
    """

    plan: SamplingPlan = field(default_factory=SamplingPlan)
    """How much to sample."""
    coverage: float = DEFAULT_COVERAGE
    """Share of true times that the interval shall hold, between 0 and 1."""
    measure: bool = False
    """Whether whole runs of the kernel are timed for comparison."""
    measured_runs: int = 5
    """How many whole runs."""
    seed: int = 0
    """Seed of random buffer contents."""
    samples: bool = True
    """Whether work-groups may be run; else other sizes of the kernel or the analytic model of the
    device answer alone."""
    uses_history: bool = True
    """Whether an exact repeat of an observed launch is answered from its observations, without
    sampling. Where whole runs are measured, history only stands beside the sampled answer."""
    uses_models: bool = True
    """Whether a learned model corrects the sampled answer, where there is one for the device."""
    within_s: float | None = None
    """Time that the caller waits, in seconds, builds and all else included: what is known by then
    answers. None: until the launch is sampled."""
    least_gain: float = DEFAULT_LEAST_GAIN
    """Where earlier samples of the launch are kept, or several other sizes of the kernel were
    observed, or the caller's time is limited: seconds by which a second of sampling has to narrow
    the interval, or it is left out. 0: every launch that was not observed itself is sampled."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.measure and not self.samples:
            raise InputError("measured runs without running anything: leave out one of both")
        if not 0 < self.coverage < 1:
            msg = f"coverage {self.coverage}: give a share between 0 and 1, for example 0.9"
            raise InputError(msg)
        if not self.least_gain >= 0:
            raise InputError(f"least gain {self.least_gain}: give seconds per second, at least 0")
        if self.measured_runs < 1:
            raise InputError(f"measured runs {self.measured_runs}: give at least 1")
        if self.within_s is not None and not 0 < self.within_s <= LONGEST_WITHIN_S:
            raise InputError(
                f"within {self.within_s} s: give seconds above 0, at most {LONGEST_WITHIN_S:g}, "
                "or leave them out"
            )


def check_seed(seed: int) -> None:
    """Refuse a seed of random contents that is none."""
    if seed < 0:
        raise InputError(f"seed {seed}: give a whole number of at least 0")


def check_timeout(timeout_s: float) -> None:
    """Refuse a time limit that no process can be given."""
    if not 0 < timeout_s <= _LONGEST_TIMEOUT_S:
        msg = f"timeout {timeout_s} s: give a number above 0, at most {_LONGEST_TIMEOUT_S:,.0f}"
        raise InputError(msg)


def prefix(report: Callable[[str], None], place: str) -> Callable[[str], None]:
    """Have stages told with where they are."""
    return lambda stage: report(place + stage)
