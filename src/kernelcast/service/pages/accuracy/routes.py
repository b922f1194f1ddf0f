"""Routes of the page *Accuracy*."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from kernelcast.reports.charts import Figure
from kernelcast.service.dependencies import OurService
from kernelcast.service.pages.accuracy.figures import make_pictures, picture_weeks
from kernelcast.service.pages.accuracy.reading import read_state
from kernelcast.service.pages.accuracy.view import AccuracyState, AccuracyView, Source, make_view
from kernelcast.service.pages.dependencies import Name, PageReader
from kernelcast.service.pages.pictures import Theme, link_all, respond
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter

router = APIRouter(route_class=PageRoute)
_LABELS = {
    Source.OBSERVATIONS: "observations of this service",
    Source.VALIDATION: "validation of the models",
    Source.ANSWERS: "answers of this service",
}
_WEEKS: Final = {4: "four weeks", 13: "three months", 52: "a year"}
"""How far back answers are summed up."""
_MOST_KERNELS: Final = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown, out of the address; a job is a validation."""

    source: Source = Source.OBSERVATIONS
    device: Name = ""
    method: Name = ""
    job: Name = ""
    weeks: int = 13


Chosen = Annotated[Choice, Depends()]


@router.get("/accuracy")
async def show_accuracy(
    request: Request, service: OurService, _: PageReader, chosen: Chosen
) -> Response:
    """Show how far predictions were off."""
    state, view = await _look(service, chosen)
    sums = await _sum_up(service, chosen.weeks)
    shown = {
        "source": view.source, "device": view.device, "method": view.method, "job": chosen.job,
        "weeks": chosen.weeks,
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
            "pictures": link_all(
                {**make_pictures(view), **_picture_sums(sums)}, "/accuracy", query
            ),
            "sums": sums,
            "weeks": chosen.weeks,
            "reaches": _WEEKS,
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
    if name == "weeks":
        found = _picture_sums(await _sum_up(service, chosen.weeks))
    else:
        found = dict(make_pictures((await _look(service, chosen))[1]))
    return await respond(found, name, ending, theme)


async def _sum_up(service: Service, weeks: int) -> dict[str, list[dict[str, Any]]]:
    """Sum up answers by device and tier, by week, and by kernel."""
    await service.answers.flush()
    weeks = weeks if weeks in _WEEKS else 13
    wanted = AnswerFilter(given_from=datetime.now(UTC) - timedelta(weeks=weeks))
    by = {
        "methods": ("device_id", "tier"),
        "weeks": ("week", "device_id"),
        "kernels": ("device_id", "kernel"),
    }
    find = service.state.answers.sum_up
    sums = {name: await asyncio.to_thread(find, keys, wanted) for name, keys in by.items()}
    observed = [one for one in sums["kernels"] if one["observed"]]
    observed.sort(key=lambda one: -float(one["error"]))
    return {**sums, "kernels": observed[:_MOST_KERNELS]}


def _picture_sums(sums: dict[str, list[dict[str, Any]]]) -> dict[str, Figure]:
    picture = picture_weeks(sums["weeks"])
    return {} if picture is None else {"weeks": picture}


async def _look(service: OurService, chosen: Choice) -> tuple[AccuracyState, AccuracyView]:
    await service.answers.flush()
    state = await run_in_thread(read_state, service, chosen.job or None)
    source = Source.VALIDATION if chosen.job else chosen.source
    view = await run_in_thread(make_view, state, source, chosen.device, chosen.method)
    return state, view
