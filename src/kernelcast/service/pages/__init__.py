"""The web pages: what the API answers, for people."""

from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from kernelcast.service.dependencies import Route, respond_if_changed
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.pages import accuracy, compare, devices, home, jobs, kernels
from kernelcast.service.pages.lab import routes as lab

router = APIRouter(route_class=Route)
_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@router.get("/assets/{name}")
async def send_asset(name: str, request: Request) -> Response:
    """Send a file that pages load; browsers keep it and ask whether it has changed."""
    found = list_assets().get(name)
    if found is None:
        refuse_unknown("asset", name)
    answer = Response(found, media_type=_TYPES[Path(name).suffix])
    return respond_if_changed(request, answer, "public")


@cache
def list_assets() -> dict[str, bytes]:
    """Read all files once; a name is looked up here and never becomes a path."""
    return {one.name: one.read_bytes() for one in _FOLDER.iterdir() if one.suffix in _TYPES}


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    # What has a name of its own below an address comes before what takes any name there.
    pages = (home, kernels, lab, devices, compare, accuracy, jobs)
    for one in (router, *(page.router for page in pages)):
        app.include_router(one, include_in_schema=False)
