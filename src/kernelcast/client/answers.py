"""What the service answers, as records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

import cattrs

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import AnswerRecord


class ServiceError(KernelcastError):
    """Is raised when the service refuses a request or cannot answer it.

    Parameters
    ----------
    status : int
        HTTP status.
    code : str
        For programs, such as ``unknown_device``.
    message : str
        For people.
    detail : object
        Plain values that depend on the code.
    request_id : str
        Names the request in the service's log.
    """

    def __init__(
        self, status: int, code: str, message: str, detail: object = None, request_id: str = ""
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id

    @classmethod
    def read(cls, status: int, told: Mapping[str, Any], request_id: str = "") -> Self:
        """Read what stands under ``error`` in an answer."""
        return cls(status, told["code"], told["message"], told.get("detail"), request_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, str(self), self.detail, self.request_id)


Plain = Mapping[str, Any]
CONVERTER: Final = cattrs.Converter(detailed_validation=False)
CONVERTER.register_structure_hook_func(lambda kind: kind == Plain, lambda content, _: content)
CONVERTER.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
CONVERTER.register_structure_hook(ServiceError, lambda told, _: ServiceError.read(200, told))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that is read by its fields; what else it says is in its content."""

    content: Plain = field(repr=False)
    """The whole answer."""

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        known = {name: one for name, one in content.items() if one is not None}
        return CONVERTER.structure({**known, "content": content}, cls)


@dataclass(frozen=True, kw_only=True)
class Device(Answer, DeviceDescription):
    """A device of the service's host, with everything that `kernelcast devices` tells of it."""

    is_calibrated: bool
    """Whether analytic models know it."""


@dataclass(frozen=True, kw_only=True)
class EstimateAnswer(Answer):
    """What one device says of one problem."""

    device_id: str
    problem: str
    problem_digest: str
    kernel: str
    """Who says it of what."""
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    """Predicted time and its interval, in seconds; None where the device has no answer."""
    coverage: float | None = None
    """Share of times that the interval is meant to hold."""
    now: Plain | None = None
    """``seconds``, ``low`` and ``high`` beside other programs that are at work, and the
    ``slowdown``; None on an idle machine."""
    tier: str | None = None
    """``history``, ``hybrid``, ``linear`` or ``analytic``, best first."""
    limiter: str | None = None
    """What bounds the time."""
    warnings: tuple[str, ...] = ()
    """What to know before the answer is relied on."""
    error: ServiceError | None = None
    """Why the device has no answer."""


@dataclass(frozen=True, kw_only=True)
class StoredRows:
    """What became of observations; they are stored."""

    added: int
    known: int
    """New ones, and those whose key was there."""
    doubted: Mapping[str, str] = field(default_factory=dict)
    """By their keys, those that are not believed until they repeat: what each contradicts."""

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        doubted = {one["key"]: one["reason"] for one in content.get("doubted", ())}
        return cls(added=content["added"], known=content["known"], doubted=doubted)


@dataclass(frozen=True, kw_only=True)
class StoredObservation(Answer):
    """An observation that the service holds."""

    key: str
    """Its key in the store."""
    measurement: str
    """What its reporter calls it."""
    kernel: str
    device_id: str
    """What ran where."""
    seconds: float
    """Median time of the whole launch, in seconds."""
    runs: int
    """How many there were."""
    origin: str
    """``observed``, ``collected`` or ``imported``."""
    flags: tuple[str, ...]
    """Reasons for care, such as ``contaminated``."""
    measured_at: str | None = None
    """In ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class StoredAnswer(Answer, AnswerRecord):
    """An answer that the service has given, when that was, and what was observed then."""


@dataclass(frozen=True, kw_only=True)
class Machine(Answer):
    """A machine description that the service has."""

    name: str
    """What it is asked for by."""
    is_shipped: bool
    """Whether it came with kernelcast; else it was calibrated there."""


@dataclass(frozen=True, kw_only=True)
class Model(Answer):
    """Versions of a learned model."""

    name: str
    """``model/device``, or the model alone."""
    versions: tuple[str, ...]
    """In the order they were published."""
    used: str | None = None
    latest: str | None = None
    pinned: str | None = None
    """The one in use, the newest, and the one that was chosen."""


@dataclass(frozen=True, kw_only=True)
class Job(Answer):
    """A job of the service."""

    id: str
    kind: str
    """Its name, and what is done."""
    state: str
    """``queued``, ``running``, ``done``, ``failed`` or ``cancelled``."""
    progress: Plain
    """``done``, ``total``, ``stage`` and what else the kind tells."""
    error: ServiceError | None = None
    """Why it failed."""

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self.state in {"done", "failed", "cancelled"}
