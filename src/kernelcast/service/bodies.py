"""Reads the bodies of requests: no longer and no larger than they may be."""

import asyncio
from http import HTTPStatus
from typing import NoReturn

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from kernelcast.service.errors import ApiError


def has_body(headers: Headers) -> bool:
    """Tell whether a request brings a body."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def read_body(receive: Receive, headers: Headers, *, most: int, seconds: float) -> bytes:
    """Read a whole body."""
    told = headers.get("content-length", "0")
    if told.isdigit() and int(told) > most:
        _refuse_size(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ApiError(HTTPStatus.BAD_REQUEST, "disconnected", "the caller went away")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    _refuse_size(most)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError as error:
        raise ApiError(
            HTTPStatus.REQUEST_TIMEOUT, "body_timeout", f"the body took longer than {seconds:g} s"
        ) from error


def replay(body: bytes, receive: Receive) -> Receive:
    """Give what the application reads: the body, then whatever the server says."""
    is_given = False

    async def read() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def tell_gone() -> Message:
    """Give what follows a body that nobody reads: nothing."""
    return {"type": "http.disconnect"}


def _refuse_size(most: int) -> NoReturn:
    raise ApiError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"the body is larger than {most} bytes; send less at once",
    )
