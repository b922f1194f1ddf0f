"""Routes of the page *Accuracy*."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from kernelcast.service.dependencies import OurService
from kernelcast.service.pages.accuracy.figures import make_pictures
from kernelcast.service.pages.accuracy.reading import read_state
from kernelcast.service.pages.accuracy.view import AccuracyState, AccuracyView, Source, make_view
from kernelcast.service.pages.dependencies import Name, PageReader
from kernelcast.service.pages.pictures import Theme, link_all, respond_by_name
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread

router = APIRouter(route_class=PageRoute)
_LABELS = {
    Source.OBSERVATIONS: "observations of this service",
    Source.VALIDATION: "validation of the models",
    Source.ANSWERS: "answers of this process",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown, out of the address; a job is a validation."""

    source: Source = Source.OBSERVATIONS
    device: Name = ""
    method: Name = ""
    job: Name = ""


Chosen = Annotated[Choice, Depends()]


@router.get("/accuracy")
async def show_accuracy(
    request: Request, service: OurService, _: PageReader, chosen: Chosen
) -> Response:
    """Show how far predictions were off."""
    state, view = await _look(service, chosen)
    shown = {
        "source": view.source, "device": view.device, "method": view.method, "job": chosen.job,
    }  # fmt: skip
    query = urlencode({name: one for name, one in shown.items() if one})
    return render(
        request,
        "accuracy/page.html",
        {
            "view": view,
            "state": state,
            "job": chosen.job,
            "sources": _LABELS,
            "pictures": link_all(make_pictures(view), "/accuracy", query),
            "shifts": sum(one.shifted_at is not None for one in view.rows),
        },
    )


@router.get("/accuracy/{name}.{ending}")
async def show_picture(
    name: str,
    ending: str,
    service: OurService,
    _: PageReader,
    chosen: Chosen,
    theme: Theme = "light",
) -> Response:
    """Draw one of the page's pictures, or give its numbers."""
    view = (await _look(service, chosen))[1]
    return await respond_by_name(make_pictures(view), name, ending, theme)


async def _look(service: OurService, chosen: Choice) -> tuple[AccuracyState, AccuracyView]:
    compared = service.predictions.list_compared()
    state = await run_in_thread(read_state, service, compared, chosen.job or None)
    source = Source.VALIDATION if chosen.job else chosen.source
    view = await run_in_thread(make_view, state, source, chosen.device, chosen.method)
    return state, view
