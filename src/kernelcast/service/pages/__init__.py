"""The web pages: what the API answers, for people; home, signing in, the audit log and the API."""

import asyncio
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from kernelcast.launches.data_store import Selection
from kernelcast.service.dependencies import (
    SIGN_IN_PATH,
    Admin,
    OurService,
    Reader,
    Route,
    SentForm,
    describe_cookie,
)
from kernelcast.service.errors import ApiError
from kernelcast.service.pages import accuracy, devices, jobs, kernels, lab
from kernelcast.service.pages.accuracy import read_models
from kernelcast.service.pages.rendering import FIRST_PAGE, render, run_in_thread
from kernelcast.service.routes.devices import list_calibrated
from kernelcast.service.settings import API_PREFIX
from kernelcast.service_state import AnswerFilter

router = APIRouter(route_class=Route)
_MOVED: Final = {
    "/observations": "/kernels", "/estimates": "/kernels?show=estimates",
    "/comparing": "/accuracy/compare", "/models": "/accuracy/models",
    "/openapi.json": f"{API_PREFIX}/openapi.json",
}  # fmt: skip
"""Where pages are that had other addresses, or that many look for elsewhere."""


@router.get("/")
async def show_home(page: Reader) -> Response:
    """Show how the service is, what it did last, and what to do next."""
    service = page.service
    await service.answers.flush()
    devices, failure = await service.devices.find()
    calibrated = await asyncio.to_thread(list_calibrated)
    used, *_failures = await run_in_thread(read_models, service.settings.registry)
    answered = await asyncio.to_thread(service.state.answers.find, AnswerFilter(), most=8)
    recent = AnswerFilter(given_from=datetime.now(UTC) - timedelta(days=28))
    values = {
        "started": datetime.fromisoformat(service.settings.identity.started_at),
        "devices": devices,
        "calibrated": calibrated,
        "device_failure": failure,
        "observations": await service.observing.count(Selection()),
        "models": used,
        "jobs": await asyncio.to_thread(service.state.jobs.count),
        "answers": answered,
        "sums": await asyncio.to_thread(service.state.answers.sum_up, ("device_id",), recent),
        "shifts": [*service.answers.shifts.values()],
    }
    return render(page.request, "home/home.html", values)


@router.get("/audit")
async def show_audit(page: Admin) -> Response:
    """Show what administrators did."""
    entries = await asyncio.to_thread(page.service.state.audit.list, most=200)
    return render(page.request, "home/audit.html", {"entries": entries})


@router.get("/docs")
async def show_api(page: Reader) -> Response:
    """Describe the API to people."""
    values = {"described": page.request.app.openapi(), "address": f"{API_PREFIX}/openapi.json"}
    return render(page.request, "home/api.html", values)


async def lead_on(request: Request) -> Response:
    """Lead to where a page has moved."""
    target = _MOVED[request.url.path]
    mark = "&" if "?" in target else "?"
    query = f"{mark}{request.url.query}" if request.url.query else ""
    return RedirectResponse(target + query, HTTPStatus.TEMPORARY_REDIRECT)


for _path in _MOVED:
    router.add_api_route(_path, lead_on)


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
    token, wanted = form.first("token"), _choose_next(form.first("next"))
    try:
        request.state.caller = await service.authenticator.identify(f"Bearer {token}")
    except ApiError as error:
        values = {"next": wanted, "error": error.message}
        return render(request, "sign_in.html", values, status=error.status)
    answer = RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    answer.set_cookie(value=token, **describe_cookie(request))
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Forget the token of this browser."""
    answer = RedirectResponse(SIGN_IN_PATH, HTTPStatus.SEE_OTHER)
    answer.delete_cookie(**describe_cookie(request))
    return answer


def _choose_next(text: str) -> str:
    """Give the page that somebody wanted; never another site's."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if is_ours and text.isprintable() else FIRST_PAGE


class _Assets(StaticFiles):
    """Files that pages load; browsers keep them and ask whether they have changed."""

    def file_response(self, *args: Any, **options: Any) -> Response:  # noqa: ANN401 - Starlette's
        answer = super().file_response(*args, **options)
        answer.headers["cache-control"] = "public, no-cache"
        return answer


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    app.mount("/assets", _Assets(directory=Path(__file__).parent / "static"))
    # What has a name of its own below an address comes before what takes any name there.
    for pages in (router, *(one.router for one in (kernels, lab, devices, accuracy, jobs))):
        app.include_router(pages, include_in_schema=False)
