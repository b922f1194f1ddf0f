"""Problems and estimates; answers that were given and observations, summed up and corrected."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, NoReturn, Self

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, model_validator
from starlette.responses import JSONResponse, Response

from kernelcast.collection.data_rows import CORRECTED, REMOVED, Correction, describe_selection
from kernelcast.launches.data_store import Selection
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.records.problem import DeviceIdentity, Problem
from kernelcast.records.service_state import Scope
from kernelcast.service.backend import Ask
from kernelcast.service.dependencies import Admin, Call, Observer, Reader, Route
from kernelcast.service.errors import ApiError, check_amount, refuse_unknown
from kernelcast.service.estimating import Outcome
from kernelcast.service.observing import Named
from kernelcast.service.schemas import (
    EXAMPLE,
    ErrorBody,
    ObservationIn,
    ObservationsOut,
    Open,
    ProblemIn,
    ProblemRef,
    Seconds,
    Strict,
    Text,
    Times,
    of_record,
)
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter, AnswerRecord

router = APIRouter(route_class=Route)
_USUAL = EstimateSettings()


class ProblemOut(Open):
    """A problem that is kept."""

    problem_digest: str = Field(description="To be sent instead of the problem.")
    name: str
    kernel: str
    kernel_digest: str
    buffer_bytes: int


class EstimateRequest(ProblemRef):
    """What is asked: one problem or several, on some devices or all."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"problem": EXAMPLE, "devices": ["pocl"], "coverage": 0.9}}
    )

    problems: list[ProblemRef] = Field(default=[], description="Several problems at once.")
    devices: list[Text] = Field(
        default=[], description="Ids or their beginnings; all devices when left out."
    )
    budget: float = Field(
        default=_USUAL.plan.budget,
        gt=0,
        le=1,
        description="Share of the predicted time for sampling.",
    )
    # Beyond that an interval says nothing, and its quantiles are no numbers any more.
    coverage: float = Field(
        default=_USUAL.coverage,
        ge=0.001,
        le=0.9999,
        description="Share of times in the interval.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of random buffer contents.")
    sampling: Literal["auto", "never"] = Field(
        default="auto",
        description="auto runs work-groups where nothing better is known and the caller may.",
    )
    history: bool = Field(default=True, description="Whether observations count.")
    within_seconds: float | None = Field(
        default=None, gt=0, le=10,
        description="Time to wait, builds included: what is known by then answers.",
    )  # fmt: skip
    least_gain: float | None = Field(
        default=None, ge=0, le=1e6,
        description="Seconds by which a second of sampling has to narrow the interval, where "
        "earlier samples or other sizes of the kernel are known; 0: sample always. The service's "
        "own setting unless given.",
    )  # fmt: skip

    @model_validator(mode="after")
    def check_choices(self) -> Self:
        """Refuse a request for nothing, and one that says it twice."""
        given = [self.problem is not None, self.problem_digest is not None, bool(self.problems)]
        if sum(given) != 1:
            raise ValueError("give one of `problem`, `problem_digest` and `problems`")
        return self


class EstimateOut(Open):
    """The answer of one device to one problem; `error` instead of times where it has none."""

    device: str
    device_id: str
    problem: str
    problem_digest: str
    kernel: str
    is_kept: bool | None = Field(default=None, description="Whether it was answered before.")
    seconds: float | None = Field(default=None, description="Predicted time of the launch.")
    low: float | None = Field(default=None, description="Lower end of the interval, in seconds.")
    high: float | None = Field(default=None, description="Upper end of the interval, in seconds.")
    coverage: float | None = Field(default=None, description="Share of times in the interval.")
    now: dict[str, float] | None = Field(
        default=None,
        description="Where other programs are at work: seconds, low and high beside them, and the "
        "slowdown, seconds over those alone; null on an idle machine.",
    )
    tier: str | None = Field(
        default=None,
        description="What weighs most: history, sizes, hybrid, linear, learned or analytic.",
    )
    limiter: str | None = None
    estimates: dict[str, float | None] | None = Field(
        default=None, description="Every method's seconds."
    )
    global_size: list[int] | None = None
    local_size: list[int] | None = None
    work_groups: int | None = None
    compute_units: int | None = None
    p_sat: int | None = None
    p_sat_computed: int | None = None
    p_sat_measured: int | None = None
    sample_work_groups: list[int] | None = None
    sampled_work_groups: int | None = None
    sampling_seconds: float | None = None
    overhead_seconds: float | None = None
    cost: dict[str, float] | None = Field(
        default=None,
        description="What the answer took when it was made: sampling_seconds of the device, "
        "build_seconds of its compiler, rest_seconds, all of these as seconds, and relative, over "
        "the predicted time.",
    )
    compile_seconds: float | None = None
    launch_seconds: float | None = None
    in_domain: bool | None = None
    warnings: list[str] | None = None
    explanation: dict[str, Any] | None = Field(
        default=None, description="How the answer was obtained, and why not in a better way."
    )
    error: ErrorBody | None = None


class EstimatesOut(Open):
    """Answers, devices within problems."""

    estimates: list[EstimateOut]


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


@router.post("/problems", tags=["estimates"])
async def send_problem(problem: ProblemIn, call: Reader) -> ProblemOut:
    """Send a problem once, and name it by its digest from then on."""
    digest, taken = await call.service.problems.take(problem.to_content())
    return _describe_problem(digest, taken)


@router.get("/problems/{digest}", tags=["estimates"])
async def show_problem(digest: str, call: Reader) -> ProblemOut:
    """Show a problem that was sent before."""
    return _describe_problem(digest, await call.service.problems.find(digest))


@router.post(
    "/estimates",
    tags=["estimates"],
    response_model=None,
    responses={200: {"model": EstimatesOut, "description": "An answer of each device."}},
)
async def estimate(asked: EstimateRequest, call: Reader) -> Response:
    """Predict launches on devices.

    Answers that need no sampling come at once. A device that cannot answer says so in its own
    answer; where none can, the status is the first one's.
    """
    asks = await list_asks(asked, call)
    # A request's own launches fill no queue.
    turns = asyncio.Semaphore(max(1, call.service.settings.limits.queue))

    async def answer(ask: Ask) -> Outcome:
        async with turns:
            return await call.service.estimating.answer(ask)

    outcomes = await asyncio.gather(*map(answer, asks))
    errors = [error for _, error in outcomes if error is not None]
    content = {"estimates": [answer for answer, _ in outcomes]}
    if len(errors) < len(outcomes):
        return JSONResponse(content)
    # With a wait the same request may succeed later.
    raise replace(max(errors, key=lambda one: one.retry_after_s or 0), detail=content)


@router.post("/observations", tags=["estimates"])
async def observe(asked: ObservationsRequest, call: Observer) -> ObservationsOut:
    """Tell how long launches have really taken; they are stored when the answer comes."""
    service = call.service
    check_amount("observations", len(asked.observations), service.settings.limits.observations)
    # Find each device once: a batch is often of one.
    names = {one.device for one in asked.observations if isinstance(one.device, str)}
    devices = {name: (await service.devices.choose([name]))[0] for name in names}
    reported: list[Named] = []
    for one in asked.observations:
        given, problem = one.device, await _find_problem(one, service)
        device = devices[given] if isinstance(given, str) else DeviceIdentity(**given.model_dump())
        reported.append((one, *problem, device))
    return await service.observing.take(reported, call.caller.name)


async def list_asks(asked: EstimateRequest, call: Call) -> Sequence[Ask]:
    """Give every problem on every device."""
    service, caller = call.service, call.caller
    limits = service.settings.limits
    refs: Sequence[ProblemRef] = asked.problems or [asked]
    check_amount("problems", len(refs), limits.problems)
    devices = await service.devices.choose(asked.devices)
    check_amount("devices", len(devices), limits.devices)
    usual, may_run = service.settings.least_gain, Scope.RUN in caller.scopes
    wants_run = asked.sampling == "auto"
    settings = EstimateSettings(
        plan=replace(_USUAL.plan, budget=asked.budget, seed=asked.seed),
        coverage=asked.coverage,
        seed=asked.seed,
        samples=wants_run and may_run,
        uses_history=asked.history,
        within_s=asked.within_seconds,
        least_gain=usual if asked.least_gain is None else asked.least_gain,
    )
    problems = [await _find_problem(one, service) for one in refs]
    return [
        Ask(
            problem=problem,
            device=device,
            settings=settings,
            timeout_s=limits.sample_seconds,
            caller=caller.name,
            digest=digest,
            lacks_scope=wants_run and not may_run,
        )
        for digest, problem in problems
        for device in devices
    ]


async def _find_problem(one: ProblemRef, service: Service) -> tuple[str, Problem]:
    if one.problem is not None:
        return await service.problems.take(one.problem.to_content())
    digest = one.problem_digest or ""
    return digest, await service.problems.find(digest)


def _describe_problem(digest: str, problem: Problem) -> ProblemOut:
    return ProblemOut(
        problem_digest=digest,
        name=problem.name,
        kernel=problem.kernel.name,
        kernel_digest=problem.kernel.digest,
        buffer_bytes=problem.buffer_bytes,
    )


def refuse_cursor(given: str) -> NoReturn:
    """Refuse what no list has given as `next`."""
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid_request",
        f"next: {given[:40]!r} was not given by an answer of this list; leave it out to begin",
    )


def read_number(given: str) -> int:
    """Read a number of a cursor, which a database can hold."""
    if not re.fullmatch(r"-?[0-9]{1,19}", given) or abs(int(given)) >= 1 << 63:
        refuse_cursor(given)
    return int(given)


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


Many = Annotated[list[Text] | None, Query(max_length=100)]
Moment = Annotated[AwareDatetime | None, Query()]
Key = Literal["week", "device", "kernel", "tier"]
_COLUMNS = {"week": "week", "device": "device_id", "kernel": "kernel", "tier": "tier"}


@of_record(AnswerRecord)
class AnswerOut(Open):
    """An answer, and the last observation of its launch before the next answer."""

    id: Annotated[str, BeforeValidator(str)] = Field(description="Grows with time.")
    at: datetime = Field(description="When it was given first.")
    asked: int = Field(description="How often it was given within an hour.")
    launch_key: str = Field(description="As of observations.")
    slowdown: float = Field(description="By other programs then: 1 on an idle machine.")
    cost_s: float = Field(description="Samples, build and the rest, in seconds.")
    caller: str = Field(description="Id of the token.")
    observed: int = Field(description="Observations of the launch before its next answer.")
    error: float | None = Field(description="|predicted - measured| / measured, of the last.")
    is_inside: bool | None = Field(description="Whether the interval held the last.")


class AnswersOut(Open):
    """A part of the answers, newest first."""

    answers: list[AnswerOut]
    next: str | None = Field(description="For the parameter `next`; null where nothing follows.")


class AccuracyRow(Open):
    """How good some answers were; numbers of observations are null where there were none."""

    week: datetime | None = Field(default=None, description="The Monday it begins with, UTC.")
    device_id: str | None = None
    kernel: str | None = None
    tier: str | None = None
    asked: int = Field(description="Answers given, repeats included.")
    made: int = Field(description="Of these those that were made anew.")
    observed: int = Field(description="Observations of launches that were answered before.")
    error: float | None = Field(description="Mean of |predicted - measured| / measured.")
    ratio: float | None = Field(description="Predicted over measured, geometric mean.")
    coverage: float | None = Field(description="Share of observations inside their interval.")
    cost_s: float | None = Field(description="Mean cost of an answer that was made, in seconds.")
    cost_share: float | None = Field(description="Costs over predicted times.")


class AccuracyOut(Open):
    """How good answers were, by what was asked for."""

    rows: list[AccuracyRow]


def read_filter(
    kernel: Many = None,
    device: Many = None,
    tier: Many = None,
    observed: Annotated[bool | None, Query(description="Only observed ones, or none.")] = None,
    given_from: Moment = None,
    given_before: Moment = None,
) -> AnswerFilter:
    return AnswerFilter(
        kernels=tuple(kernel or ()),
        devices=tuple(device or ()),
        tiers=tuple(tier or ()),
        is_observed=observed,
        given_from=given_from,
        given_before=given_before,
    )


Wanted = Annotated[AnswerFilter, Depends(read_filter)]


@router.get("/answers", tags=["answers"])
async def list_answers(
    wanted: Wanted,
    call: Reader,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    next: Annotated[str | None, Query(max_length=40)] = None,  # noqa: A002 - the API's word
) -> AnswersOut:
    """List answers, newest first, each with what was observed of it."""
    before = None if next is None else read_number(next)
    await call.service.answers.flush()
    found = await asyncio.to_thread(
        call.service.state.answers.find, wanted, most=limit + 1, before=before
    )
    following = str(found[limit - 1].id) if len(found) > limit else None
    return AnswersOut.model_validate({"answers": found[:limit], "next": following})


@router.get("/accuracy", tags=["answers"])
async def show_accuracy(
    wanted: Wanted,
    call: Reader,
    by: Annotated[list[Key] | None, Query(description="What has a row each.")] = None,
) -> AccuracyOut:
    """Show error, coverage and cost of answers by device, kernel, tier and week.

    Whole weeks count: `given_from` means the week that it is in. `observed` is not looked at.
    """
    await call.service.answers.flush()
    columns = [_COLUMNS[one] for one in dict.fromkeys(by or ("device",))]
    rows = await asyncio.to_thread(call.service.state.answers.sum_up, columns, wanted)
    return AccuracyOut.model_validate({"rows": rows})


Time = Annotated[Seconds | None, Query()]
Most = Annotated[int, Query(ge=0, le=1000, description="As `limit`.", deprecated=True)]
Limit = Annotated[int | None, Query(ge=1, le=1000)]
Sizes = Annotated[str, Query(max_length=80, pattern=r"^\d+(,\d+){0,2}$")]
Reason = Annotated[str, Query(max_length=500, description="For the audit log.")]


def read_selection(  # noqa: PLR0913 - each is a parameter of the query
    key: Many = None,
    measurement: Many = None,
    kernel: Many = None,
    device: Many = None,
    launch: Many = None,
    origin: Annotated[list[Origin] | None, Query()] = None,
    flag: Annotated[list[ObservationFlag] | None, Query()] = None,
    measured_from: Moment = None,
    measured_before: Moment = None,
    least_seconds: Time = None,
    most_seconds: Time = None,
) -> Selection:
    """Read which observations are meant: of each parameter one of its values, of all together."""
    return Selection(
        keys=tuple(key or ()),
        measurements=tuple(measurement or ()),
        kernels=tuple(kernel or ()),
        devices=tuple(device or ()),
        launch_keys=tuple(launch or ()),
        origins=tuple(origin or ()),
        with_flags=frozenset(flag or ()),
        measured_from=measured_from,
        measured_before=measured_before,
        least_seconds=least_seconds or 0.0,
        most_seconds=most_seconds or float("inf"),
    )


Selected = Annotated[Selection, Depends(read_selection)]


@router.get("/observations", tags=["observations"])
async def list_observations(
    wanted: Selected,
    call: Reader,
    most: Most = 100,
    limit: Limit = None,
    global_size: Sizes | None = None,
    next: Annotated[str | None, Query(max_length=100)] = None,  # noqa: A002 - the API's word
) -> FoundObservations:
    """List observations, newest first by the time of measurement; all where nothing says which."""
    sizes = tuple(map(int, global_size.split(","))) if global_size else ()
    after = None if next is None else read_cursor(next)
    observing = call.service.observing
    most = most if limit is None else limit
    rows, last = await observing.list(wanted, most=most, after=after, global_size=sizes)
    return FoundObservations.model_validate({
        "count": await observing.count(wanted, sizes), "observations": rows,
        "next": None if last is None else write_cursor(last),
    })  # fmt: skip


@router.delete("/observations", tags=["observations"])
async def remove_observations(
    wanted: Selected,
    call: Admin,
    *,
    dry_run: bool = False,
    most: Most = 100,
    reason: Reason = "",
) -> RemovedObservations:
    """Remove observations; say at least one thing of them. Answers that rested on them go, too."""
    if not describe_selection(wanted):
        raise InputError("every observation would be removed; say which are meant, as by `kernel`")
    observing = call.service.observing
    count = await observing.count(wanted)
    rows, _ = await observing.list(wanted, most=most)
    removed = 0
    if count and not dry_run:
        detail = {**describe_selection(wanted), **_write_reason(reason)}
        await call.audit(REMOVED, f"{count} observations", detail)
        removed = await observing.remove(wanted)
    return RemovedObservations.model_validate({
        "count": count, "observations": rows, "removed": removed, "is_dry_run": dry_run,
    })  # fmt: skip


@router.delete("/observations/{key}", tags=["observations"])
async def remove_observation(key: str, call: Admin, reason: Reason = "") -> RemovedObservations:
    """Remove one observation."""
    before = await find_observation(key, call.service)
    await call.audit(REMOVED, key, {**before, **_write_reason(reason)})
    removed = await call.service.observing.remove(Selection(keys=(key,)))
    return RemovedObservations.model_validate({
        "count": 1, "observations": [before], "removed": removed, "is_dry_run": False,
    })  # fmt: skip


@router.patch("/observations/{key}", tags=["observations"])
async def correct_observation(key: str, asked: CorrectionIn, call: Admin) -> StoredObservation:
    """Correct one observation; its launch and its key stay."""
    before = await find_observation(key, call.service)
    flags = {
        ObservationFlag.FIRST_LAUNCH: asked.is_first_launch,
        ObservationFlag.CONTAMINATED: asked.is_contaminated,
        ObservationFlag.DOUBTED: asked.is_doubted,
    }
    correction = Correction(
        durations_s=asked.durations_s,
        measured_at=asked.measured_at,
        flags={flag: is_set for flag, is_set in flags.items() if is_set is not None},
    )
    told = asked.model_dump(mode="json", exclude_unset=True)
    await call.audit(CORRECTED, key, {"before": before, "asked": told})
    return StoredObservation.model_validate(await call.service.observing.correct(key, correction))


async def find_observation(key: str, service: Service) -> dict[str, object]:
    rows, _ = await service.observing.list(Selection(keys=(key,)), most=1)
    if not rows:
        refuse_unknown("observation", key)
    return dict(rows[0])


def read_cursor(text: str) -> tuple[int | None, str]:
    time, _, key = text.partition(".")
    if not key.isalnum():
        refuse_cursor(text)
    return (read_number(time) if time else None), key


def write_cursor(place: tuple[int | None, str]) -> str:
    """Write the place behind which a list goes on."""
    time, key = place
    return f"{'' if time is None else time}.{key}"


def _write_reason(reason: str) -> dict[str, object]:
    return {"reason": reason} if reason else {}
