"""What the routes ask of a request: the service, the caller, and scopes."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from kernelcast.records.service_state import Scope
from kernelcast.service.security import Caller, require
from kernelcast.service.service import Service

_BEARER = HTTPBearer(auto_error=False, description="A token of `kernelcast serve token create`.")


def get_service(request: Request) -> Service:
    """Give the running service."""
    service: Service = request.app.state.service
    return service


async def get_caller(request: Request, service: Annotated[Service, Depends(get_service)]) -> Caller:
    """Tell who calls, and have the log know.

    Raises
    ------
    ApiError
        If a valid token is needed.
    """
    address = request.client.host if request.client else ""
    caller = await service.gate.identify(request.headers.get("authorization"), address)
    request.state.caller = caller.name
    return caller


def _needs(scope: Scope) -> object:
    """Make the dependency of a route that needs a scope."""

    async def check(caller: Annotated[Caller, Depends(get_caller)]) -> Caller:
        require(caller, scope)
        return caller

    return Depends(check)


OurService = Annotated[Service, Depends(get_service)]
Documented = Depends(_BEARER)
"""Tells readers of the API's description that tokens exist; `get_caller` reads them."""
Reader = Annotated[Caller, _needs(Scope.ESTIMATE)]
Observer = Annotated[Caller, _needs(Scope.OBSERVE)]
Admin = Annotated[Caller, _needs(Scope.ADMIN)]


async def audit(  # noqa: PLR0913 - what, who, where
    request: Request,
    service: Service,
    caller: Caller,
    action: str,
    subject: str,
    detail: dict[str, object] | None = None,
) -> None:
    """Write down what an administrator is about to do."""
    await service.auditor.note(
        caller,
        action,
        subject,
        remote=request.client.host if request.client else "",
        request_id=request.state.request_id,
        detail=detail,
    )
