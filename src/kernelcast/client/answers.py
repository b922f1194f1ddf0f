"""What the service answers, as records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import cattrs

from kernelcast.client.errors import ServiceError

Plain = Mapping[str, Any]
_CONVERTER: Final = cattrs.Converter(detailed_validation=False)
_CONVERTER.register_structure_hook_func(lambda kind: kind == Plain, lambda content, _: content)
_CONVERTER.register_structure_hook(
    ServiceError,
    lambda told, _: ServiceError(200, told["code"], told["message"], told.get("detail")),
)


class _Answer:
    """An answer that is read by its fields; what else it says is in its content."""

    __slots__ = ()

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        known = {name: one for name, one in content.items() if one is not None}
        return _CONVERTER.structure({**known, "content": content}, cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(_Answer):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAnswer(_Answer):
    """What one device says of one problem.

    Parameters
    ----------
    device_id, problem, problem_digest, kernel : str
        Who says it of what.
    seconds, low, high : float or None
        Predicted time and its interval, in seconds; None where the device has no answer.
    coverage : float or None
        Share of times that the interval is meant to hold.
    now : mapping or None
        ``seconds``, ``low`` and ``high`` beside other programs that are at work, and the
        ``slowdown``; None on an idle machine.
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
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    now: Plain | None = None
    tier: str | None = None
    limiter: str | None = None
    warnings: tuple[str, ...] = ()
    error: ServiceError | None = None
    content: Plain = field(repr=False)


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
class Model(_Answer):
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
    used: str | None = None
    latest: str | None = None
    pinned: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(_Answer):
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
    error: ServiceError | None = None
    content: Plain = field(repr=False)

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self.state in {"done", "failed", "cancelled"}
