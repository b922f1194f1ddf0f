"""Problems, estimates and observations."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from fastapi import APIRouter
from pydantic import ConfigDict, Field, model_validator
from starlette.responses import JSONResponse, Response

from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.problem import Problem
from kernelcast.records.service_state import Scope
from kernelcast.service.backend import Ask
from kernelcast.service.dependencies import Call, Observer, Reader, Route
from kernelcast.service.errors import ApiError, refuse_amount
from kernelcast.service.observing import identity_of
from kernelcast.service.schemas import (
    EXAMPLE,
    ErrorBody,
    ObservationsOut,
    ObservationsRequest,
    Open,
    ProblemIn,
    ProblemOut,
    ProblemRef,
    Text,
)
from kernelcast.service.service import Service

router = APIRouter(tags=["estimates"], route_class=Route)
_USUAL = EstimateSettings()


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


@router.post("/problems")
async def send_problem(problem: ProblemIn, call: Reader) -> ProblemOut:
    """Send a problem once, and name it by its digest from then on."""
    digest, taken = await call.service.problems.take(problem.to_content())
    return _describe_problem(digest, taken)


@router.get("/problems/{digest}")
async def show_problem(digest: str, call: Reader) -> ProblemOut:
    """Show a problem that was sent before."""
    return _describe_problem(digest, await call.service.problems.find(digest))


@router.post(
    "/estimates",
    response_model=None,
    responses={200: {"model": EstimatesOut, "description": "An answer of each device."}},
)
async def estimate(asked: EstimateRequest, call: Reader) -> Response:
    """Predict launches on devices.

    Answers that need no sampling come at once. A device that cannot answer says so in its own
    answer; where none can, the status is the first one's.
    """
    asks = await list_asks(asked, call)
    outcomes = await asyncio.gather(*map(call.service.estimating.answer, asks))
    errors = [error for _, error in outcomes if error is not None]
    content = {"estimates": [answer for answer, _ in outcomes]}
    if len(errors) < len(outcomes):
        return JSONResponse(content)
    # With a wait the same request may succeed later.
    first = max(errors, key=lambda one: one.retry_after_s or 0)
    raise ApiError(
        first.status,
        first.code,
        first.message,
        detail=content,
        retry_after_s=first.retry_after_s,
    )


@router.post("/observations")
async def observe(asked: ObservationsRequest, call: Observer) -> ObservationsOut:
    """Tell how long launches have really taken; they are stored when the answer comes."""
    service = call.service
    most = service.settings.limits.observations
    if len(asked.observations) > most:
        refuse_amount("observations", len(asked.observations), most)
    # Find each device once: a batch is often of one.
    names = {one.device for one in asked.observations if isinstance(one.device, str)}
    devices = {name: identity_of((await service.devices.choose([name]))[0]) for name in names}
    reported = []
    for one in asked.observations:
        given = one.device
        device = devices[given] if isinstance(given, str) else identity_of(given)
        reported.append((one, *await _find_problem(one, service), device))
    return await service.observing.take(reported, call.caller.name)


async def list_asks(asked: EstimateRequest, call: Call) -> Sequence[Ask]:
    """Give every problem on every device."""
    service, caller = call.service, call.caller
    limits = service.settings.limits
    refs: Sequence[ProblemRef] = asked.problems or [asked]
    if len(refs) > limits.problems:
        refuse_amount("problems", len(refs), limits.problems)
    devices = await service.devices.choose(asked.devices)
    if len(devices) > limits.devices:
        refuse_amount("devices", len(devices), limits.devices)
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
