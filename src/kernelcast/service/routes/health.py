"""Whether the service lives and can answer, and what it has counted."""

import asyncio
import contextlib
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from kernelcast.records.errors import KernelcastError
from kernelcast.service.authentication import Caller
from kernelcast.service.dependencies import OurService, identify
from kernelcast.service.schemas import Open
from kernelcast.service.telemetry import Instance

router = APIRouter(tags=["operation"])


class Health(Open):
    """The service answers."""

    status: str
    service: str = Field(description="Always `kernelcast`.")
    instance: str = Field(
        description="Drawn when the service starts; `X-Kernelcast-Instance` names it in answers."
    )
    version: str = Field(description="Of kernelcast.")
    api: str = Field(description="Version of this description.")
    started_at: str = Field(description="ISO 8601, UTC.")
    pid: int = Field(description="Of the process that was started, on the service's host.")
    refine_share: float = Field(
        description="Of the time, which may go into sampling again what was asked for; 0: none."
    )


class Readiness(Open):
    """The service can answer estimates."""

    status: str
    devices: int
    sandbox: Literal["bubblewrap", "none"]


@router.get("/health")
async def health(request: Request, service: OurService) -> Health:
    """Tell that the process lives, and which service it is."""
    one: Instance = request.app.state.instance
    return Health(
        status="ok",
        service="kernelcast",
        instance=one.id,
        version=one.version,
        api=request.app.version,
        started_at=one.started_at,
        pid=one.pid,
        refine_share=service.settings.refine_share if service.settings.allow_run else 0.0,
    )


@router.get("/ready")
async def readiness(service: OurService) -> Readiness:
    """Tell whether the database and the devices answer, and what confines submitted kernels."""
    await asyncio.to_thread(service.state.check)
    return Readiness(
        status="ready",
        devices=len(await service.devices.list()),
        sandbox="none" if service.protection.confinement is None else "bubblewrap",
    )


@router.get(
    "/metrics",
    response_model=None,
    responses={200: {"description": "Prometheus text.", "content": {"text/plain": {}}}},
)
async def metrics(service: OurService, _: Annotated[Caller, Depends(identify)]) -> Response:
    """Give what the service has counted; any token will do where one is needed."""
    await service.answers.flush()
    with contextlib.suppress(KernelcastError):  # counts are wanted most when something is away
        counts = await asyncio.to_thread(service.state.jobs.count)
        for state, number in counts.items():
            service.metrics.jobs.labels(state).set(number)
    content, kind = service.metrics.write()
    return Response(content, headers={"content-type": kind})
