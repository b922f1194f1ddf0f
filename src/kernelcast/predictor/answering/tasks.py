"""What is asked of a device, in a child process, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.moments import SampledMoment
from kernelcast.models.evidence.piece import Piece
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import Access
from kernelcast.records.estimates import Estimate
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.recording import Recording
from kernelcast.training.peaks import UNKNOWN, DevicePeaks


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What is known of a launch on a device beside samples; it holds for every sampling.

    Parameters
    ----------
    values : mapping of str to float
        All features but the sampled ones, by name.
    issued_per_work_item : float or None
        Instructions issued per work-item, by software counters.
    analytic : AnalyticEstimate or None
        What the analytic model of the device says.
    accesses : tuple of Access or None
        What the kernel may do with each argument, as far as the source tells.
    notes : tuple of str
        What could not be had, and why.
    cost_s : float
        Host time of finding it out, in seconds.
    peaks : DevicePeaks
        Of the device.
    """

    values: Mapping[str, float]
    issued_per_work_item: float | None
    analytic: AnalyticEstimate | None
    accesses: tuple[Access | None, ...] = ()
    notes: tuple[str, ...] = ()
    cost_s: float = 0.0
    peaks: DevicePeaks = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow:
    """What learned models see of one launch on one device: a row of a `TrainingTable`.

    Parameters
    ----------
    vector : FeatureVector
        Features, made exactly as a collection makes them.
    linear_s, linear_error : float
        The linear model's time in seconds, and its standard error as a share of it.
    two_point_s : float or None
        Time by the paper's formula, in seconds.
    sampling_s : float
        Device time of the samples, in seconds.
    work_groups, compute_units : int
        Of the launch, and of the device.
    peaks : DevicePeaks
        Of the device.
    """

    vector: FeatureVector
    linear_s: float
    linear_error: float
    two_point_s: float | None
    sampling_s: float
    work_groups: int
    compute_units: int
    peaks: DevicePeaks = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTask:
    """An estimate to be made in a child process.

    Parameters
    ----------
    problem : Problem
        The launch.
    device_id : str
        The device.
    settings : EstimateSettings
        Budget, coverage, measurement.
    wants_row : bool
        Whether a learned model waits for the launch's features.
    wants_counts : bool
        Whether a copy of the kernel that counts is worth its build; else counters are derived from
        the source.
    facts : LaunchFacts or None
        Found at an earlier sampling of the same launch.
    """

    problem: Problem
    device_id: str
    settings: EstimateSettings
    wants_row: bool = False
    wants_counts: bool = True
    facts: LaunchFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOutcome:
    """An estimate from samples, with all that came up on the way.

    Parameters
    ----------
    estimate : Estimate
        By the linear model.
    recording : Recording
        The samples.
    row : LaunchRow or None
        What learned models need, where it was asked for and could be had.
    facts : LaunchFacts or None
        To be given back at the next sampling of the launch.
    row_failure : str
        Why there is no row although one was asked for.
    accesses : tuple of Access or None
        What the kernel may do with each argument; None where it is no buffer or unknown.
    moments : tuple of SampledMoment
        What the samples of each moment say.
    depends_on_contents : bool or None
        Whether what buffers hold decides how much work-items do; None where the source was not
        read.
    pieces : tuple of Piece
        What a recorded answer was put together of; it is put together of the same again.
    by_clock : bool
        Whether samples were timed by the host's clock, since the device's events tell wrong times.
    """

    estimate: Estimate
    recording: Recording
    row: LaunchRow | None = None
    facts: LaunchFacts | None = None
    row_failure: str = ""
    accesses: tuple[Access | None, ...] = ()
    moments: tuple[SampledMoment, ...] = ()
    depends_on_contents: bool | None = None
    pieces: tuple[Piece, ...] = ()
    by_clock: bool = False

    def with_total(self, total_s: float) -> "EstimateOutcome":
        """Say how long the answer has taken as a whole, processes and messages included."""
        overhead_s = max(total_s - self.estimate.sampling_seconds, self.estimate.overhead_seconds)
        return replace(self, estimate=replace(self.estimate, overhead_seconds=overhead_s))

    def with_facts(self, facts: Mapping[str, object]) -> "EstimateOutcome":
        """Put facts into the recording, from which they answer again."""
        return replace(self, recording=replace(self.recording, facts=facts))

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
        return replace(self, recording=replace(self.recording, runs=(), whole_s=(), facts=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTask:
    """A launch that the analytic model of a device shall answer for alone.

    Parameters
    ----------
    problem : Problem
        The launch.
    device_id : str
        The device.
    wants_bytes : bool
        Whether to count the bytes that it touches, even if the model has no answer.
    stand_in : str
        Name of the shipped description that counts if the device was not calibrated; may be empty.
    """

    problem: Problem
    device_id: str
    wants_bytes: bool = False
    stand_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcome:
    """What the analytic model said.

    Parameters
    ----------
    analytic : AnalyticEstimate or None
        None if the device was not calibrated.
    ndrange : NDRange
        The launch, local size chosen.
    notes : tuple of str
        What was assumed.
    touched_bytes : float
        Different bytes of buffers that the launch touches at least, where they were asked for.
    depends_on_contents : bool or None
        As of `EstimateOutcome`.
    """

    analytic: AnalyticEstimate | None
    ndrange: NDRange
    notes: tuple[str, ...] = ()
    touched_bytes: float = 0.0
    depends_on_contents: bool | None = None
