"""What the service answers, as records; requests are sent again where that is safe and may help."""
# ruff: noqa: ANN401 - what is asked and answered is JSON, options are those of httpx

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from inspect import isawaitable
from typing import Any, Final, Self, TypeVar

import cattrs
import httpx

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.service_state import AnswerRecord, ServiceIdentity

DEFAULT_URL: Final = "http://127.0.0.1:8372"
TOKEN_VARIABLE: Final = "KERNELCAST_TOKEN"
"""Environment variable that holds the token where none is given."""
_API: Final = "1"
"""First part of the API's versions that this client speaks."""
_log = logging.getLogger("kernelcast.client")
_AGAIN: Final = frozenset({429, 502, 503, 504})
HEALTH: Final = "/health"


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
_CONVERTER: Final = cattrs.Converter(detailed_validation=False)
_CONVERTER.register_structure_hook_func(lambda kind: kind == Plain, lambda content, _: content)
_CONVERTER.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
_CONVERTER.register_structure_hook(ServiceError, lambda told, _: ServiceError.read(200, told))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that is read by its fields; what else it says is in its content."""

    content: Plain = field(repr=False)
    """The whole answer."""

    @classmethod
    def read(cls, content: Plain) -> Self:
        """Read an answer."""
        known = {name: one for name, one in content.items() if one is not None}
        return _CONVERTER.structure({**known, "content": content}, cls)


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


A = TypeVar("A", bound=Answer)


class ConnectionFailedError(KernelcastError):
    """Is raised when nobody answers at the service's address, or not in time."""


class WrongServiceError(KernelcastError):
    """Is raised when something else answers at the address, or speaks another API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a client waits."""

    timeout_s: float = 120.0
    """For an answer, in seconds."""
    connect_s: float = 5.0
    """For a connection, in seconds."""
    retries: int = 4
    """How often a request is sent again."""
    sleep: Callable[[float], object] | None = None
    """Waits in place of the clock; for tests."""

    def __post_init__(self) -> None:
        if min(self.timeout_s, self.connect_s) <= 0 or self.retries < 0:
            raise InputError(
                f"timeouts {self.timeout_s} and {self.connect_s} s, {self.retries} retries: give "
                "times above 0 and at least 0 retries"
            )


class Transport:
    """A connection to a service, which both clients have; see `AsyncClient` for its parameters.

    Over a client of httpx that blocks, coroutines end without having waited for anything. Every
    request may be sent again: estimates change nothing, observations and jobs have keys.
    """

    _kind: type[httpx.Client | httpx.AsyncClient]

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        patience: Patience | None = None,
        transport: httpx.AsyncBaseTransport | httpx.BaseTransport | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self._url = url
        self._service: ServiceIdentity | None = None
        self._is_checked = False
        self._is_async = issubclass(self._kind, httpx.AsyncClient)
        known = token or os.environ.get(TOKEN_VARIABLE)
        options: Any = {
            "base_url": url,
            "headers": {"authorization": f"Bearer {known}"} if known else {},
            "timeout": httpx.Timeout(self._patience.timeout_s, connect=self._patience.connect_s),
            "transport": transport,
        }
        try:
            self._http: Any = self._kind(**options)
        except httpx.InvalidURL as error:
            msg = f"service {url!r}: {error}; expected a URL such as http://127.0.0.1:8372"
            raise InputError(msg) from error

    async def _ask(
        self, method: str, path: str, content: Any = None, key: str = "", /, **params: Any
    ) -> Any:
        """Send a request, with a key where it shall do something once; give what is answered."""
        headers = {"idempotency-key": key} if key else {}
        answer = await self._send(method, path, json=content, params=params, headers=headers)
        if answer.is_success:
            return answer.json()
        raise read_error(answer)

    async def _list(
        self, record: type[A], path: str, name: str = "", /, **params: Any
    ) -> tuple[A, ...]:
        found = await self._ask("GET", path, **params)
        return tuple(map(record.read, found[name or path.rpartition("/")[2]]))

    async def _sleep(self, pause_s: float) -> None:
        usual = asyncio.sleep if self._is_async else time.sleep
        await wait_for((self._patience.sleep or usual)(pause_s))

    async def _check_service(self) -> None:
        """See who answers before the first request, and after the connection was lost."""
        if self._is_checked:
            return
        answer = await wait_for(self._http.request("GET", HEALTH))
        if answer.status_code not in _AGAIN:  # else the request will be told the same
            self._take_identity(answer)

    def _take_identity(self, answer: httpx.Response) -> ServiceIdentity:
        """Note who answers; say so where it is another instance than before."""
        try:
            told = answer.json()
            found = _CONVERTER.structure(told, ServiceIdentity)
        except (KeyError, TypeError, ValueError, AttributeError):
            told, found = {}, None
        if found is None or told.get("service") != "kernelcast":
            raise WrongServiceError(
                f"service {self._url}: what answers at /health is no kernelcast service, or an "
                "older one that does not say so; give the address of `kernelcast serve`"
            )
        if found.api.partition(".")[0] != _API:
            raise WrongServiceError(
                f"service {self._url}: kernelcast {found.version} speaks version {found.api} of "
                f"the API, this client {_API}.x; install the same version of both"
            )
        before, self._service, self._is_checked = self._service, found, True
        if before is not None and before.instance != found.instance:
            _log.warning(
                "service %s is another instance now: %s, kernelcast %s, since %s; it was %s",
                self._url, found.instance, found.version, found.started_at, before.instance,
            )  # fmt: skip
        return found

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        for attempt in range(self._patience.retries + 1):
            is_last, retry_after = attempt == self._patience.retries, ""
            try:
                if path != HEALTH:
                    await self._check_service()
                call = self._http.request(method, path, **options)
                answer: httpx.Response = await wait_for(call)
                # Have the next request see who answers, where this one was another instance's.
                told = answer.headers.get("x-kernelcast-instance")
                if told and self._service is not None and told != self._service.instance:
                    self._is_checked = False
                if is_last or answer.status_code not in _AGAIN:
                    return answer
                retry_after = answer.headers.get("retry-after", "")
            except httpx.TransportError as error:
                self._is_checked = False
                if is_last:
                    raise self._explain(error) from error
            # As long as the service says, else longer each time; never all clients at once.
            pause_s = float(retry_after) if retry_after.isdigit() else 0.2 * 2.0**attempt
            await self._sleep(min(pause_s, 30.0) * random.uniform(0.8, 1.2))
        raise AssertionError("no attempt was made")

    def _explain(self, error: httpx.TransportError) -> ConnectionFailedError:
        msg = f"service {self._url}: {type(error).__name__}: {error or 'no answer'}; is it running?"
        return ConnectionFailedError(msg)


async def wait_for(answer: Any) -> Any:
    """Wait for what a client of coroutines answers; one that blocks has answered already."""
    return await answer if isawaitable(answer) else answer


def read_error(answer: httpx.Response) -> ServiceError:
    request_id = answer.headers.get("x-request-id", "")
    try:
        return ServiceError.read(answer.status_code, answer.json()["error"], request_id)
    except (ValueError, KeyError, TypeError):
        msg = f"the service answered {answer.status_code}: {answer.text[:200]}"
        return ServiceError(answer.status_code, "http_error", msg, None, request_id)
