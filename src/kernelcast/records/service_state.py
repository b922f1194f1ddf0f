"""What the predictor service remembers beside observations: tokens, jobs, who did what."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

ANSWER_ID_BITS: Final = 10
"""The lowest bits of an answer's id are random; the others are microseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceIdentity:
    """What a service says of itself."""

    instance: str
    """Drawn when the service starts."""
    version: str
    """Of kernelcast."""
    api: str
    """Version of its API."""
    started_at: str
    """In ISO 8601, UTC."""
    pid: int
    """Of the process that was started, on the service's host."""


class Scope(StrEnum):
    ESTIMATE = "estimate"
    """Read, and ask for estimates that run nothing."""
    OBSERVE = "observe"
    RUN = "run"
    """Have submitted kernels compiled and run on the service's devices."""
    ADMIN = "admin"


class JobKind(StrEnum):
    """Long work that the service does by itself."""

    COLLECT = "collect"
    CALIBRATE = "calibrate"
    TRAIN = "train"
    VALIDATE = "validate"
    COMPARE = "compare"


class JobState(StrEnum):
    """Where a job stands."""  # as the API describes it

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A caller's token; its secret is known to the caller only."""

    id: str
    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    id: str
    kind: JobKind
    options: Mapping[str, Any]
    devices: tuple[str, ...] = ()
    """Ids of the devices that it needs; a host without them leaves the job to others."""
    state: JobState = JobState.QUEUED
    created_at: datetime
    created_by: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    heartbeat_at: datetime | None = None
    """First start, end, and the last sign of life of who does it."""
    owner: str = ""
    """Who does it: a process of a host; empty while nobody does."""
    crashes: int = 0
    """How often its process died without any progress since."""
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    error: Mapping[str, Any] | None = None
    is_cancel_wanted: bool = False
    revision: int = 0

    @property
    def has_result(self) -> bool:
        return self.result is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    at: datetime
    actor: str
    """Id of the token, or how else the caller was known."""
    action: str
    subject: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Plain values; never a secret."""
    remote: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    id: int
    launch_key: str
    problem_digest: str
    problem: str
    kernel: str
    device_id: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    tier: str
    seconds: float
    low: float
    high: float
    coverage: float
    """The answer, in seconds: the time alone on the machine."""
    slowdown: float
    """By other programs when it was given: times this factor it is held against observations."""
    cost_s: float
    caller: str
    asked: int = 1
    """How often it was given within an hour."""
    observed: int = 0
    """How often its launch was observed before the next answer."""
    measured_s: float | None = None
    observed_at: datetime | None = None
    error: float | None = None
    is_inside: bool | None = None
    """The last of these: its time, |predicted - measured| / measured, whether the interval held."""

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp((self.id >> ANSWER_ID_BITS) / 1e6, UTC)

    @property
    def as_it_was(self) -> "AnswerRecord":
        """The answer beside the programs at work then: what an observation should show."""
        low, seconds, high = (one * self.slowdown for one in (self.low, self.seconds, self.high))
        return replace(self, low=low, seconds=seconds, high=high, slowdown=1.0)

    @property
    def log_ratio(self) -> float:
        """Logarithm of what it said, beside the programs at work then, over the measured time."""
        return math.log(self.seconds * self.slowdown / (self.measured_s or math.nan))

    def observe(self, measured_s: float, at: datetime) -> "AnswerRecord":
        """Note how long its launch took."""
        told = self.as_it_was
        # Callers may report anything.
        error = min(abs(told.seconds - measured_s) / measured_s, 1e6)
        is_inside = told.low <= measured_s <= told.high
        return replace(
            self, measured_s=measured_s, observed_at=at, error=error, is_inside=is_inside
        )
