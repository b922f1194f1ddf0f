"""Whether the service lives and can answer, and what it has counted."""

import asyncio
import contextlib
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from starlette.responses import Response

from kernelcast.records.errors import KernelcastError
from kernelcast.service.asking import OurService, get_caller
from kernelcast.service.schemas.common import Open
from kernelcast.service.security import Caller

router = APIRouter(tags=["operation"])


class Health(Open):
    """The service answers."""

    status: str


class Readiness(Open):
    """The service can answer estimates."""

    status: str
    devices: int
    sandbox: Literal["bubblewrap", "none"]


@router.get("/health", response_model=Health)
async def health() -> Health:
    """Tell that the process lives."""
    return Health(status="ok")


@router.get("/ready", response_model=Readiness)
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
async def metrics(service: OurService, _: Annotated[Caller, Depends(get_caller)]) -> Response:
    """Give what the service has counted; any token will do where one is needed."""
    with contextlib.suppress(KernelcastError):  # counts are wanted most when something is away
        counts = await asyncio.to_thread(service.state.jobs.count)
        for state, number in counts.items():
            service.metrics.jobs.labels(state).set(number)
    content, kind = service.metrics.write()
    return Response(content, headers={"content-type": kind})
