"""The token of somebody who has signed in: a cookie that scripts cannot read."""

from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from kernelcast.service.settings import ServiceSettings

_COOKIE: Final = "kernelcast_token"
# Browsers take a cookie of this prefix over TLS alone, and from this host alone: no neighbour of a
# domain can plant one.
_SECURE_COOKIE: Final = f"__Host-{_COOKIE}"
_HTTPS: Final = "https"


def read_token(connection: HTTPConnection) -> str | None:
    """Give the token that a browser keeps for us."""
    return connection.cookies.get(_name_cookie(connection))


def read_authorization(connection: HTTPConnection, settings: ServiceSettings) -> str | None:
    """Give the header that programs send, or what a browser sends instead of it."""
    found = connection.headers.get("authorization")
    token = read_token(connection)
    if found is None and token is not None and settings.needs_tokens:
        return f"Bearer {token}"
    return found


def keep_token(answer: Response, connection: HTTPConnection, token: str) -> None:
    """Have the browser keep a token; over TLS it never sends it without."""
    answer.set_cookie(
        _name_cookie(connection),
        token,
        httponly=True,
        samesite="strict",
        secure=_is_secure(connection),
    )


def forget_token(answer: Response, connection: HTTPConnection) -> None:
    """Have the browser forget the token."""
    answer.delete_cookie(
        _name_cookie(connection),
        httponly=True,
        samesite="strict",
        secure=_is_secure(connection),
    )


def _name_cookie(connection: HTTPConnection) -> str:
    return _SECURE_COOKIE if _is_secure(connection) else _COOKIE


def _is_secure(connection: HTTPConnection) -> bool:
    return connection.url.scheme == _HTTPS
