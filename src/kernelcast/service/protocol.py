"""How connections are read: uvicorn's own way, and headers that do not arrive are not waited for.

uvicorn has no limit on the time, size or number of half-sent requests: whoever opens connections
and sends a letter now and then would have all of them.
"""

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from kernelcast.service.errors import ErrorResponse
from kernelcast.service.settings import Limits


class PatientProtocol(HttpToolsProtocol):
    """Reads requests whose headers come soon, and are few."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to wait for headers."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._make_room()
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; what is no whole header yet is counted."""
        before = self._deadline
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._deadline is None and self._is_idle() and self.timeout_keep_alive_task is None:
            self._wait_for_headers()  # blank lines between requests begin nothing
        if before is None or self._deadline is not before:  # some of it was no header
            return
        self._header_bytes += len(data)
        if self._header_bytes > self._limits.header_bytes:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large",
                f"the headers are larger than {self._limits.header_bytes} bytes",
            )  # fmt: skip

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request."""
        super().on_message_begin()
        self._has_begun = True
        if self._deadline is None:
            self._wait_for_headers()

    def on_headers_complete(self) -> None:
        """Stop waiting: what follows is the business of who answers."""
        self._stop_waiting()
        super().on_headers_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether this connection has sent no whole request yet, or only half of the next."""
        return self._deadline is not None and self._is_idle()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_headers(self) -> None:
        self._header_bytes = 0
        self._deadline = self.loop.call_later(self._limits.header_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        self._has_begun = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if not self._is_idle():  # an answer is under way, and half of the next request is there
            self._wait_for_headers()
            return
        if not self._has_begun:
            self.transport.close()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT, "headers_timeout",
            f"the headers took longer than {self._limits.header_seconds:g} s",
        )  # fmt: skip

    def _make_room(self) -> None:
        """Close the connection that has waited longest; where all are at work, this one."""
        waiting = [
            one
            for one in self.connections
            if isinstance(one, PatientProtocol) and one.is_waiting and one is not self
        ]
        if waiting:
            min(waiting, key=lambda one: one.waits_until_s).transport.abort()
            return
        self._refuse(
            HTTPStatus.SERVICE_UNAVAILABLE, "too_many_connections",
            "too many connections; try again in a moment",
        )  # fmt: skip

    @property
    def waits_until_s(self) -> float:
        """When it is closed, by the loop's clock."""
        return 0.0 if self._deadline is None else self._deadline.when()

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        """Answer without the application, and close."""
        answer = ErrorResponse(status, code, message, headers={"connection": "close"})
        head = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        head += [b": ".join(header) for header in answer.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", answer.body]))
        self.transport.close()
