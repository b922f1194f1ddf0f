"""Sends requests, again where that is safe and may help."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx

from kernelcast.client.errors import ConnectionFailedError, ServiceError
from kernelcast.client.identity import INSTANCE_HEADER, ServiceIdentity
from kernelcast.records.errors import InputError

_log = logging.getLogger("kernelcast.client")

_AGAIN: Final = frozenset({429, 502, 503, 504})
_HEALTH: Final = "/health"
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a client waits."""

    timeout_s: float = 120.0
    """For an answer, in seconds."""
    connect_s: float = 5.0
    """For a connection, in seconds."""
    retries: int = 4
    """How often a request is sent again."""
    sleep: Callable[[float], None] = time.sleep
    """Waits; for tests."""

    def __post_init__(self) -> None:
        if min(self.timeout_s, self.connect_s) <= 0 or self.retries < 0:
            msg = (
                f"timeouts {self.timeout_s} and {self.connect_s} s, {self.retries} retries: give "
                "times above 0 and at least 0 retries"
            )
            raise InputError(msg)


class Transport:
    """A connection to a service; threads share one.

    Every request may be sent again: estimates change nothing, observations and jobs have keys.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        patience: Patience,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._patience = patience
        self._url = url
        self._service: ServiceIdentity | None = None
        self._is_checked = False
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(
                base_url=url,
                headers=headers,
                timeout=httpx.Timeout(patience.timeout_s, connect=patience.connect_s),
                transport=transport,
            )
        except httpx.InvalidURL as error:
            msg = f"service {url!r}: {error}; expected a URL such as http://127.0.0.1:8372"
            raise InputError(msg) from error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def identify(self) -> ServiceIdentity:
        """Ask which service answers."""
        self._is_checked = False
        answer = self._send("GET", _HEALTH, None, None, None)
        if not answer.is_success:
            raise read_error(answer)
        return self._take_identity(answer)

    def ask(
        self,
        method: str,
        path: str,
        *,
        content: Any = None,  # noqa: ANN401 - JSON
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request and give the JSON of its answer."""
        answer = self._send(method, path, content, params, headers)
        if answer.is_success:
            return answer.json()
        raise read_error(answer)

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[str]]:
        """Open a stream of lines; it may be silent for as long as it likes."""
        timeout = httpx.Timeout(self._patience.timeout_s, connect=self._patience.connect_s)
        try:
            self._check_service()
            with self._http.stream("GET", path, timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise read_error(answer)
                yield answer.iter_lines()
        except httpx.TransportError as error:
            self._is_checked = False
            raise self._explain(error) from error

    def _check_service(self) -> None:
        """See who answers before the first request, and after the connection was lost."""
        if self._is_checked:
            return
        answer = self._http.get(_HEALTH)
        if answer.status_code not in _AGAIN:  # else the request will be told the same
            self._take_identity(answer)

    def _take_identity(self, answer: httpx.Response) -> ServiceIdentity:
        """Note who answers; say so where it is another instance than before."""
        try:
            content = answer.json()
        except ValueError:
            content = None
        found = ServiceIdentity.read(self._url, content)
        before, self._service, self._is_checked = self._service, found, True
        if before is not None and before.instance != found.instance:
            who = f"{found.instance}, kernelcast {found.version}, running since {found.started_at}"
            _log.warning(
                "service %s is another instance now: %s; it was %s", self._url, who, before.instance
            )
        return found

    def _notice(self, answer: httpx.Response) -> None:
        """Have the next request see who answers, where this one was another instance's."""
        told = answer.headers.get(INSTANCE_HEADER)
        if told and self._service is not None and told != self._service.instance:
            self._is_checked = False

    def _send(
        self,
        method: str,
        path: str,
        content: Any,  # noqa: ANN401 - JSON
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
    ) -> httpx.Response:
        for attempt in range(self._patience.retries + 1):
            is_last = attempt == self._patience.retries
            try:
                if path != _HEALTH:
                    self._check_service()
                answer = self._http.request(
                    method, path, json=content, params=params, headers=headers
                )
                self._notice(answer)
            except httpx.TransportError as error:
                self._is_checked = False
                if is_last:
                    raise self._explain(error) from error
                self._wait(attempt, None)
                continue
            if is_last or answer.status_code not in _AGAIN:
                return answer
            self._wait(attempt, answer.headers.get("retry-after"))
        msg = "no attempt was made"
        raise AssertionError(msg)

    def _wait(self, attempt: int, told: str | None) -> None:
        """Wait as long as the service says, else longer each time; never all clients at once."""
        pause_s = _FIRST_PAUSE_S * 2.0**attempt
        if told is not None and told.isdigit():
            pause_s = float(told)
        jitter = random.uniform(0.8, 1.2)
        self._patience.sleep(min(pause_s, _LONGEST_PAUSE_S) * jitter)

    def _explain(self, error: httpx.TransportError) -> ConnectionFailedError:
        msg = f"service {self._url}: {type(error).__name__}: {error or 'no answer'}; is it running?"
        return ConnectionFailedError(msg)


def read_error(answer: httpx.Response) -> ServiceError:
    """Read what a service said instead of an answer."""
    request_id = answer.headers.get("x-request-id", "")
    try:
        told = answer.json()["error"]
        return ServiceError(
            answer.status_code, told["code"], told["message"], told["detail"], request_id
        )
    except (ValueError, KeyError, TypeError):
        msg = f"the service answered {answer.status_code}: {answer.text[:200]}"
        return ServiceError(answer.status_code, "http_error", msg, None, request_id)
