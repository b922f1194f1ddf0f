"""Routes of the pages of observed launches: all of them, and those of one kernel."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.pages.accuracy.reading import read_kernel, read_state
from kernelcast.service.pages.accuracy.scores import Judged
from kernelcast.service.pages.accuracy.view import list_observed
from kernelcast.service.pages.dependencies import Name, PageReader
from kernelcast.service.pages.kernels.figures import make_pictures, write_size
from kernelcast.service.pages.lab.estimates import describe_explanation
from kernelcast.service.pages.pictures import Picture, Theme, link_all, respond_by_name
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.held_launches import HeldLaunch, LaunchDetails

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelView:
    """What is known of a kernel."""

    kernel: str
    launches: "tuple[HeldLaunch, ...]"
    details: "LaunchDetails"
    rows: tuple[Judged, ...]

    @property
    def pictures(self) -> Mapping[str, Picture]:
        """Pictures by name."""
        return make_pictures(self.kernel, self.rows, self.launches, self.details)

    def best(self, key: str) -> Judged | None:
        """Give the prediction of a launch by the method that errs least on this kernel."""
        own = [one for one in self.rows if one.launch == key]
        return min(own, key=lambda one: one.error, default=None)


@router.get("/observations")
async def show_launches(request: Request, service: OurService, _: PageReader) -> Response:
    """Show the launches that were measured last, each once."""
    state = await run_in_thread(read_state, service, ())
    values = {"held": state.held, "count": len(state.held.launches)}
    return render(request, "kernels/launches.html", values)


@router.get("/kernels/of")
async def show_kernel(request: Request, service: OurService, _: PageReader, name: Name) -> Response:
    """Show everything about a kernel: sizes, devices, predictions, history, the last answer."""
    view = await run_in_thread(_look, service, name)
    answers = [
        one
        for one in service.predictions.list_answered()
        if one.estimate.kernel == name.rpartition("/")[2]
    ]
    values = {
        "view": view,
        "write_size": write_size,
        "answers": answers[:20],
        "evidence": _explain(answers[0].estimate.to_dict()) if answers else None,
        "pictures": link_all(view.pictures, "/kernels/of", urlencode({"name": name})),
    }
    return render(request, "kernels/kernel.html", values)


@router.get("/kernels/of/{picture}.{ending}")
async def show_picture(
    picture: str,
    ending: str,
    service: OurService,
    _: PageReader,
    name: Name,
    theme: Theme = "light",
) -> Response:
    """Draw one of a kernel's pictures, or give its numbers."""
    view = await run_in_thread(_look, service, name)
    return await respond_by_name(view.pictures, picture, ending, theme)


def _look(service: Service, kernel: str) -> KernelView:
    launches, details, count = read_kernel(service, kernel)
    state = read_state(service, ())
    asked = any(
        one.estimate.kernel == kernel.rpartition("/")[2]
        for one in service.predictions.list_answered()
    )
    if not count and not asked:
        refuse_unknown("kernel among the launches that were observed", kernel)
    return KernelView(
        kernel=kernel,
        launches=launches,
        details=details,
        rows=tuple(list_observed(replace(state, held=replace(state.held, launches=launches)))),
    )


def _explain(held: Mapping[str, Any]) -> dict[str, Any]:
    return {"device": held["device"], **describe_explanation(held)}
