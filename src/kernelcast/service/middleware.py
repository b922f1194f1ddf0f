"""What happens to every request: id, body limit, where it comes from, headers, log, metrics."""

import asyncio
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelcast.service.errors import describe_error
from kernelcast.service.logs import LOGGER, log
from kernelcast.service.settings import Limits

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
API_PREFIX: Final = "/v1"
"""Where the API is."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""Content security policy of answers that are no pages."""
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": API_POLICY,
    "cache-control": "no-store",
}

Watch = Callable[[str, str, int, float], None]
"""Is told method, route, status and seconds of each request."""
Shortcut = Callable[[Scope, Headers, bytes], Awaitable[bytes | None]]
"""Gives the JSON of an answer that is there already; None has the application answer."""
_SHORTCUT_PATH: Final = f"{API_PREFIX}/estimates"
_JSON: Final = "application/json"


class Frame:
    """Frames every request; the outermost layer of the service.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    limits : Limits
        Of bodies.
    hosts : iterable of str or None
        Names that a request may call us; None means any. A page of another site cannot reach a
        service on loopback under a name of its own (DNS rebinding).
    watch : callable
        Is told of each request.
    shortcut : callable
        Is asked first about requests for estimates: most of them are repeats, and finding out what
        they say takes several times longer than answering.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        hosts: Iterable[str] | None,
        watch: Watch,
        shortcut: Shortcut,
    ) -> None:
        self._app = app
        self._limits = limits
        self._hosts = None if hosts is None else frozenset(hosts)
        self._watch = watch
        self._shortcut = shortcut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        headers = Headers(scope=scope)
        request_id = _choose_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 500

        async def send_framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                answer["x-request-id"] = request_id
            await send(message)

        try:
            refusal = self._refuse(scope, headers)
            if refusal is None:
                body = await self._read_body(receive, headers)
                if isinstance(body, bytes):
                    refusal = await self._answer(scope, headers, body, receive, send_framed)
                else:
                    refusal = body
            if refusal is not None:
                await _send_error(send_framed, *refusal)
        finally:
            self._note(scope, status, time.perf_counter() - started_s, request_id)

    async def _answer(
        self, scope: Scope, headers: Headers, body: bytes, receive: Receive, send: Send
    ) -> tuple[int, str, str] | None:
        """Have the application answer; tell what to say if it fails before it has begun to."""
        is_begun = False

        async def watch_begin(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            known = await self._look_up(scope, headers, body)
            if known is None:
                await self._app(scope, _replay(body, receive), watch_begin)
            else:
                await _send_json(send, HTTPStatus.OK, known)
        except Exception as error:  # whatever it is: the caller gets no traceback
            request_id = scope["state"]["request_id"]
            LOGGER.exception("request failed", extra={"fields": {"request_id": request_id}})
            if is_begun:
                raise
            return (
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error",
                f"the service failed ({type(error).__name__}); please report it with the request "
                f"id {request_id}",
            )  # fmt: skip
        return None

    async def _look_up(self, scope: Scope, headers: Headers, body: bytes) -> bytes | None:
        """Ask for an answer that is there already."""
        if scope["path"] != _SHORTCUT_PATH or scope["method"] != "POST":
            return None
        if headers.get("content-type") != _JSON:
            return None
        return await self._shortcut(scope, headers, body)

    def _refuse(self, scope: Scope, headers: Headers) -> tuple[int, str, str] | None:
        """Tell what is wrong with where a request comes from."""
        host = _strip_port(headers.get("host", ""))
        if self._hosts is not None and host not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            return (
                HTTPStatus.MISDIRECTED_REQUEST, "wrong_host",
                f"this service is not called {host!r}; use one of {names}",
            )  # fmt: skip
        origin = headers.get("origin")
        if origin is None or scope["method"] in _SAFE_METHODS:
            return None
        if urlsplit(origin).netloc != headers.get("host"):
            return (
                HTTPStatus.FORBIDDEN, "wrong_origin",
                f"requests of pages from {origin} are refused",
            )  # fmt: skip
        return None

    async def _read_body(self, receive: Receive, headers: Headers) -> bytes | tuple[int, str, str]:
        """Read the whole body, or tell why not."""
        most = self._limits.body_bytes
        too_large = (
            int(HTTPStatus.REQUEST_ENTITY_TOO_LARGE), "body_too_large",
            f"the body is larger than {most} bytes; send less at once",
        )  # fmt: skip
        told = headers.get("content-length", "0")
        if told.isdigit() and int(told) > most:
            return too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return (HTTPStatus.BAD_REQUEST, "disconnected", "the caller went away")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        return too_large
                    if not message.get("more_body", False):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            return (
                HTTPStatus.REQUEST_TIMEOUT, "body_timeout",
                f"the body took longer than {self._limits.body_seconds:g} s",
            )  # fmt: skip

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = _name_route(scope)
        self._watch(scope["method"], route, status, seconds)
        client = scope.get("client")
        log(
            "request",
            request_id=request_id,
            method=scope["method"],
            path=scope["path"],
            status=status,
            seconds=round(seconds, 6),
            client=client[0] if client else None,
            caller=scope.get("state", {}).get("caller"),
        )


def _name_route(scope: Scope) -> str:
    """Give the pattern of the route that has answered: its names and not what stood for them."""
    if "route" not in scope and scope["path"] == _SHORTCUT_PATH:
        return _SHORTCUT_PATH
    path: str = getattr(scope.get("route"), "path", None) or ""
    is_of_api = scope["path"].startswith(f"{API_PREFIX}/")
    if path and is_of_api and not path.startswith(API_PREFIX):
        path = API_PREFIX + path  # routes of routers do not know where those were put
    return path or "other"


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give what the application reads: the body, then whatever the server says."""
    is_given = False

    async def read() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def _send_error(send: Send, status: int, code: str, message: str) -> None:
    content = json.dumps(describe_error(code, message)).encode()
    # The rest of a body that is refused is not read.
    is_unread = status in {HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT}
    await _send_json(send, status, content, closes=is_unread)


async def _send_json(send: Send, status: int, content: bytes, *, closes: bool = False) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _choose_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _strip_port(host: str) -> str:
    """Give the name without its port.

    Examples
    --------
    >>> _strip_port("localhost:80"), _strip_port("[::1]:80"), _strip_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]
