"""The web pages: what the API answers, for people."""

from fastapi import APIRouter, FastAPI
from starlette.responses import RedirectResponse, Response

from kernelcast.service.pages import assets, sign_in
from kernelcast.service.pages.accuracy import routes as accuracy
from kernelcast.service.pages.comparing import routes as comparing
from kernelcast.service.pages.devices import routes as devices
from kernelcast.service.pages.jobs import routes as jobs
from kernelcast.service.pages.kernels import routes as kernels
from kernelcast.service.pages.lab import routes as lab
from kernelcast.service.pages.rendering import FIRST_PAGE, PageRoute

_first = APIRouter(route_class=PageRoute)


@_first.get("/", response_model=None)
async def show_first_page() -> Response:
    """Lead to the first page."""
    return RedirectResponse(FIRST_PAGE, 303)


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    for one in (_first, sign_in.router, assets.router):
        app.include_router(one, include_in_schema=False)
    for page in (lab, devices, accuracy, kernels, comparing, jobs):
        app.include_router(page.router, include_in_schema=False)
