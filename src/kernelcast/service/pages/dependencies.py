"""What the pages ask of a request: who looks at them, by which cookie, and what a form holds."""

from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Query, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from kernelcast.records.service_state import Scope
from kernelcast.service.authentication import Caller
from kernelcast.service.dependencies import Call, get_service, identify, needs
from kernelcast.service.errors import ApiError
from kernelcast.service.service import Service
from kernelcast.service.settings import ServiceSettings

SIGN_IN_PATH: Final = "/sign-in"
"""Takes the form of somebody who is not known yet."""
SIGN_IN_BYTES: Final = 4096
"""Of that form: a token and where to go."""
_FORM: Final = "application/x-www-form-urlencoded"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_COOKIE: Final = "kernelcast_token"


class Form(dict[str, list[str]]):
    """Fields of a form that was sent, as they came; a name may stand for several."""

    def first(self, name: str, default: str = "") -> str:
        """Give a field's text without blanks around it."""
        return self.list(name)[0] if name in self else default

    def list(self, name: str) -> list[str]:
        """Give all fields of a name."""
        return [one.strip() for one in self.get(name, [])]


async def read_form(request: Request) -> Form:
    """Read the form that a request brings."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"", _FORM}:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            f"the form is {kind[:100]!r}; send it as {_FORM}",
        )
    body = await request.body()
    try:
        fields = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=500
        )
    except ValueError as error:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_form", f"the form cannot be read: {error}"
        ) from error
    return Form(fields)


def read_token(connection: HTTPConnection) -> str | None:
    """Give the token that a browser keeps for us."""
    return connection.cookies.get(_describe_cookie(connection)["key"])


def read_authorization(connection: HTTPConnection, settings: ServiceSettings) -> str | None:
    """Give the header that programs send, or what a browser sends instead of it."""
    found = connection.headers.get("authorization")
    token = read_token(connection)
    if found is None and token is not None and settings.needs_tokens:
        return f"Bearer {token}"
    return found


def keep_token(answer: Response, connection: HTTPConnection, token: str) -> None:
    """Have the browser keep a token; over TLS it never sends it without."""
    answer.set_cookie(value=token, **_describe_cookie(connection))


def forget_token(answer: Response, connection: HTTPConnection) -> None:
    """Have the browser forget the token."""
    answer.delete_cookie(**_describe_cookie(connection))


def _describe_cookie(connection: HTTPConnection) -> dict[str, Any]:
    is_secure = connection.url.scheme == "https"
    # Browsers take a cookie of this prefix over TLS alone, and from this host alone: no neighbour
    # of a domain can plant one.
    name = f"__Host-{_COOKIE}" if is_secure else _COOKIE
    return {"key": name, "httponly": True, "samesite": "strict", "secure": is_secure}


async def get_page_caller(
    request: Request, service: Annotated[Service, Depends(get_service)]
) -> Caller:
    """Tell who looks at a page: by the cookie, or by the header as programs do."""
    refuse_foreign_form(request)
    authorization = read_authorization(request, service.settings)
    caller = await identify(request.scope, service, authorization)
    request.state.page_caller = caller
    return caller


def refuse_foreign_form(request: Request) -> None:
    """Refuse what changes something unless one of our own pages has sent it.

    Browsers name the origin of every form; what names none is no browser, and has the API.
    """
    if request.method in _SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    is_ours = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if not is_ours:
        raise ApiError(
            HTTPStatus.FORBIDDEN,
            "wrong_origin",
            "this form was not sent from a page of this service; programs use the API",
        )


Name = Annotated[str, Query(max_length=300)]
"""Of something that is to be shown, out of the address."""
PageReader = Annotated[Call, needs(Scope.ESTIMATE, get_page_caller)]
"""Somebody who may look."""
PageAdmin = Annotated[Call, needs(Scope.ADMIN, get_page_caller)]
"""Somebody who may start and cancel jobs, and choose models."""
SentForm = Annotated[Form, Depends(read_form)]
"""The form of a request."""
