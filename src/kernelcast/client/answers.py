"""What the service answers, as records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kernelcast.client.errors import ServiceError

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of the service's host.

    Parameters
    ----------
    id, name, platform, driver : str
        Stable id, and the driver's own words.
    compute_units : int
        Of the device.
    is_calibrated : bool
        Whether analytic models know it.
    content : mapping
        The whole answer.
    """

    id: str
    name: str
    platform: str
    driver: str
    compute_units: int
    is_calibrated: bool
    content: Plain = field(repr=False)

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        return cls(
            id=content["id"],
            name=content["name"],
            platform=content["platform"],
            driver=content["driver"],
            compute_units=content["compute_units"],
            is_calibrated=content["is_calibrated"],
            content=content,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAnswer:
    """What one device says of one problem.

    Parameters
    ----------
    device_id, problem, problem_digest, kernel : str
        Who says it of what.
    seconds, low, high : float or None
        Predicted time and its interval, in seconds; None where the device has no answer.
    coverage : float or None
        Share of times that the interval is meant to hold.
    tier : str or None
        ``history``, ``hybrid``, ``linear`` or ``analytic``, best first.
    limiter : str or None
        What bounds the time.
    warnings : tuple of str
        What to know before the answer is relied on.
    error : ServiceError or None
        Why the device has no answer.
    content : mapping
        The whole answer.
    """

    device_id: str
    problem: str
    problem_digest: str
    kernel: str
    seconds: float | None
    low: float | None
    high: float | None
    coverage: float | None
    tier: str | None
    limiter: str | None
    warnings: tuple[str, ...]
    error: ServiceError | None
    content: Plain = field(repr=False)

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        told = content.get("error")
        error = None
        if told is not None:
            error = ServiceError(200, told["code"], told["message"], told.get("detail"))
        return cls(
            device_id=content["device_id"],
            problem=content["problem"],
            problem_digest=content["problem_digest"],
            kernel=content["kernel"],
            seconds=content.get("seconds"),
            low=content.get("low"),
            high=content.get("high"),
            coverage=content.get("coverage"),
            tier=content.get("tier"),
            limiter=content.get("limiter"),
            warnings=tuple(content.get("warnings") or ()),
            error=error,
            content=content,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """What became of observations; they are stored.

    Parameters
    ----------
    added, known : int
        New ones, and those whose key was there.
    doubted : mapping of str to str
        By their keys, those that are kept but not believed until they repeat: what each
        contradicts.
    """

    added: int
    known: int
    doubted: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        doubted = {one["key"]: one["reason"] for one in content.get("doubted", ())}
        return cls(added=content["added"], known=content["known"], doubted=doubted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Versions of a learned model.

    Parameters
    ----------
    name : str
        ``model/device``, or the model alone.
    versions : tuple of str
        In the order they were published.
    used, latest, pinned : str or None
        The one in use, the newest, and the one that was chosen.
    """

    name: str
    versions: tuple[str, ...]
    used: str | None
    latest: str | None
    pinned: str | None

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        return cls(
            name=content["name"],
            versions=tuple(content["versions"]),
            used=content["used"],
            latest=content["latest"],
            pinned=content["pinned"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of the service.

    Parameters
    ----------
    id, kind : str
        Its name, and what is done.
    state : str
        ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
    progress : mapping
        ``done``, ``total``, ``stage`` and what else the kind tells.
    error : ServiceError or None
        Why it failed.
    content : mapping
        The whole answer.
    """

    id: str
    kind: str
    state: str
    progress: Plain
    error: ServiceError | None
    content: Plain = field(repr=False)

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        told = content.get("error")
        error = None
        if told is not None:
            error = ServiceError(200, told["code"], told["message"], told.get("detail"))
        return cls(
            id=content["id"],
            kind=content["kind"],
            state=content["state"],
            progress=content["progress"],
            error=error,
            content=content,
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self.state in {"done", "failed", "cancelled"}
