"""The web pages: what the API answers, for people."""

from fastapi import FastAPI

from kernelcast.service.pages import assets, sign_in
from kernelcast.service.pages.accuracy import routes as accuracy
from kernelcast.service.pages.comparing import routes as comparing
from kernelcast.service.pages.devices import routes as devices
from kernelcast.service.pages.home import routes as home
from kernelcast.service.pages.jobs import routes as jobs
from kernelcast.service.pages.kernels import routes as kernels
from kernelcast.service.pages.lab import routes as lab


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    for one in (sign_in.router, assets.router):
        app.include_router(one, include_in_schema=False)
    for page in (home, lab, devices, accuracy, kernels, comparing, jobs):
        app.include_router(page.router, include_in_schema=False)
