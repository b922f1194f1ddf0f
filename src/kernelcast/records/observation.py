"""What was seen of a launch on a device: features, samples and the time of the whole kernel."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.frames import Frame, make_frame
from kernelcast.records.launch_identity import LaunchIdentity, digest_text
from kernelcast.records.observed_times import MachineState, RunTimes, SampleSet
from kernelcast.records.samples import SampleRun


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
            kernel_digest=self.launch.kernel.digest,
            device_id=self.launch.device.id,
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
