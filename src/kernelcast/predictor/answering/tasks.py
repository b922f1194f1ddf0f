"""What is asked of a device, in a child process, and what comes back."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kernelcast.launches.recordings import LaunchFacts, Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.model import SampledMoment, read_moment
from kernelcast.records.arguments import Access
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun, pool_moments

MOST_MOMENTS: Final = 8
"""Of a launch: more say little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow:
    """What learned models see of one launch on one device: a row of a `TrainingTable`."""

    vector: FeatureVector
    """Features, made exactly as a collection makes them."""
    columns: Mapping[str, float]
    """The table's other columns; NaN where one is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTask:
    """An estimate to be made in a child process."""

    problem: Problem
    device_id: str
    settings: EstimateSettings
    wants_row: bool = False
    """Whether a learned model waits for the launch's features."""
    wants_counts: bool = True
    """Whether a copy of the kernel that counts is worth its build; else counters are derived from
    the source."""
    facts: LaunchFacts | None = None
    """Found at an earlier sampling of the same launch."""
    ends_s: float | None = None
    """`time.monotonic`, the same for all processes, at which it ends without samples; None: it
    takes its time."""
    waits_for_device: bool = False
    """Whether a program's own launches are waited for: the caller's time is limited."""
    runs_end_s: float = math.inf
    """`time.monotonic` at which whole runs have to be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOutcome:
    """An estimate from samples, with all that came up on the way."""

    estimate: Estimate
    recording: Recording
    """Its facts are to be given back at the next sampling of the launch."""
    row: LaunchRow | None = None
    """What learned models need, where it was asked for and could be had."""
    row_failure: str = ""
    """Why there is no row although one was asked for."""
    accesses: tuple[Access | None, ...] = ()
    """What the kernel may do with each argument; None where it is no buffer or unknown."""
    moments: tuple[SampledMoment, ...] = ()
    depends_on_contents: bool | None = None
    """Whether what buffers hold decides how much work-items do; None where the source was not
    read."""
    awaits_runs: bool = False
    """Whether whole runs are still to be timed."""
    by_clock: bool = False
    """Whether samples were timed by the host's clock, since the device's events tell wrong
    times."""

    def as_kept(self, coverage: float) -> "EstimateOutcome":
        """Give it as an answer of some coverage that nothing was run for: it costs nothing anew."""
        free = replace(
            self.estimate,
            interval=replace(self.estimate.interval, coverage=coverage),
            sampling_seconds=0.0,
            overhead_seconds=0.0,
            build_seconds=0.0,
        )
        return replace(self, estimate=free)

    def without_launches(self) -> "EstimateOutcome":
        """Give all but the launches behind it: thousands of answers stay in memory."""
        return replace(self, recording=replace(self.recording, runs=(), whole_s=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTask:
    """A launch that the analytic model of a device shall answer for alone."""

    problem: Problem
    device_id: str
    wants_bytes: bool = False
    """Whether to count the bytes that it touches, even if the model has no answer."""
    stand_in: str = ""
    """Name of the shipped description that counts if the device was not calibrated; may be
    empty."""
    wants_values: bool = False
    """Whether a learned model that needs no samples waits for features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcome:
    """What the analytic model said."""

    analytic: AnalyticEstimate | None
    """None if the device was not calibrated."""
    ndrange: NDRange
    notes: tuple[str, ...] = ()
    touched_bytes: float = 0.0
    """Different bytes of buffers that the launch touches at least, where they were asked for."""
    depends_on_contents: bool | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    """Features that source and analytic model tell, where they were asked for."""


def append_moments(
    before: Iterable[SampledMoment], more: Iterable[SampledMoment]
) -> tuple[SampledMoment, ...]:
    """Put samples behind earlier ones of the launch."""
    newest = [*before, *more][-MOST_MOMENTS:]
    return tuple(replace(one, moment=str(number)) for number, one in enumerate(newest, start=1))


def read_moments(
    runs: Iterable[SampleRun], facts: LaunchFacts | None = None
) -> tuple[SampledMoment, ...]:
    """Read samples of a launch, those of each moment by themselves as far as they tell of all."""
    values = facts.values if facts else {}
    return tuple(
        read_moment(
            run,
            moment=str(number),
            imbalance=values.get("counters.loop_imbalance_ratio", math.nan),
            indirect=values.get("static.indirect_access_ratio", 0.0),
        )
        for number, run in enumerate(pool_moments(list(runs)), start=1)
    )


def annotate(estimate: Estimate, *warnings: str, **explained: Any) -> Estimate:  # noqa: ANN401
    """Add warnings to an answer, and say more of how it was obtained."""
    return replace(
        estimate,
        warnings=(*estimate.warnings, *warnings),
        explanation=replace(estimate.explain(), **explained),
    )


def put_analytic(estimate: Estimate, found: AnalyticEstimate | None) -> Estimate:
    if found is None:
        return estimate
    estimates_s = {**estimate.estimates_s, "analytic": found.seconds}
    estimate = replace(estimate, estimates_s=estimates_s, limiter=found.limiter)
    return annotate(estimate, limiters=dict(found.limiters))
