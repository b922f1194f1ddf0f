"""Jobs, comparisons and the audit log."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse, Response

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import AuditRecord, JobKind, JobRecord, JobState
from kernelcast.service.dependencies import Admin, Call, Reader, Route
from kernelcast.service.errors import ApiError, as_api_error, refuse_unknown
from kernelcast.service.schemas import ErrorBody, Open, Strict, Text, of_record
from kernelcast.service.service import Service
from kernelcast.service.settings import API_PREFIX

router = APIRouter(tags=["jobs"], route_class=Route)
_LOOK_S: Final = 0.5
_ACCEPTED: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "description": "The job waits for its turn.",
        "headers": {"Location": {"description": "Path of the job.", "schema": {"type": "string"}}},
    }
}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200,
        description="A request that is sent again with it starts no second job.",
    ),
]  # fmt: skip
Most = Annotated[int, Query(ge=1, le=1000)]
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


OPTIONS: Final[Mapping[str, type[Strict]]] = {
    JobKind.COLLECT: CollectOptions, JobKind.CALIBRATE: CalibrateOptions,
    JobKind.TRAIN: TrainOptions, JobKind.VALIDATE: ValidateOptions,
    JobKind.COMPARE: CompareOptions,
}  # fmt: skip
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
    left_out: list[str] = Field(default=[], description="Rows not learned from, and why.")


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


@router.post("/jobs", status_code=HTTPStatus.ACCEPTED, responses=_ACCEPTED)
async def start_job(asked: JobRequest, response: Response, call: Admin, key: Key = None) -> JobOut:
    """Start a job; it goes on where it was after any crash."""
    options = asked.options.model_dump(mode="json", exclude_unset=True, by_alias=True)
    job = await add_job(asked.kind, options, call, key)
    response.headers["location"] = f"{API_PREFIX}/jobs/{job.id}"
    return job


@router.get("/jobs")
async def list_jobs(
    call: Reader,
    kind: Annotated[list[JobKind] | None, Query()] = None,
    state: Annotated[list[JobState] | None, Query()] = None,
    most: Most = 100,
) -> JobsOut:
    """List jobs, newest first."""
    jobs = call.service.state.jobs
    found = await asyncio.to_thread(jobs.list, kinds=kind or (), states=state or (), most=most)
    return JobsOut.model_validate({"jobs": found})


@router.get("/jobs/{job_id}")
async def show_job(job_id: str, call: Reader) -> JobOut:
    """Show where a job stands."""
    return JobOut.model_validate(await find_job(job_id, call.service))


@router.get(
    "/jobs/{job_id}/result",
    response_model=None,
    responses={200: {"model": JobResultOut, "description": "By the kind of the job."}},
)
async def show_result(job_id: str, call: Reader) -> Response:
    """Show what a job has come to."""
    job = await find_job(job_id, call.service)
    if job.state is not JobState.DONE:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "job_not_done",
            f"job {job_id} is {job.state.value}; its result comes when it is done",
            detail={"state": job.state.value, "error": job.error},
        )
    return JSONResponse({"result": job.result})


@router.post("/jobs/{job_id}/cancel")
async def cancel_job(job_id: str, call: Admin) -> JobOut:
    """Have a job end; what it has measured stays."""
    await find_job(job_id, call.service)
    await call.audit("cancel_job", job_id)
    await asyncio.to_thread(call.service.state.jobs.cancel, job_id)
    return await show_job(job_id, call)


async def check_stream(job_id: str, call: Reader) -> None:
    """Refuse to follow what is no job, or more jobs at once than one service follows."""
    service = call.service
    await find_job(job_id, service)
    if service.streams >= service.settings.limits.streams:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "too_many_streams",
            f"{service.streams} jobs are followed already; ask for the job's state now and then",
            retry_after_s=10,
        )


@router.get(
    "/jobs/{job_id}/events",
    response_class=EventSourceResponse,
    dependencies=[Depends(check_stream)],
    response_description="Server-sent events: `job` with the whole job whenever it changes, `end` "
    "when nothing follows, `error` when the service cannot look.",
)
async def follow_job(job_id: str, call: Reader) -> AsyncIterator[ServerSentEvent]:
    """Follow a job until it ends."""
    service, revision = call.service, -1
    service.streams += 1
    try:
        while not service.stopping.is_set():
            try:
                job = await find_job(job_id, service)
            except (KernelcastError, ApiError) as error:
                described = as_api_error(error).describe()
                yield ServerSentEvent(event="error", data={"error": described})
                return
            if job.revision != revision:
                revision, event = job.revision, "end" if job.state.is_final else "job"
                yield ServerSentEvent(
                    event=event, data=JobOut.model_validate(job), id=str(revision)
                )
                if job.state.is_final:
                    return
            with suppress(TimeoutError):
                await asyncio.wait_for(service.stopping.wait(), _LOOK_S)
    finally:
        service.streams -= 1


@router.post("/comparisons", status_code=HTTPStatus.ACCEPTED, responses=_ACCEPTED)
async def start_comparison(
    asked: CompareOptions, response: Response, call: Admin, key: Key = None
) -> JobOut:
    """Compare two models on what neither has seen: a job of the kind `compare`."""
    job = CompareJob(kind=JobKind.COMPARE, options=asked)
    return await start_job(job, response, call, key)


@router.get("/comparisons")
async def list_comparisons(call: Reader, most: Most = 100) -> JobsOut:
    """List comparisons, newest first."""
    return await list_jobs(call, [JobKind.COMPARE], most=most)


@router.get("/audit", tags=["administration"])
async def show_audit(call: Admin, most: Most = 100) -> AuditOut:
    """Show what administrators did, newest first."""
    found = await asyncio.to_thread(call.service.state.audit.list, most=most)
    return AuditOut.model_validate({"entries": found})


async def add_job(
    kind: JobKind, options: dict[str, Any], call: Call, key: str | None = None
) -> JobOut:
    """Add a job after a look at whether it can be done."""
    from kernelcast.predictor.jobs import check_job

    await asyncio.to_thread(check_job, kind, options)
    asked = json.dumps([kind, options], sort_keys=True)
    devices: tuple[str, ...] = ()
    if kind in {JobKind.COLLECT, JobKind.CALIBRATE}:
        chosen = await call.service.devices.choose(options.get("devices", ()))
        devices = tuple(one.id for one in chosen)
        options = {**options, "devices": list(devices)}
    job = JobRecord(
        id=secrets.token_hex(8),
        kind=kind,
        options=options,
        devices=devices,
        created_at=datetime.now(UTC),
        created_by=call.caller.name,
    )
    await call.audit("start_job", job.id, {"kind": kind.value, **options})
    found, is_same = await asyncio.to_thread(
        call.service.state.jobs.add,
        job,
        # Callers cannot see or take each other's keys.
        key=None if key is None else f"{call.caller.name}:{key}",
        request_digest=hashlib.sha256(asked.encode()).hexdigest(),
    )
    if not is_same:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "key_used_otherwise",
            f"the idempotency key {key!r} was used for another request; use a new one",
            detail={"job_id": found.id},
        )
    return JobOut.model_validate(found)


async def find_job(job_id: str, service: Service) -> JobRecord:
    job = await asyncio.to_thread(service.state.jobs.find, job_id)
    if job is None:
        refuse_unknown("job", job_id)
    return job


async def find_result(service: Service, kinds: Sequence[JobKind], wanted: str) -> JobRecord | None:
    """Find a job of some kinds that has a result: the one wanted, else the newest there is."""
    jobs = service.state.jobs
    if not wanted:
        done = await asyncio.to_thread(jobs.list, kinds=kinds, states=(JobState.DONE,), most=50)
        wanted = next((one.id for one in done if one.has_result), "")
        if not wanted:
            return None
    job = await asyncio.to_thread(jobs.find, wanted)
    if job is None or job.kind not in kinds or not job.has_result:
        refuse_unknown("validation" if kinds == (JobKind.VALIDATE,) else "comparison", wanted)
    return job
