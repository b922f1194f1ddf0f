"""What the routes ask of a request: the service, the caller, and scopes."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope as ServerScope

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import AuditRecord, Scope
from kernelcast.service.authentication import Caller, require
from kernelcast.service.errors import ApiError
from kernelcast.service.service import Service
from kernelcast.service.telemetry import log

_BEARER = HTTPBearer(auto_error=False, description="A token of `kernelcast serve token create`.")
_IDENTIFIED: Final = "identified"
_FILES: Final = StaticFiles()  # compares tags; no file is read
_NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The ETag in If-None-Match still holds."}
}
_SHOWN_NAMES: Final = 10


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def identify(request: ServerScope, service: Service, authorization: str | None) -> Caller:
    """Tell who calls; a request that was looked at before its body was read is not asked again."""
    state = request.setdefault("state", {})
    known: tuple[str | None, Caller | Exception] | None = state.get(_IDENTIFIED)
    if known is None or known[0] != authorization:
        caller: Caller | Exception
        try:
            caller = await service.authenticator.identify(authorization)
        except (ApiError, KernelcastError) as error:
            caller = error
        known = state[_IDENTIFIED] = (authorization, caller)
    if isinstance(known[1], Exception):
        raise known[1]
    state["caller"] = known[1].name
    return known[1]


async def get_caller(request: Request, service: Annotated[Service, Depends(get_service)]) -> Caller:
    return await identify(request.scope, service, request.headers.get("authorization"))


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


def needs(scope: Scope, get: Callable[..., Awaitable[Caller]]) -> object:
    """Make the dependency of a route that needs a scope, of a caller whom `get` tells."""

    async def check(request: Request, caller: Annotated[Caller, Depends(get)]) -> Call:
        require(caller, scope)
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


OurService = Annotated[Service, Depends(get_service)]
Documented = Depends(_BEARER)
"""Tells readers of the API's description that tokens exist; `get_caller` reads them."""
KnownParameters = Depends(_refuse_unknown_parameters)
"""Refuses what a route of the API does not declare; pages ignore what other programs append."""
Reader = Annotated[Call, needs(Scope.ESTIMATE, get_caller)]
Observer = Annotated[Call, needs(Scope.OBSERVE, get_caller)]
Admin = Annotated[Call, needs(Scope.ADMIN, get_caller)]


class ConditionalRoute(APIRoute):
    """Gives what is read an ETag, and 304 to who names it in If-None-Match (RFC 9110)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - FastAPI's
        if "GET" in (options.get("methods") or ()):
            options["responses"] = {**(options.get("responses") or {}), **_NOT_MODIFIED}
        super().__init__(*arguments, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Handle a request as other routes do, then look at the answer."""
        handle = super().get_route_handler()

        async def handle_condition(request: Request) -> Response:
            answer = await handle(request)
            return respond_if_changed(request, answer) if request.method == "GET" else answer

        return handle_condition


def respond_if_changed(request: Request, answer: Response, usage: str = "private") -> Response:
    """Tag an answer; leave it out where the caller has it."""
    tag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
    # Weak: what is compressed differs in its bytes.
    answer.headers.update({"etag": f"W/{tag}", "cache-control": f"{usage}, no-cache"})
    if _FILES.is_not_modified(Headers({"etag": tag}), request.headers):
        return NotModifiedResponse(answer.headers)
    return answer
