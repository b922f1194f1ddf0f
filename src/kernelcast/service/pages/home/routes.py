"""Routes of the home page and of the lists that lead from it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from kernelcast.launches.data_store import Selection
from kernelcast.records.errors import DeviceError, InputError
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of
from kernelcast.service.known_machines import list_calibrated
from kernelcast.service.middleware import API_PREFIX
from kernelcast.service.pages.dependencies import PageAdmin, PageReader
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.model_answers import UsedModel
    from kernelcast.training.registry import ModelVersions

T = TypeVar("T")
router = APIRouter(route_class=PageRoute)
_MOST_ANSWERS: Final = 8
_MOST_ENTRIES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A device, whether it was calibrated, and how many samplings wait for it or run."""

    id: str
    name: str
    platform: str
    is_calibrated: bool
    waiting: int


@router.get("/")
async def show_home(request: Request, service: OurService, _: PageReader) -> Response:
    """Show how the service is, what it did last, and what to do next."""
    devices, failure = await _list_devices(service)
    used, _failures = await run_in_thread(_list_used, service.settings.registry)
    observations = (await service.editing.find(Selection(), most=0)).count
    shifted = [one for one in service.predictions.list_compared() if one.has_shifted]
    answered = service.predictions.list_answered()
    known = Known(
        devices=len(devices),
        calibrated=sum(one.is_calibrated for one in devices),
        observations=observations,
        models=len(used),
        shifts=len(shifted),
        asked=len(answered),
    )
    values = {
        "instance": request.app.state.instance,
        "started": datetime.fromisoformat(request.app.state.instance.started_at),
        "api": request.app.version,
        "sandbox": service.protection.name,
        "devices": devices,
        "device_failure": failure,
        "known": known,
        "steps": list(list_steps(known, service)),
        "jobs": await asyncio.to_thread(service.state.jobs.count),
        "answers": answered[:_MOST_ANSWERS],
        "shifted": list(reversed(shifted))[:_MOST_ANSWERS],
        "compared": len(service.predictions.list_compared()),
    }
    return render(request, "home/home.html", values)


@router.get("/estimates")
async def show_estimates(request: Request, service: OurService, _: PageReader) -> Response:
    """Show the last answers of this process."""
    values = {"answers": service.predictions.list_answered()}
    return render(request, "home/estimates.html", values)


@router.get("/models")
async def show_models(request: Request, service: OurService, _: PageReader) -> Response:
    """Show the models in use, and the versions of those that were trained here."""
    used, failures = await run_in_thread(_list_used, service.settings.registry)
    known, more = await run_in_thread(_list_known, service.settings.registry)
    values = {"used": used, "known": known, "failures": [*failures, *more]}
    return render(request, "home/models.html", values)


@router.get("/audit")
async def show_audit(request: Request, service: OurService, _: PageAdmin) -> Response:
    """Show what administrators did."""
    entries = await asyncio.to_thread(service.state.audit.list, most=_MOST_ENTRIES)
    return render(request, "home/audit.html", {"entries": entries})


@router.get("/docs")
async def show_api(request: Request, _: PageReader) -> Response:
    """Describe the API to people."""
    described: Mapping[str, Any] = request.app.openapi()
    routes = [
        (method.upper(), path, told)
        for path, methods in described["paths"].items()
        for method, told in methods.items()
    ]
    values = {"info": described["info"], "routes": routes, "address": f"{API_PREFIX}/openapi.json"}
    return render(request, "home/api.html", values)


@router.get("/openapi.json")
async def lead_to_description() -> Response:
    """Lead to the API's description, where many look for it first."""
    return RedirectResponse(f"{API_PREFIX}/openapi.json", HTTPStatus.TEMPORARY_REDIRECT)


async def _list_devices(service: Service) -> tuple[list[DeviceState], str]:
    try:
        found = await service.devices.list()
    except DeviceError as error:
        return [], message_of(error)
    calibrated = await asyncio.to_thread(list_calibrated)
    devices = [
        DeviceState(
            id=one.id,
            name=one.name,
            platform=one.platform,
            is_calibrated=one.id in calibrated,
            waiting=service.estimating.queues.of(one.id).length,
        )
        for one in found
    ]
    return devices, ""


def _list_used(registry: str | None) -> "tuple[tuple[UsedModel, ...], list[str]]":
    from kernelcast.reports.accuracy.model_answers import list_used_models

    return _try(list_used_models, registry)


def _list_known(registry: str | None) -> "tuple[tuple[ModelVersions, ...], list[str]]":
    from kernelcast.training.model_admin import list_known_models

    return _try(list_known_models, registry)


def _try(
    read: Callable[[str | None], tuple[T, ...]], registry: str | None
) -> tuple[tuple[T, ...], list[str]]:
    """Read what a registry has, or why it cannot be read."""
    try:
        return read(registry), []
    except InputError as error:
        return (), [message_of(error)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the service has."""

    devices: int
    calibrated: int
    observations: int
    models: int
    shifts: int
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do, why, and where."""

    title: str
    reason: str
    link: str


def list_steps(known: Known, service: Service) -> Iterator[Step]:
    """Give what to do next, the most useful first."""
    if not known.devices:
        yield Step(
            title="Install an OpenCL driver",
            reason="there is no device here: pip install 'kernelcast[cpu]'",
            link="/devices",
        )
    if known.shifts:
        yield Step(
            title="Look at launches that have changed",
            reason=f"{known.shifts} took another time than before, for good",
            link="/accuracy?source=answers",
        )
    if not known.asked:
        yield Step(
            title="Ask for an estimate", reason="this process has answered none yet", link="/lab"
        )
    if known.calibrated < known.devices:
        yield Step(
            title="Calibrate a device",
            reason=f"{known.devices - known.calibrated} of {known.devices} have no limiters and "
            "need samples for every answer",
            link="/devices",
        )
    if not known.observations:
        yield Step(
            title="Start a collection",
            reason="there are no observations: nothing answers from history, nothing can be judged",
            link="/jobs?new=collect#start",
        )
    elif not known.models:
        yield Step(
            title="Train a model",
            reason=f"{known.observations:,} observations wait to be learned from",
            link="/jobs?new=train#start",
        )
    if not service.settings.allow_run:
        yield Step(
            title="Allow samples",
            reason="kernels are not run here: kernelcast serve --allow-run",
            link="/lab",
        )
