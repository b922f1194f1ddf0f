"""Measured launches as callers report them."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Self

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, model_validator

from kernelcast.service.schemas.common import Open, Strict, Text
from kernelcast.service.schemas.problems import ProblemRef

_FIRST: Final = datetime(2008, 12, 8, tzinfo=UTC)  # OpenCL 1.0
_CLOCKS_DIFFER: Final = timedelta(days=1)


def _check_moment(moment: datetime) -> datetime:
    """Refuse moments at which nothing can have been measured."""
    if not _FIRST <= moment <= datetime.now(UTC) + _CLOCKS_DIFFER:
        msg = f"{moment.isoformat()} is before OpenCL was there or in the future; give when it ran"
        raise ValueError(msg)
    return moment


Seconds = Annotated[float, Field(gt=0, lt=1e9)]
Moment = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_check_moment)]


class DeviceIn(Strict):
    """A device of another host."""

    id: Text
    name: str = Field(default="", max_length=200)
    platform: str = Field(default="", max_length=200)
    driver: str = Field(default="", max_length=200)


class Times(Strict):
    """How long a launch has taken, and when."""

    seconds: Seconds | None = Field(default=None, description="Time of the whole kernel.")
    # A default that can change would be copied for every observation: an eighth of a batch's time.
    durations_seconds: tuple[Seconds, ...] = Field(
        default=(),
        max_length=1000,
        strict=False,
        description="Of several runs, instead of `seconds`.",
    )
    measured_at: Moment | None = None

    @property
    def durations_s(self) -> tuple[float, ...]:
        """Each run, in seconds; empty where no time is given."""
        return self.durations_seconds if self.seconds is None else (self.seconds,)


class ObservationIn(ProblemRef, Times):
    """How long a launch has really taken."""

    key: Text = Field(
        description="Your name of this measurement: of one launch, each key counts once."
    )
    device: Text | DeviceIn = Field(description="Id of a device of this host, or a whole device.")
    local_size: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        max_length=3,
        description="What the device chose, where the problem does not say it.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32)
    is_first_launch: bool = Field(default=False, description="Compilation may be in the time.")
    is_contaminated: bool = Field(default=False, description="Other work ran beside it.")

    @model_validator(mode="after")
    def check_times(self) -> Self:
        """Refuse two times and none."""
        if (self.seconds is None) == (not self.durations_seconds):
            raise ValueError("give either `seconds` or `durations_seconds`")
        return self


class ObservationsRequest(Strict):
    """A batch: all of it is stored, or nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "observations": [
                    {"key": "run-17-step-3", "problem_digest": "0" * 64, "device": "pocl",
                     "seconds": 0.0123}
                ]
            }
        }
    )  # fmt: skip

    observations: list[ObservationIn] = Field(min_length=1)


class DoubtOut(Open):
    """An observation that is kept, and not believed until it repeats."""

    key: str = Field(description="Your name of the measurement.")
    observation: str = Field(description="Its key in the store.")
    reason: str = Field(description="What it contradicts.")


class ObservationsOut(Open):
    """What became of a batch; it is stored when this answer comes."""

    added: int = Field(description="New ones.")
    known: int = Field(description="Those whose key was there; they stay as they were.")
    doubted: list[DoubtOut] = Field(
        default=[], description="Those that contradict samples, physics or other observations."
    )


class StoredObservation(Open):
    """An observation of the store."""

    key: str = Field(description="Its key in the store.")
    launch_key: str = Field(description="Equal for exact repeats of the launch.")
    measurement: str = Field(description="What its reporter calls it.")
    kernel: str
    kernel_digest: str
    device_id: str
    driver: str
    global_size: list[int] | None
    local_size: list[int] | None
    seconds: float
    noise: float | None
    runs: int
    origin: str
    source: str
    flags: list[str]
    measured_at: str | None


class FoundObservations(Open):
    """Observations that a selection means."""

    count: int = Field(description="All of them.")
    observations: list[StoredObservation] = Field(
        description="A part of them, newest first by the time of measurement."
    )
    next: str | None = Field(
        default=None, description="For the parameter `next`; null where nothing follows."
    )


class RemovedObservations(FoundObservations):
    """What became of a selection."""

    removed: int
    is_dry_run: bool


class CorrectionIn(Times):
    """What shall be different; what is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"seconds": 0.0123, "is_contaminated": True}}
    )

    is_first_launch: bool | None = None
    is_contaminated: bool | None = None
    reason: str = Field(default="", max_length=500, description="For the audit log.")
    is_doubted: bool | None = Field(
        default=None, description="Whether it is to be believed only if it repeats."
    )

    @model_validator(mode="after")
    def check_choices(self) -> Self:
        """Refuse what changes nothing, and two times."""
        if not self.model_fields_set - {"reason"}:
            raise ValueError("say what shall be different")
        if self.seconds is not None and self.durations_seconds:
            raise ValueError("give either `seconds` or `durations_seconds`")
        return self
