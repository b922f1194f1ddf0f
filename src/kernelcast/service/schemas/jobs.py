"""Jobs as callers ask for them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service.schemas.common import ErrorBody, Open, Strict, Text

Devices = Annotated[list[Text], Field(max_length=64)]
Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, le=1e7)]
Split = Literal["kernel", "application"]


class CollectOptions(Strict):
    """How the corpus is measured; what is left out is as of `kernelcast collect`."""

    devices: Devices = Field(default=[])
    kernels: Annotated[list[Text], Field(max_length=200)] = Field(
        default=[], description="Names or patterns of the corpus; all when left out."
    )
    sizes: int | None = Field(default=None, ge=1, le=100)
    local_sizes: int | None = Field(default=None, ge=1, le=20)
    runs: int | None = Field(default=None, ge=1, le=100)
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    shortest_seconds: Positive | None = None
    longest_seconds: Positive | None = None
    row_timeout_seconds: Positive | None = None
    time_budget_seconds: Positive | None = Field(
        default=None, description="No further row is begun on a device after this time."
    )
    retry_failures: bool = False


class CalibrateOptions(Strict):
    """How devices are calibrated."""

    devices: Devices = Field(default=[])
    effort: Literal["quick", "normal", "full"] = "normal"
    only: Annotated[list[Text], Field(max_length=100)] = Field(
        default=[], description="Microbenchmarks; all when left out."
    )


class TrainOptions(Strict):
    """How models are trained."""

    devices: Devices = Field(default=[])
    model: Text = "hybrid"
    # "validate" is a method of pydantic's own.
    with_validation: bool = Field(default=True, alias="validate")


class ValidateOptions(Strict):
    """How models are validated."""

    devices: Devices = Field(default=[])
    models: list[Text] = Field(default=[], max_length=50)
    split: Literal["kernel", "application", "device"] = "kernel"
    shortest_seconds: float | None = Field(default=None, ge=0)
    least_work_groups: int | None = Field(default=None, ge=0)


class CompareOptions(Strict):
    """Which two models are compared."""

    first: Text
    second: Text
    devices: Devices = Field(default=[])
    split: Split = "kernel"
    shortest_seconds: float | None = Field(default=None, ge=0)
    least_work_groups: int | None = Field(default=None, ge=0)
    resamples: int | None = Field(default=None, ge=100, le=100_000)


class CollectJob(Strict):
    """Measure the benchmark corpus."""

    kind: Literal[JobKind.COLLECT]
    options: CollectOptions = CollectOptions()


class CalibrateJob(Strict):
    """Run microbenchmarks and write machine descriptions."""

    kind: Literal[JobKind.CALIBRATE]
    options: CalibrateOptions = CalibrateOptions()


class TrainJob(Strict):
    """Train models on what was observed, and publish them."""

    kind: Literal[JobKind.TRAIN]
    options: TrainOptions = TrainOptions()


class ValidateJob(Strict):
    """Say how good models are on what they have not seen."""

    kind: Literal[JobKind.VALIDATE]
    options: ValidateOptions = ValidateOptions()


class CompareJob(Strict):
    """Compare two models on what neither has seen."""

    kind: Literal[JobKind.COMPARE]
    options: CompareOptions


JobRequest = Annotated[
    CollectJob | CalibrateJob | TrainJob | ValidateJob | CompareJob, Field(discriminator="kind")
]


class JobOut(Open):
    """A job."""

    id: str
    kind: JobKind
    state: JobState
    options: dict[str, Any]
    devices: list[str]
    created_at: datetime
    created_by: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: dict[str, Any] = Field(
        description="done, total, stage and what else the kind of job tells."
    )
    is_cancel_wanted: bool
    revision: int = Field(description="Grows with every change.")
    error: ErrorBody | None = None
    has_result: bool


class JobsOut(Open):
    """Jobs, newest first."""

    jobs: list[JobOut]
