"""Home: how the service is, how good its answers are; signing in, the audit log and the API."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from kernelcast.launches.data_store import Selection
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import ApiError
from kernelcast.service.pages.accuracy import read_models
from kernelcast.service.pages.dependencies import (
    SIGN_IN_PATH,
    PageAdmin,
    PageReader,
    SentForm,
    forget_token,
    keep_token,
    refuse_foreign_form,
)
from kernelcast.service.pages.rendering import FIRST_PAGE, PageRoute, render, run_in_thread
from kernelcast.service.routes.devices import list_calibrated
from kernelcast.service.service import Service
from kernelcast.service.settings import API_PREFIX
from kernelcast.service_state import AnswerFilter

router = APIRouter(route_class=PageRoute)
_MOST_ANSWERS: Final = 8
_RECENT: Final = timedelta(days=28)
_MOVED: Final = {
    "/observations": "/kernels", "/estimates": "/kernels?show=estimates",
    "/comparing": "/accuracy/compare", "/models": "/accuracy/models",
    "/openapi.json": f"{API_PREFIX}/openapi.json",
}  # fmt: skip
"""Where pages are that had other addresses, or that many look for elsewhere."""


@router.get("/")
async def show_home(page: PageReader) -> Response:
    """Show how the service is, what it did last, and what to do next."""
    service, app = page.service, page.request.app
    queue_of = service.estimating.queue_of
    await service.answers.flush()
    found, failure = await service.devices.find()
    calibrated = await asyncio.to_thread(list_calibrated)
    devices = [
        {"id": one.id, "name": one.name, "platform": one.platform,
         "is_calibrated": one.id in calibrated, "waiting": queue_of(one.id).length}
        for one in found
    ]  # fmt: skip
    used, *_failures = await run_in_thread(read_models, service.settings.registry)
    answered = await asyncio.to_thread(
        service.state.answers.find, AnswerFilter(), most=_MOST_ANSWERS
    )
    recent = AnswerFilter(given_from=datetime.now(UTC) - _RECENT)
    shifts = sorted(service.answers.shifts.values(), key=lambda one: one.at, reverse=True)
    known = {
        "devices": len(devices),
        "calibrated": sum(one.id in calibrated for one in found),
        "observations": await service.observing.count(Selection()),
        "models": len(used),
        "shifts": len(shifts),
        "asked": len(answered),
    }
    values = {
        "instance": app.state.instance,
        "started": datetime.fromisoformat(app.state.instance.started_at),
        "api": app.version,
        "sandbox": service.protection.name,
        "devices": devices,
        "device_failure": failure,
        "known": known,
        "steps": list(_list_steps(known, service)),
        "jobs": await asyncio.to_thread(service.state.jobs.count),
        "answers": answered,
        "sums": await asyncio.to_thread(service.state.answers.sum_up, ("device_id",), recent),
        "shifted": shifts[:_MOST_ANSWERS],
    }
    return render(page.request, "home/home.html", values)


@router.get("/audit")
async def show_audit(page: PageAdmin) -> Response:
    """Show what administrators did."""
    entries = await asyncio.to_thread(page.service.state.audit.list, most=200)
    return render(page.request, "home/audit.html", {"entries": entries})


@router.get("/docs")
async def show_api(page: PageReader) -> Response:
    """Describe the API to people."""
    described: Mapping[str, Any] = page.request.app.openapi()
    routes = [
        (method.upper(), path, told)
        for path, methods in described["paths"].items()
        for method, told in methods.items()
    ]
    values = {"info": described["info"], "routes": routes, "address": f"{API_PREFIX}/openapi.json"}
    return render(page.request, "home/api.html", values)


async def lead_on(request: Request) -> Response:
    """Lead to where a page has moved."""
    target = _MOVED[request.url.path]
    mark = "&" if "?" in target else "?"
    query = f"{mark}{request.url.query}" if request.url.query else ""
    return RedirectResponse(target + query, HTTPStatus.TEMPORARY_REDIRECT)


for _path in _MOVED:
    router.add_api_route(_path, lead_on)


def _list_steps(known: Mapping[str, int], service: Service) -> Iterator[tuple[str, str, str]]:
    """Give what to do next, the most useful first: a title, why, and where."""
    uncalibrated = known["devices"] - known["calibrated"]
    if not known["devices"]:
        why = "there is no device here; an embedded CPU device comes with the extra cpu"
        yield "Install an OpenCL driver", why, "/devices"
    if known["shifts"]:
        why = f"{known['shifts']} took another time than before, for good"
        yield "Look at launches that have changed", why, "/accuracy"
    if not known["asked"]:
        yield "Ask for an estimate", "this service has answered none yet", "/lab"
    if uncalibrated:
        why = f"{uncalibrated} of {known['devices']} have no limiters and need samples for every "
        yield "Calibrate a device", f"{why}answer", "/devices"
    if not known["observations"]:
        why = "there are no observations: nothing answers from history, nothing can be judged"
        yield "Start a collection", why, "/jobs?new=collect#start"
    elif not known["models"]:
        why = f"{known['observations']:,} observations wait to be learned from"
        yield "Train a model", why, "/jobs?new=train#start"
    if not service.settings.allow_run:
        yield "Allow samples", "kernels are not run here: kernelcast serve --allow-run", "/lab"


@router.get(SIGN_IN_PATH)
async def show_sign_in(request: Request, service: OurService) -> Response:
    """Ask for a token, where one is needed."""
    wanted = _choose_next(request.query_params.get("next", ""))
    if not service.settings.needs_tokens:
        return RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    return render(request, "sign_in.html", {"next": wanted, "error": ""})


@router.post(SIGN_IN_PATH)
async def sign_in(request: Request, form: SentForm, service: OurService) -> Response:
    """Take a token; a wrong one counts as everywhere."""
    refuse_foreign_form(request)
    token, wanted = form.first("token"), _choose_next(form.first("next"))
    try:
        caller = await service.authenticator.identify(f"Bearer {token}")
    except ApiError as error:
        values = {"next": wanted, "error": error.message}
        return render(request, "sign_in.html", values, status=error.status)
    request.state.caller = caller.name
    answer = RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    keep_token(answer, request, token)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Forget the token of this browser."""
    refuse_foreign_form(request)
    answer = RedirectResponse(SIGN_IN_PATH, HTTPStatus.SEE_OTHER)
    forget_token(answer, request)
    return answer


def _choose_next(text: str) -> str:
    """Give the page that somebody wanted; never another site's."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if is_ours and text.isprintable() else FIRST_PAGE
