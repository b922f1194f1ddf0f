"""What the predictor service remembers beside observations: tokens, jobs, who did what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Scope(StrEnum):
    """What a caller of the service may do."""

    ESTIMATE = "estimate"
    """Read, and ask for estimates that run nothing."""
    OBSERVE = "observe"
    """Send measured times."""
    RUN = "run"
    """Have submitted kernels compiled and run on the service's devices."""
    ADMIN = "admin"
    """Start jobs, choose models."""


class JobKind(StrEnum):
    """Long work that the service does by itself."""

    COLLECT = "collect"
    CALIBRATE = "calibrate"
    TRAIN = "train"
    VALIDATE = "validate"
    COMPARE = "compare"


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing follows."""
        return self in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A caller's token; its secret is known to the caller only.

    Parameters
    ----------
    id : str
        Public part of the token.
    name : str
        Whom it was given to.
    salt : bytes
        Of the secret's hash; empty where the hash needs none.
    digest : bytes
        The secret's hash.
    revoked_at : datetime or None
        Since when it is refused.
    """

    id: str
    name: str
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job.

    Parameters
    ----------
    options : mapping
        How; plain values.
    devices : tuple of str
        Ids of the devices that it needs; a host without them leaves the job to others.
    state : JobState
        Where it stands.
    created_at : datetime
        When it was asked for.
    created_by : str
        By whom.
    started_at, ended_at, heartbeat_at : datetime or None
        First start, end, and the last sign of life of who does it.
    owner : str
        Who does it: a process of a host; empty while nobody does.
    crashes : int
        How often its process died without any progress since.
    progress : mapping
        Plain values; empty before the first.
    result, error : object, mapping or None
        What it has come to.
    is_cancel_wanted : bool
        Whether it shall end.
    revision : int
        Grows with every change.
    """

    id: str
    kind: JobKind
    options: Mapping[str, Any]
    devices: tuple[str, ...] = ()
    state: JobState = JobState.QUEUED
    created_at: datetime
    created_by: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    heartbeat_at: datetime | None = None
    owner: str = ""
    crashes: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    error: Mapping[str, Any] | None = None
    is_cancel_wanted: bool = False
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Something that an administrator did.

    Parameters
    ----------
    actor : str
        Id of the token, or how else the caller was known.
    detail : mapping
        Plain values; never a secret.
    remote : str
        Address of the caller.
    request_id : str
        As in the log.
    """

    at: datetime
    actor: str
    action: str
    subject: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    remote: str = ""
    request_id: str = ""
