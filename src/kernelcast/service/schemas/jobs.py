"""Jobs as callers ask for them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kernelcast.records.service_state import AuditRecord, JobKind, JobRecord
from kernelcast.service.schemas.common import ErrorBody, Open, Strict, Text, of_record

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

    model_config = ConfigDict(
        json_schema_extra={"example": {"first": "linear", "second": "hybrid"}}
    )

    first: Text
    second: Text
    devices: Devices = Field(default=[])
    split: Split = "kernel"
    shortest_seconds: float | None = Field(default=None, ge=0)
    least_work_groups: int | None = Field(default=None, ge=0)
    resamples: int | None = Field(default=None, ge=100, le=100_000)


class CollectJob(Strict):
    """Measure the benchmark corpus."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"kind": "collect", "options": {"kernels": ["nbody"]}}}
    )

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


@of_record(JobRecord, without=frozenset({"heartbeat_at", "owner", "crashes", "result"}))
class JobOut(Open):
    """A job."""

    id: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: dict[str, Any] = Field(
        description="done, total, stage and what else the kind of job tells."
    )
    revision: int = Field(description="Grows with every change.")
    error: ErrorBody | None = None
    has_result: bool


class JobsOut(Open):
    """Jobs, newest first."""

    jobs: list[JobOut]


class JobFailure(Open):
    """A launch that could not be observed."""

    kernel: str
    kind: str
    message: str


class CollectedDevice(Open):
    """What a collection has come to on one device."""

    device_id: str
    kernels: int
    measured: int = Field(description="Rows measured now.")
    present: int = Field(description="Rows that were there already.")
    disturbed: int = Field(description="Measured rows during which other work ran.")
    skipped: dict[str, str] = Field(description="Kernels or rows left out, with the reason.")
    failures: list[JobFailure]
    errors: dict[str, str] = Field(description="Kernels that could not be begun, with the reason.")


class CollectResult(Open):
    """Result of `collect`."""

    devices: list[CollectedDevice]
    is_out_of_time: bool


class CalibratedDevice(Open):
    """What a calibration has come to on one device: `error_message` alone where it failed."""

    device_id: str
    error_message: str | None = None
    durations_seconds: dict[str, float] = Field(default={}, description="By microbenchmark.")
    resumed: list[str] = Field(default=[], description="Microbenchmarks measured before.")
    failed: dict[str, str] = Field(default={}, description="Microbenchmarks, with the reason.")


class CalibrateResult(Open):
    """Result of `calibrate`."""

    devices: list[CalibratedDevice]


class PublishedModel(Open):
    """A model that was published."""

    name: str
    version: str
    rows: int
    kernels: int
    devices: list[str]


class TrainResult(Open):
    """Result of `train`."""

    models: list[PublishedModel]
    evidence: list[PublishedModel] = Field(description="What weighs answers of several kinds.")
    refused: dict[str, str] = Field(description="Models that could not be trained, and why.")


class ValidateResult(Open):
    """Result of `validate`: scores by model and device, and row by row."""

    split: str
    coverage: float
    schema_id: str
    data_digest: str
    versions: dict[str, str] = Field(description="Of the libraries that compute.")
    scores: list[dict[str, Any]]
    rankings: list[dict[str, Any]]
    refused: dict[str, str] = Field(description="Models that could not be trained, and why.")
    rows: dict[str, Any]


class CompareResult(Open):
    """Result of `compare`."""

    first: str
    second: str
    split: str
    resampled: str = Field(description="What the bootstrap draws as a whole.")
    method: str = Field(description="Of the interval.")
    resamples: int
    confidence: float
    seed: int
    schema_id: str
    data_digest: str
    refused: dict[str, str]
    devices: list[dict[str, Any]]
    explained: list[dict[str, Any]] = Field(description="Kernels on which a model errs most.")


class JobResultOut(Open):
    """What a job has come to; of which type says the job's kind."""

    result: CollectResult | CalibrateResult | TrainResult | ValidateResult | CompareResult


@of_record(AuditRecord)
class AuditEntry(Open):
    """Something that an administrator did."""


class AuditOut(Open):
    """The audit log, newest first."""

    entries: list[AuditEntry]
