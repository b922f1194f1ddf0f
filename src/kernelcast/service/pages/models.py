"""The models section of Accuracy: what is in use, and which of the devices here each serves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of
from kernelcast.service.pages.dependencies import PageReader
from kernelcast.service.pages.rendering import PageRoute, render, run_in_thread

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.judging import UsedModel
    from kernelcast.training.registry import ModelVersions

router = APIRouter(route_class=PageRoute)


@router.get("/accuracy/models")
async def show_models(request: Request, service: OurService, _: PageReader) -> Response:
    """Show the models in use with the devices that each serves, and the versions trained here."""
    registry = service.settings.registry
    used, failures = await run_in_thread(list_used, registry)
    known, more = await run_in_thread(_list_known, registry)
    found, failure = await service.devices.find()
    devices = sorted(one.id for one in found)
    values = {
        "used": [(one, find_served(one.name, devices)) for one in used],
        "unserved": [
            one
            for one in devices
            if not any(one in find_served(each.name, devices) for each in used)
        ],
        "known": known,
        "failures": [*failures, *more, *filter(None, [failure])],
    }
    return render(request, "accuracy/models.html", values)


def find_served(model: str, devices: Sequence[str]) -> list[str]:
    """Find the devices that a model serves: that of its name, or all where it names none."""
    _, mark, device = model.partition("/")
    return [one for one in devices if not mark or one == device]


def list_used(registry: str | None) -> "tuple[tuple[UsedModel, ...], list[str]]":
    """List the models in use, and what cannot be read."""
    from kernelcast.reports.accuracy.judging import list_used_models

    try:
        return list_used_models(registry), []
    except InputError as error:
        return (), [message_of(error)]


def _list_known(registry: str | None) -> "tuple[tuple[ModelVersions, ...], list[str]]":
    from kernelcast.training.model_admin import list_known_models

    try:
        return list_known_models(registry), []
    except InputError as error:
        return (), [message_of(error)]
