"""Requests that do not come whole, over real connections."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPResponse
from typing import Any, cast

import pytest
import uvicorn

from kernelcast.records.service_state import Scope
from kernelcast.service import Limits, ServiceSettings, create_app
from kernelcast.service.protocol import PatientProtocol
from kernelcast.service.tokens import make_token
from kernelcast.service_state import open_state
from support.service_backend import FakeBackend

SHORT_S = 0.4
LIMITS = Limits(header_seconds=SHORT_S, body_seconds=SHORT_S, header_bytes=4096, connections=8)
Connect = Callable[[], AbstractContextManager[socket.socket]]


@pytest.fixture
def token(settings: ServiceSettings) -> str:
    """Give a token that may report."""
    text, record = make_token("tester", frozenset({Scope.OBSERVE, Scope.ESTIMATE}))
    with open_state(str(settings.database)) as state:
        state.tokens.add(record)
    return text


@pytest.fixture
def connect(settings: ServiceSettings, backend: FakeBackend) -> Iterator[Connect]:
    """Give connections to a service under uvicorn, which needs tokens and is not patient."""
    chosen = replace(settings, require_tokens=True, limits=LIMITS)
    config = uvicorn.Config(
        create_app(chosen, backend=backend),
        http=cast(Any, partial(PatientProtocol, limits=LIMITS)),
        log_config=None,
        proxy_headers=False,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()

    @contextmanager
    def open_connection() -> Iterator[socket.socket]:
        with socket.create_connection(listening.getsockname(), timeout=10) as found:
            yield found

    try:
        yield open_connection
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _read(connection: socket.socket) -> tuple[int, bytes]:
    """Read until the service closes; give the status, 0 without an answer, and all that came."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    whole = b"".join(parts)
    return (int(whole.split()[1]) if whole else 0), whole


def _read_answer(connection: socket.socket) -> tuple[HTTPResponse, bytes]:
    """Read one answer, whose headers may come before its body."""
    answer = HTTPResponse(connection)
    answer.begin()
    return answer, answer.read()


def _head(*lines: str, path: str = "/v1/observations") -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: localhost", *lines, "", ""]).encode()


@pytest.mark.parametrize("sent", [b"GET /health HTT", b"GET /health HTTP/1.1\r\nhost: local"])
def test_half_of_the_headers(connect: Connect, sent: bytes) -> None:
    """They are not waited for: 408 in the usual shape, and the connection is closed."""
    with connect() as connection:
        connection.sendall(sent)
        status, answer = _read(connection)
    assert status == 408
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "headers_timeout"


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
def test_nothing(connect: Connect, sent: bytes) -> None:
    """A connection over which nothing is asked is closed."""
    with connect() as connection:
        connection.sendall(sent)
        assert _read(connection) == (0, b"")


def test_letter_by_letter(connect: Connect) -> None:
    """The time is that of all headers together: sending slowly does not lengthen it."""
    started_s = time.monotonic()
    with connect() as connection, contextlib.suppress(OSError):
        for one in b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 200:
            connection.sendall(bytes([one]))
            time.sleep(0.02)
    assert time.monotonic() - started_s < 200 * 0.02


def test_half_of_the_next_headers(connect: Connect) -> None:
    """On a connection that is kept as well, blank lines included."""
    whole = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for more in (b"GET /health HTTP/1.1\r\nho", b"\r\n"):
        with connect() as connection:
            connection.sendall(whole)
            assert b'"ok"' in _read_answer(connection)[1]
            connection.sendall(more)
            started_s = time.monotonic()
            _read(connection)
            assert time.monotonic() - started_s < 5 * SHORT_S


def test_endless_headers(connect: Connect) -> None:
    """They take no memory: 431."""
    with connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n")
            for number in range(100):
                connection.sendall(f"x-{number}: {'x' * 200}\r\n".encode())
                time.sleep(0.001)
        status, _ = _read(connection)
    assert status in {431, 0}  # what is sent after the end may make the answer unreadable


def test_half_a_body(connect: Connect, token: str) -> None:
    """Of a known caller: 408 after its time."""
    with connect() as connection:
        connection.sendall(_head(f"authorization: Bearer {token}", "content-length: 100") + b"{")
        status, answer = _read(connection)
    assert status == 408
    assert b"body_timeout" in answer


@pytest.mark.parametrize("length", ["content-length: 4000000", "transfer-encoding: chunked"])
@pytest.mark.parametrize("authorization", ["x-none: 1", f"authorization: Bearer kc_{'0' * 12}_x"])
def test_a_strangers_body_is_not_read(connect: Connect, length: str, authorization: str) -> None:
    """The answer comes without it, and the connection ends."""
    with connect() as connection:
        connection.sendall(_head(authorization, length, "expect: 100-continue"))
        status, answer = _read(connection)
    assert status == 401  # and not 100
    assert b"connection: close" in answer
    assert b'"unauthorized"' in answer


def test_a_form_of_a_stranger(connect: Connect) -> None:
    """Pages lead to where one signs in; there a token's worth of a body is read."""
    form = ("origin: http://localhost", "content-type: application/x-www-form-urlencoded")
    with connect() as connection:
        connection.sendall(_head(*form, "content-length: 4000000", path="/devices/calibrate"))
        status, answer = _read(connection)
        assert status == 303
        assert b"location: /sign-in" in answer
        assert b"connection: close" in answer
    with connect() as connection:
        connection.sendall(_head(*form, "content-length: 4097", path="/sign-in"))
        assert _read(connection)[0] == 413


def test_a_known_callers_connection_is_kept(connect: Connect, token: str) -> None:
    """What has come whole is answered over one connection, again and again."""
    body = b'{"observations": []}'
    head = _head(f"authorization: Bearer {token}", f"content-length: {len(body)}",
                 "content-type: application/json")  # fmt: skip
    with connect() as connection:
        for _ in range(3):
            connection.sendall(head + body)
            answer, _ = _read_answer(connection)
            assert answer.status == 422
            assert answer.getheader("connection") != "close"


def test_idle_connections_keep_nobody_out(connect: Connect) -> None:
    """Who has waited longest without asking makes room."""
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect()) for _ in range(3 * LIMITS.connections)]
        for one in idle:
            with contextlib.suppress(OSError):
                one.sendall(b"GET /")
        with connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
