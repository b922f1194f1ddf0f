"""What was seen of a launch on a device: features, samples and the time of the whole kernel."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Measurement
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.frames import Frame, make_frame
from kernelcast.records.problem import LaunchIdentity, digest_text
from kernelcast.records.samples import SampleRun, TimedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    median_s: float
    durations_s: tuple[float, ...] = ()
    """Each run, in seconds, in the order they ran; empty where only a summary is known."""
    noise: float | None = None
    """Half the 10-90 % spread over the median; None where it is not known, as of a single run."""
    run_count: int = 1
    started_s: tuple[float, ...] = ()
    """When each run began, in seconds since 1970; empty where that is not known."""

    def __post_init__(self) -> None:
        for seconds in (self.median_s, *self.durations_s):
            if not 0 < seconds < math.inf:
                raise InputError(f"observation: a run took {seconds} s; expected a positive time")
        if self.noise is not None and not 0 <= self.noise < math.inf:
            msg = f"observation: the noise is {self.noise}; expected a share of at least 0"
            raise InputError(msg)
        if self.run_count < 1 or (self.durations_s and len(self.durations_s) != self.run_count):
            raise InputError(
                f"observation: {self.run_count} runs and {len(self.durations_s)} times; expected "
                "one time each, or none where only their median is known"
            )
        if self.started_s and len(self.started_s) != self.run_count:
            raise InputError(
                f"observation: {self.run_count} runs and {len(self.started_s)} times at which they "
                "began; expected one each, or none where they are not known"
            )


def summarise_runs(durations_s: Sequence[float], started_s: Sequence[float] = ()) -> RunTimes:
    """Make the record of whole runs from each run's time."""
    if not durations_s:
        raise InputError("observation: there are no runs; time the whole kernel at least once")
    times = tuple(map(float, durations_s))
    if not min(times) > 0:
        raise InputError(f"observation: a run took {min(times)} s; expected a positive time")
    measured = Measurement(durations_s=times)
    return RunTimes(
        median_s=measured.seconds,
        durations_s=times,
        noise=measured.noise if len(times) > 1 else None,
        run_count=len(times),
        started_s=tuple(map(float, started_s)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """Launches of a few work-groups from which one estimate could be made."""

    multiple: int
    """k: the sampling points are k and k + 1 times the least launch that saturates the device (the
    paper's Fig. 15); 0 where the sizes followed another rule, as a time budget."""
    window_set: int
    """Which of several choices of places in the index space."""
    launches: tuple[TimedLaunch, ...]
    launch_overhead_s: float
    """Time of a launch that does nothing, in seconds."""
    is_even: bool
    linear_s: float | None = None
    """The linear model's time of the whole launch, in seconds; None where it has no answer."""
    overhead_s: float = 0.0
    """Host time of everything but the launches: copies of buffers, warm-up, arithmetic."""
    at_s: float | None = None
    """When the first of them ran, in seconds since 1970; None where that is not known."""
    imbalance: float = 1.0
    """Of cores that get parts beforehand, see `SampleRun`."""

    def __post_init__(self) -> None:
        if not self.launches:
            raise InputError("observation: a sample set without launches; leave the set out")
        if min(self.multiple, self.window_set) < 0:
            raise InputError(
                f"observation: sample set {self.window_set} at multiple {self.multiple}; expected "
                "numbers of at least 0"
            )
        for seconds in (self.launch_overhead_s, self.overhead_s, self.linear_s or 0.0):
            if not 0 <= seconds < math.inf:
                msg = f"observation: a sample set holds {seconds} s; expected at least 0"
                raise InputError(msg)

    @property
    def sampling_s(self) -> float:
        """Device time of the launches: the cost of the sample, in seconds."""
        return sum(launch.duration_s for launch in self.launches)

    @property
    def work_groups(self) -> tuple[int, ...]:
        return tuple(launch.box.work_group_count for launch in self.launches)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """How busy and how fast the machine was; None is what could not be read."""

    load: float | None = None
    """Processes that wanted to run, averaged over the last minute."""
    governor: str | None = None
    """Rule of the processor's clock, such as ``performance``."""
    temperature_celsius: float | None = None
    """Of the warmest sensor of the device or processor."""
    clock_hz: float | None = None
    others_busy: float | None = None
    """Processors that other processes kept busy meanwhile, on average."""
    stolen: float | None = None
    """Processors that the host of a virtual machine gave to others meanwhile, on average."""
    slowdown: float | None = None
    """How many times as long as alone the launch took; the times that are kept are those alone."""


class Origin(StrEnum):
    """How an observation came about."""

    COLLECTED = "collected"
    OBSERVED = "observed"
    """A program or a scheduler ran the kernel anyway and told us."""
    IMPORTED = "imported"
    """Somebody else measured it; `Observation.source` says who."""


class ObservationFlag(StrEnum):
    """What a reader should know before learning from an observation."""

    CONTAMINATED = "contaminated"
    """The machine was busy with something else."""
    FIRST_LAUNCH = "first_launch"
    """The first launch of the kernel: compilation or a cold device may be in it."""
    OUTLIER = "outlier"
    DOUBTED = "doubted"
    """It contradicted what was known of the launch when it came."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One launch on one device: what could be known before it ran, and how long it took."""

    launch: LaunchIdentity
    runs: RunTimes
    features: FeatureVector | None = None
    samples: tuple[SampleSet, ...] = ()
    """Sampled launches; the first is the one that `features` were made with."""
    origin: Origin = Origin.COLLECTED
    source: str = ""
    """Of imported ones: data set and licence."""
    measurement: str = ""
    """Tells repeated measurements of one launch apart; empty for the one of a collection."""
    flags: frozenset[ObservationFlag] = frozenset()
    machine_state: MachineState = field(default_factory=MachineState)
    versions: Mapping[str, str] = field(default_factory=dict)
    """``kernelcast``, ``pyopencl``, ``runtime``, the ``sampler``'s revision, and others."""
    measured_at: datetime | None = None
    """When, with a time zone; None where it is not known."""

    def __post_init__(self) -> None:
        _check_time(self.measured_at)

    @cached_property
    def key(self) -> str:
        """Hex SHA-256 of launch and measurement: a store holds each key once."""
        return digest_text(self.launch.key, self.measurement)

    @property
    def seconds(self) -> float:
        return self.runs.median_s

    @property
    def sampler(self) -> int:
        return read_sampler(self.versions)

    def to_row(self) -> dict[str, object]:
        first = self.samples[0] if self.samples else None
        return {
            **self.list_facts(),
            "linear_s": None if first is None else first.linear_s,
            "sampling_s": None if first is None else first.sampling_s,
            **({} if self.features is None else self.features.as_dict()),
        }

    def to_frame(self) -> Frame:
        """Make a DataFrame of one row; `kernelcast.to_frame` takes many."""
        return make_frame([self.to_row()])

    def list_facts(self) -> dict[str, object]:
        """List launch, times and circumstances by name, without features and samples."""
        from kernelcast.records.plain import pick

        return {
            **pick(
                self, "key", launch_key="launch.key", kernel="launch.kernel.label",
                kernel_digest="launch.kernel.digest", device_id="launch.device.id",
                device="launch.device.name", platform="launch.device.platform",
                driver="launch.device.driver", global_size="launch.ndrange.global_size",
                local_size="launch.ndrange.local_size",
                global_offset="launch.ndrange.global_offset",
                work_groups="launch.work_group_count", parameters="launch.parameters",
                seconds="runs.median_s", noise="runs.noise", runs="runs.run_count",
                origin="origin.value", source="source", measurement="measurement",
            ),
            "flags": tuple(sorted(self.flags)),
            "measured_at": self.measured_at,
        }  # fmt: skip

    def sample_run(self, place: int = 0) -> SampleRun:
        ndrange = self.launch.ndrange
        if ndrange is None or not -len(self.samples) <= place < len(self.samples):
            raise InputError(
                f"observation of {self.launch.kernel.name}: has {len(self.samples)} sample sets, "
                f"number {place} was asked for"
            )
        one = self.samples[place]
        return SampleRun(
            ndrange=ndrange,
            launches=one.launches,
            launch_overhead_s=one.launch_overhead_s,
            is_even=one.is_even,
            imbalance=one.imbalance,
        )


def read_sampler(versions: Mapping[str, str]) -> int:
    """Read the revision of the sampler; observations, and models, that do not tell are of 1."""
    told = versions.get("sampler", "1")
    if not told.isdecimal():
        msg = f"observation: its sampler is of revision {told!r}; expected a whole number"
        raise InputError(msg)
    return int(told)


@dataclass(frozen=True, kw_only=True)
class FailureRecord:
    """A launch that could not be observed; never a large number among the times."""

    launch: LaunchIdentity
    kind: str
    """Name of the error's class."""
    message: str
    failed_at: datetime | None = None
    measurement: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            raise InputError("failure record: no kind; give the name of the error's class")
        _check_time(self.failed_at)

    @cached_property
    def key(self) -> str:
        return digest_text(self.launch.key, self.measurement, self.kind)


def _check_time(moment: datetime | None) -> None:
    if moment is not None and moment.tzinfo is None:
        msg = f"observation: the time {moment} has no time zone; give one, as datetime.now(UTC) has"
        raise InputError(msg)
