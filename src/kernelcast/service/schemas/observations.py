"""Measured launches as callers report them."""

from typing import Annotated, Self

from pydantic import AwareDatetime, Field, model_validator

from kernelcast.service.schemas.common import Open, Strict, Text
from kernelcast.service.schemas.problems import DIGEST, ProblemIn

Seconds = Annotated[float, Field(gt=0, lt=1e9)]


class DeviceIn(Strict):
    """A device of another host."""

    id: Text
    name: str = Field(default="", max_length=200)
    platform: str = Field(default="", max_length=200)
    driver: str = Field(default="", max_length=200)


class ObservationIn(Strict):
    """How long a launch has really taken."""

    key: Text = Field(
        description="Your name of this measurement: of one launch, each key counts once."
    )
    problem: ProblemIn | None = None
    problem_digest: Annotated[str, Field(pattern=DIGEST)] | None = None
    device: Text | DeviceIn = Field(description="Id of a device of this host, or a whole device.")
    seconds: Seconds | None = Field(default=None, description="Time of the whole kernel.")
    durations_seconds: list[Seconds] = Field(
        default=[], max_length=1000, description="Of several runs, instead of `seconds`."
    )
    local_size: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        max_length=3,
        description="What the device chose, where the problem does not say it.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32)
    measured_at: AwareDatetime | None = None
    is_first_launch: bool = Field(default=False, description="Compilation may be in the time.")
    is_contaminated: bool = Field(default=False, description="Other work ran beside it.")

    @model_validator(mode="after")
    def check_choices(self) -> Self:
        """Refuse what is given twice or not at all."""
        if (self.problem is None) == (self.problem_digest is None):
            msg = "give either `problem` or `problem_digest`"
            raise ValueError(msg)
        if (self.seconds is None) == (not self.durations_seconds):
            msg = "give either `seconds` or `durations_seconds`"
            raise ValueError(msg)
        return self

    @property
    def durations_s(self) -> tuple[float, ...]:
        """Each run, in seconds."""
        return tuple(self.durations_seconds) if self.seconds is None else (self.seconds,)


class ObservationsRequest(Strict):
    """A batch: all of it is stored, or nothing."""

    observations: list[ObservationIn] = Field(min_length=1)


class ObservationsOut(Open):
    """What became of a batch; it is stored when this answer comes."""

    added: int = Field(description="New ones.")
    known: int = Field(description="Those whose key was there; they stay as they were.")
