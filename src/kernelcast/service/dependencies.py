"""What the routes ask of a request: the service, the caller, and scopes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope as ServerScope

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import AuditRecord, Scope
from kernelcast.service.authentication import Caller, require
from kernelcast.service.errors import ApiError
from kernelcast.service.logs import log
from kernelcast.service.service import Service

_BEARER = HTTPBearer(auto_error=False, description="A token of `kernelcast serve token create`.")
_IDENTIFIED: Final = "identified"


@dataclass(frozen=True, slots=True)
class _Identified:
    """What was found out about a request's token."""

    authorization: str | None
    found: Caller | Exception


def get_service(request: Request) -> Service:
    """Give the running service."""
    service: Service = request.app.state.service
    return service


async def identify(request: ServerScope, service: Service, authorization: str | None) -> Caller:
    """Tell who calls; a request that was looked at before its body was read is not asked again."""
    state = request.setdefault("state", {})
    known: _Identified | None = state.get(_IDENTIFIED)
    if known is None or known.authorization != authorization:
        known = await _look(request, service, authorization)
        state[_IDENTIFIED] = known
    if isinstance(known.found, Exception):
        raise known.found
    state["caller"] = known.found.name
    return known.found


async def _look(request: ServerScope, service: Service, authorization: str | None) -> "_Identified":
    client = request.get("client")
    address = client[0] if client else ""
    try:
        return _Identified(
            authorization, await service.authenticator.identify(authorization, address)
        )
    except (ApiError, KernelcastError) as error:
        return _Identified(authorization, error)


async def get_caller(request: Request, service: Annotated[Service, Depends(get_service)]) -> Caller:
    """Tell who calls, and have the log know."""
    return await identify(request.scope, service, request.headers.get("authorization"))


def needs(scope: Scope, get: Callable[..., Awaitable[Caller]]) -> object:
    """Make the dependency of a route that needs a scope, of a caller whom `get` tells."""

    async def check(caller: Annotated[Caller, Depends(get)]) -> Caller:
        require(caller, scope)
        return caller

    return Depends(check)


OurService = Annotated[Service, Depends(get_service)]
Documented = Depends(_BEARER)
"""Tells readers of the API's description that tokens exist; `get_caller` reads them."""
Reader = Annotated[Caller, needs(Scope.ESTIMATE, get_caller)]
Observer = Annotated[Caller, needs(Scope.OBSERVE, get_caller)]
Admin = Annotated[Caller, needs(Scope.ADMIN, get_caller)]


async def audit(
    request: Request,
    service: Service,
    caller: Caller,
    action: str,
    subject: str,
    detail: dict[str, object] | None = None,
) -> None:
    """Write down what an administrator is about to do; nothing is done if that fails."""
    record = AuditRecord(
        at=datetime.now(UTC),
        actor=caller.name,
        action=action,
        subject=subject,
        detail=detail or {},
        remote=request.client.host if request.client else "",
        request_id=request.state.request_id,
    )
    await asyncio.to_thread(service.state.audit.add, record)
    log("admin action", action=action, subject=subject, actor=caller.name,
        request_id=record.request_id)  # fmt: skip
