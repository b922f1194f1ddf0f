"""Requests for estimates, and answers."""

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from kernelcast.launches.settings import EstimateSettings
from kernelcast.service.estimating import Sampling
from kernelcast.service.schemas.common import ErrorBody, Open, Text
from kernelcast.service.schemas.problems import EXAMPLE, ProblemRef

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
    sampling: Sampling = Field(
        default=Sampling.AUTO,
        strict=False,
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

    def list_problems(self) -> list[ProblemRef]:
        """Give every problem that is asked about."""
        if self.problems:
            return self.problems
        return [ProblemRef(problem=self.problem, problem_digest=self.problem_digest)]


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
