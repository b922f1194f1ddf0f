"""Routes of the page *Compare*."""

import asyncio
import secrets
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlencode

from cachetools import LRUCache, cached
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobRecord, JobState
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.comparing.figures import make_pictures
from kernelcast.service.pages.comparing.view import KINDS, ComparingView, list_stored, make_view
from kernelcast.service.pages.comparing.words import tell_explanation, tell_verdict, tell_wins
from kernelcast.service.pages.dependencies import Name, PageReader
from kernelcast.service.pages.pictures import Theme, link_all, respond_by_name
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.routes.jobs import find_job
from kernelcast.service.service import Service

router = APIRouter(route_class=PageRoute)
_MOST_STORED = 50
_MOST_WON = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown, out of the address."""

    of: Name = ""
    first: Name = ""
    second: Name = ""
    device: Name = ""


Chosen = Annotated[Choice, Depends()]


@router.get("/comparing")
async def show_comparing(
    request: Request, service: OurService, _: PageReader, chosen: Chosen
) -> Response:
    """Show two models side by side, and the form that starts a comparison."""
    jobs = await _list_jobs(service)
    error = ""
    try:
        view = await _look(service, jobs, chosen)
    except InputError as caught:
        error = message_of(caught)
        view = ComparingView(stored=list_stored(jobs), chosen=chosen.of)
    return render(
        request,
        "comparing/page.html",
        {
            "view": view,
            "error": error,
            "pictures": _link_pictures(view),
            "key": secrets.token_hex(8),
            **_tell(view),
            **await run_in_thread(_list_choices),
            "is_at_work": any(not one.state.is_final for one in jobs),
        },
        status=HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK,
    )


@router.get("/comparing/{name}.{ending}")
async def show_picture(
    name: str,
    ending: str,
    service: OurService,
    _: PageReader,
    chosen: Chosen,
    theme: Theme = "light",
) -> Response:
    """Draw one of the page's pictures, or give its numbers."""
    view = await _look(service, await _list_jobs(service), chosen)
    return await respond_by_name(make_pictures(view), name, ending, theme)


async def _list_jobs(service: Service) -> Sequence[JobRecord]:
    look = partial(service.state.jobs.list, kinds=KINDS, most=_MOST_STORED, with_results=False)
    return await asyncio.to_thread(look)


async def _look(service: Service, jobs: Sequence[JobRecord], chosen: Choice) -> ComparingView:
    stored = list_stored(jobs)
    wanted = chosen.of or (stored[0].id if stored else "")
    if not wanted:
        return ComparingView(stored=stored)
    job = await find_job(wanted, service)
    if job.kind not in KINDS or job.state is not JobState.DONE or job.result is None:
        refuse_unknown("comparison", wanted)
    return await run_in_thread(
        _make, stored, job, first=chosen.first, second=chosen.second, device=chosen.device
    )


def _name_content(stored: tuple[Any, ...], job: JobRecord, **chosen: str) -> Hashable:
    """Give what tells contents apart: a finished job never changes."""
    return stored, job.id, *chosen.values()


# The page's pictures ask for the same, and resampling takes its time.
_make = cached(LRUCache(8), key=_name_content, lock=Lock())(make_view)


def _link_pictures(view: ComparingView) -> dict[str, Any]:
    comparison = view.comparison
    if comparison is None:
        return {}
    shown = {"of": view.chosen, "device": "" if view.device is None else view.device.device}
    if view.models:
        shown |= {"first": comparison.first, "second": comparison.second}
    return link_all(make_pictures(view), "/comparing", urlencode(shown))


def _tell(view: ComparingView) -> dict[str, Any]:
    """Put what was found into words."""
    comparison, device = view.comparison, view.device
    if comparison is None or device is None:
        return {"verdict": "", "wins": "", "won": {}, "undecided": [], "explanations": []}
    return {
        "verdict": tell_verdict(comparison, device),
        "wins": tell_wins(comparison, device),
        "won": {
            name: device.list_wins(name, _MOST_WON)
            for name in (comparison.first, comparison.second)
        },
        "undecided": [one for one in device.kernels if one.winner is None],
        "explanations": [(one, tell_explanation(one)) for one in view.explained],
    }


def _list_choices() -> dict[str, Any]:
    """Give the models that may be compared, and those of an ablation."""
    from kernelcast.reports.accuracy.judging import ABLATION, list_models

    return {"known_models": list_models(), "ablation_models": ABLATION}
