"""The web pages: what the API answers, for people."""

from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from kernelcast.service.pages import accuracy, devices, home, jobs, kernels, lab

STATIC: Final = Path(__file__).parent / "static"


class _Assets(StaticFiles):
    """Files that pages load; browsers keep them and ask whether they have changed."""

    def file_response(self, *args: Any, **options: Any) -> Response:  # noqa: ANN401 - Starlette's
        answer = super().file_response(*args, **options)
        answer.headers["cache-control"] = "public, no-cache"
        return answer


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    app.mount("/assets", _Assets(directory=STATIC))
    # What has a name of its own below an address comes before what takes any name there.
    for page in (home, kernels, lab, devices, accuracy, jobs):
        app.include_router(page.router, include_in_schema=False)
