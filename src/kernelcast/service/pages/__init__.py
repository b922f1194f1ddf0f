"""The web pages: what the API answers, for people."""

from fastapi import FastAPI

from kernelcast.service.pages import (
    accuracy,
    assets,
    compare,
    devices,
    home,
    jobs,
    kernels,
    models,
    sign_in,
)
from kernelcast.service.pages.lab import routes as lab


def include_pages(app: FastAPI) -> None:
    """Add every page, and what pages load; none is part of the described API."""
    # What has a name of its own below an address comes before what takes any name there.
    for one in (sign_in, assets, home, kernels, lab, devices, models, compare, accuracy, jobs):
        app.include_router(one.router, include_in_schema=False)
