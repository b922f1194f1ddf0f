"""What the routes ask of a request: the service, the caller, scopes, and what a form holds."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

from kernelcast.records.service_state import AuditRecord, Scope
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import ApiError, refuse_text
from kernelcast.service.guard import is_plain_form, is_plain_json
from kernelcast.service.service import Service
from kernelcast.service.settings import API_PREFIX
from kernelcast.service.telemetry import log

SIGN_IN_PATH: Final = "/sign-in"
"""Takes the form of somebody who is not known yet."""
_FILES: Final = StaticFiles()  # compares tags; no file is read
_SHOWN_NAMES: Final = 10


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def is_of_api(request: Request) -> bool:
    return request.url.path.startswith(f"{API_PREFIX}/")


async def identify(request: Request) -> Caller:
    """Tell who calls: by the header, or on pages by the browser's cookie.

    A request that was looked at before its body was read is not asked again.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        service, authorization = get_service(request), request.headers.get("authorization")
        token = None if is_of_api(request) else read_token(request)
        if authorization is None and token is not None and service.settings.needs_tokens:
            authorization = f"Bearer {token}"
        caller = request.state.caller = await service.authenticator.identify(authorization)
    return caller


@dataclass(frozen=True, slots=True)
class Call:
    """A request of somebody who may send it, and the service that answers."""

    request: Request
    service: Service
    caller: Caller

    async def audit(
        self, action: str, subject: str, detail: Mapping[str, object] | None = None
    ) -> None:
        """Write down what an administrator is about to do; nothing is done if that fails."""
        record = AuditRecord(
            at=datetime.now(UTC),
            actor=self.caller.name,
            action=action,
            subject=subject,
            detail=detail or {},
            remote=self.request.client.host if self.request.client else "",
            request_id=self.request.state.request_id,
        )
        await asyncio.to_thread(self.service.state.audit.add, record)
        log("admin action", action=action, subject=subject, actor=self.caller.name,
            request_id=record.request_id)  # fmt: skip


def needs(scope: Scope) -> object:
    async def check(request: Request, caller: Annotated[Caller, Depends(identify)]) -> Call:
        if scope not in caller.scopes:
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "missing_scope",
                f"this needs the scope {scope.value!r}; the caller has "
                f"{', '.join(sorted(caller.scopes)) or 'none'}",
                detail={"scope": scope.value},
            )
        return Call(request, get_service(request), caller)

    return Depends(check)


async def _refuse_unknown_parameters(request: Request) -> None:
    """Refuse parameters that the route does not declare: with `dryrun` ignored, all is deleted."""
    known = sorted(_list_parameters(request.scope["route"].dependant))
    unknown = [name[:100] for name in request.query_params if name not in known]
    if not unknown:
        return
    nearest = {name: get_close_matches(name, known, 1) for name in unknown}
    told = [
        repr(name) + (f" (did you mean {close[0]!r}?)" if close else "")
        for name, close in nearest.items()
    ]
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "unknown_parameter",
        f"the query holds {', '.join(told[:_SHOWN_NAMES])}, which this route does not know; "
        + (f"it takes {', '.join(known)}" if known else "it takes no parameters"),
        detail={
            "unknown": unknown[:_SHOWN_NAMES],
            "known": known,
            "nearest": {name: close[0] for name, close in nearest.items() if close},
        },
    )


def _list_parameters(asked: Dependant) -> set[str]:
    """List the parameters of the query that a route or what it depends on declares."""
    names = {field.alias for field in asked.query_params}
    return names.union(*map(_list_parameters, asked.dependencies))


class Form(dict[str, list[str]]):
    """Fields of a form that was sent, as they came; a name may stand for several."""

    def first(self, name: str, default: str = "") -> str:
        return self.list(name)[0] if name in self else default

    def text(self, name: str) -> str:
        """Give a text of several lines as it was typed."""
        return self.get(name, [""])[0].replace("\r\n", "\n")

    def list(self, name: str) -> list[str]:
        return [one.strip() for one in self.get(name, [])]


async def read_form(request: Request) -> Form:
    try:
        text = (await request.body()).decode()
        return Form(parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=500))
    except ValueError as error:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_form", f"the form cannot be read: {error}"
        ) from error


OurService = Annotated[Service, Depends(get_service)]
Documented = Depends(
    HTTPBearer(auto_error=False, description="A token of `kernelcast serve token create`.")
)
"""Tells readers of the API's description that tokens exist; `identify` reads them."""
KnownParameters = Depends(_refuse_unknown_parameters)
"""Refuses what a route of the API does not declare; pages ignore what other programs append."""
Reader = Annotated[Call, needs(Scope.ESTIMATE)]
Observer = Annotated[Call, needs(Scope.OBSERVE)]
Admin = Annotated[Call, needs(Scope.ADMIN)]
Name = Annotated[str, Query(max_length=300)]
SentForm = Annotated[Form, Depends(read_form)]


def read_token(request: Request) -> str | None:
    return request.cookies.get(describe_cookie(request)["key"])


def describe_cookie(request: Request) -> dict[str, Any]:
    """Describe the cookie that holds a browser's token; over TLS it is never sent without."""
    is_secure = request.url.scheme == "https"
    # Browsers take a cookie of this prefix over TLS alone, and from this host alone: no neighbour
    # of a domain can plant one.
    name = "kernelcast_token"
    return {
        "key": f"__Host-{name}" if is_secure else name,
        "httponly": True,
        "samesite": "strict",
        "secure": is_secure,
    }


class Route(APIRoute):
    """Reads of a stranger nothing, and of others no body but what can be read and kept."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_checked(request: Request) -> Response:
            if not request.state.has_body:
                return await handle(request)
            if request.url.path != SIGN_IN_PATH:
                await identify(request)
            # A body of another kind is refused by its own word: a missing field would be told.
            body, is_json = await request.body(), is_of_api(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            what, wanted = "a form", "application/x-www-form-urlencoded"
            if is_json:
                what, wanted = "JSON", "application/json"
            if kind and kind != wanted and not (is_json and kind.endswith("+json")):
                raise ApiError(
                    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                    "unsupported_media_type",
                    f"the body is {kind[:100]!r}; send {what}, with the header Content-Type: "
                    f"{wanted}",
                )
            if not (is_plain_json(body) if is_json else is_plain_form(body)):
                refuse_text()
            return await handle(request)

        return handle_checked


class ConditionalRoute(Route):
    """Gives what is read an ETag, and 304 to who names it in If-None-Match (RFC 9110)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - FastAPI's
        if "GET" in (options.get("methods") or ()):
            answered = {304: {"description": "The ETag in If-None-Match still holds."}}
            options["responses"] = {**(options.get("responses") or {}), **answered}
        super().__init__(*arguments, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_condition(request: Request) -> Response:
            answer = await handle(request)
            if request.method != "GET":
                return answer
            tag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
            # Weak: what is compressed differs in its bytes.
            answer.headers.update({"etag": f"W/{tag}", "cache-control": "private, no-cache"})
            if _FILES.is_not_modified(Headers({"etag": tag}), request.headers):
                return NotModifiedResponse(answer.headers)
            return answer

        return handle_condition
