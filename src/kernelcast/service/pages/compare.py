"""The section *Compare* of Accuracy: two models on the same launches, and feature groups' worth."""

import asyncio
import secrets
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from cachetools import LRUCache, cached
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, chart_errors
from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.dependencies import Name, PageReader
from kernelcast.service.pages.filters import link_kernel, write_points, write_signed_share
from kernelcast.service.pages.pictures import Theme, link_all, respond
from kernelcast.service.pages.rendering import PageRoute, render
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.routes.jobs import find_job
from kernelcast.service.service import Service

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.judging import (
        AblatedGroup,
        Comparison,
        DeviceComparison,
        ExplainedError,
        ValidationReport,
    )

router = APIRouter(route_class=PageRoute)
_MOST_STORED = 50
_MOST_WON = 10
_FIRST: Final = ("analytic", "linear")
_SECOND: Final = ("hybrid", "hybrid_pooled")
KINDS: Final = (JobKind.COMPARE, JobKind.VALIDATE)
"""Jobs whose results the page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A comparison or a validation that is done."""

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingView:
    """The page's content."""

    stored: tuple[StoredJob, ...]
    """What may be chosen, newest first."""
    chosen: str = ""
    """Id of the job that is shown; empty where there is none."""
    models: tuple[str, ...] = ()
    """Models of a validation, of which any two may be compared; empty for a comparison."""
    devices: tuple[str, ...] = ()
    comparison: "Comparison | None" = None
    device: "DeviceComparison | None" = None
    """On the chosen device."""
    ablation: "tuple[AblatedGroup, ...]" = ()
    """On the chosen device; empty where the validation left no group out."""
    explained: "tuple[ExplainedError, ...]" = ()
    """On the chosen device."""


def list_stored(jobs: Sequence[JobRecord]) -> tuple[StoredJob, ...]:
    """Give what may be shown of jobs."""
    return tuple(
        StoredJob(id=one.id, label=_name(one, one.ended_at or one.created_at))
        for one in jobs
        if one.state is JobState.DONE and one.kind in KINDS and one.result is not None
    )


def make_view(
    stored: tuple[StoredJob, ...],
    job: JobRecord,
    *,
    first: str = "",
    second: str = "",
    device: str = "",
) -> ComparingView:
    """Make the page's content."""
    from kernelcast.reports.accuracy.judging import (
        compare_validated,
        find_ablation,
        read_comparison,
        read_report,
    )

    models: tuple[str, ...] = ()
    ablation: tuple[AblatedGroup, ...] = ()
    if job.kind is JobKind.COMPARE:
        comparison = read_comparison(job.result)
    else:
        report = read_report(job.result)
        models = tuple(one.model for one in report.rows.models)
        comparison = compare_validated(report, *_choose_models(report, models, first, second))
        ablation = find_ablation(report)
    shown = _choose_device(comparison, device)
    name = "" if shown is None else shown.device
    return ComparingView(
        stored=stored,
        chosen=job.id,
        models=models,
        devices=tuple(one.device for one in comparison.devices),
        comparison=comparison,
        device=shown,
        ablation=tuple(one for one in ablation if one.device == name),
        explained=tuple(one for one in comparison.explained if one.device == name),
    )


def _name(job: JobRecord, when: datetime) -> str:
    moment = f"{when:%Y-%m-%d %H:%M} UTC"
    pair = [str(job.options[one]) for one in ("first", "second") if one in job.options]
    if job.kind is JobKind.COMPARE:
        return f"{' against '.join(pair) or 'comparison'}, {moment}"
    split = job.options.get("split", "kernel")
    return f"validation by {split}, {moment}"


def _choose_models(
    report: "ValidationReport", models: Sequence[str], first: str, second: str
) -> tuple[str, str]:
    """Give the models that are wanted; else an analytic and a learned one."""
    if len(models) < 2:
        msg = (
            f"this validation, leaving one {report.split} out, has the model {models[0]} alone; "
            "start one of several models, or a comparison"
        )
        raise InputError(msg)
    answered = {
        one.model for one in report.rows.models if any(each is not None for each in one.seconds)
    }
    usual_second = next((one for one in _SECOND if one in answered), models[-1])
    second = second or usual_second
    candidates = (*_FIRST, *models)
    usual = next(one for one in candidates if one in {*models} and one != second)
    usual_first = next((one for one in candidates if one in answered and one != second), usual)
    return first or usual_first, second


def _choose_device(comparison: "Comparison", wanted: str) -> "DeviceComparison | None":
    found = {one.device: one for one in comparison.devices}
    if wanted in found:
        return found[wanted]
    return max(comparison.devices, key=lambda one: one.rows, default=None)


_LINE_INCHES: Final = 0.42
Span = tuple[str, float | None, float | None, float | None]


def make_pictures(view: ComparingView) -> Mapping[str, Figure]:
    """Make the pictures of a view by the names that their addresses have."""
    found: dict[str, Figure] = {}
    comparison = view.comparison
    if comparison is None:
        return found
    first, second = comparison.first, comparison.second
    known = [one for one in comparison.devices if one.difference is not None]
    if known:
        found["devices"] = _picture_differences(
            f"difference-{first}-{second}",
            f"Mean error of {second} less that of {first} by device, in points",
            f"Left of zero {second} is better, right of it {first}; the line is the "
            f"{comparison.confidence * 100:g} % interval. One that holds zero says that the two "
            "cannot be told apart.",
            [(one.device, one.difference, one.low, one.high) for one in known],
        )
    if view.device is not None and view.device.kernels:
        found["kernels"] = Figure(
            name=f"kernels-{first}-{second}-{view.device.device}",
            title=f"Mean errors of {first} and {second} for each kernel on {view.device.device}",
            caption="Below the middle line the second is better. A click on a point leads to its "
            "kernel.",
            heights=(4.6,),
            charts=(chart_errors(first, second, view.device.kernels, link_kernel),),
        )
    if view.ablation:
        found["ablation"] = _picture_differences(
            f"ablation-{view.ablation[0].device}",
            "What the hybrid loses without a feature group, in points",
            "Mean error without the group less that with it, in points, with its interval: right "
            "of zero the group helps.",
            [(one.group, one.difference, one.low, one.high) for one in view.ablation],
        )
    if view.explained:
        found["groups"] = _picture_groups(view.explained)
    return found


def _picture_differences(name: str, title: str, caption: str, rows: Sequence[Span]) -> Figure:
    """Picture differences in points, each with its interval."""
    points = [
        Point(x=place, y=100 * (value or 0.0), low=_scale(low), high=_scale(high))
        for place, (_, value, low, high) in enumerate(rows)
    ]
    chart = Chart(
        x=Axis(title="", names=tuple(name for name, *_ in rows)),
        y=Axis(title="difference of mean errors (points)", unit="points"),
        series=(Series(name="difference", points=points, kind="bars"),),
        is_upright=False,
    )
    return Figure(
        name=name, title=title, caption=caption, charts=(chart,),
        heights=(1.1 + _LINE_INCHES * len(rows),),
    )  # fmt: skip


def _scale(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _picture_groups(explained: "Sequence[ExplainedError]") -> Figure:
    """Picture what feature groups add to the correction of kernels, and what was needed."""
    names = sorted({share.group for one in explained for share in one.attribution.groups})
    series = [
        Series(
            name=name, kind="bars",
            points=[
                Point(
                    x=place,
                    y=100 * sum(
                        each.contribution for each in one.attribution.groups if each.group == name
                    ),
                )
                for place, one in enumerate(explained)
            ],
        )
        for name in names
    ]  # fmt: skip
    needed = [
        Point(x=place, y=100 * (one.needed - one.attribution.base))
        for place, one in enumerate(explained)
    ]
    return Figure(
        name=f"groups-{explained[0].device}",
        title="Contributions of feature groups to the correction of the worst kernels",
        caption=(
            "Points of the linear model's time that a feature group adds or takes (Shapley "
            "values). They add up to the correction, less that of a launch whose features are all "
            "in the middle; beside them the one that would have been right, less that too."
        ),
        heights=(1.3 + 0.6 * len(explained),),
        charts=(
            Chart(
                x=Axis(title="kernel", names=tuple(one.kernel for one in explained)),
                y=Axis(title="points of the linear model's time", unit="points"),
                series=(*series, Series(name="would have been right", points=needed, kind="bars")),
                is_upright=False,
            ),
        ),
    )


def tell_verdict(comparison: "Comparison", device: "DeviceComparison") -> str:
    """Say which model is better on a device, and how sure that is.

    Percentage points, so that nobody takes them for a relative change.
    """
    if device.difference is None:
        return "No launch was answered by both models."
    better, points = _name_better(comparison, device.difference)
    if device.low is None or device.high is None:
        return (
            f"{better} is better by {points:.2f} points of mean error, on a single kernel: "
            "nothing is known of others."
        )
    interval = (
        f"{comparison.confidence * 100:g} % interval of the difference "
        f"{write_points(device.low)} to {write_points(device.high)} points ({comparison.method} "
        f"bootstrap over whole {comparison.resampled}s)"
    )
    if device.low <= 0 <= device.high:
        return (
            f"The two cannot be told apart: {better} is ahead by {points:.2f} points of mean "
            f"error, {interval} holds zero."
        )
    return f"{better} is better by {points:.2f} points of mean error, {interval}."


def tell_wins(comparison: "Comparison", device: "DeviceComparison") -> str:
    """Say how many kernels each model wins."""
    total = len(device.kernels)
    if not total:
        return ""
    first, second, nobody = (
        device.count_wins(one) for one in (comparison.first, comparison.second, None)
    )
    return (
        f"Of {total} kernels {comparison.first} is better on {first}, {comparison.second} on "
        f"{second}; on {nobody} they differ by no more than the noise of the measured times."
    )


def tell_explanation(one: "ExplainedError") -> str:
    """Say what the correction of a kernel was, and what would have been right."""
    return (
        f"corrected by {write_signed_share(one.attribution.correction)}, needed were "
        f"{write_signed_share(one.needed)}; error {one.error * 100:.1f} %, without the correction "
        f"{one.reference_error * 100:.1f} %"
    )


def _name_better(comparison: "Comparison", difference: float) -> tuple[str, float]:
    """Give the model with the smaller error, and by how many points."""
    better = comparison.second if difference < 0 else comparison.first
    return better, abs(difference) * 100


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be shown, out of the address."""

    of: Name = ""
    first: Name = ""
    second: Name = ""
    device: Name = ""


Chosen = Annotated[Choice, Depends()]


@router.get("/accuracy/compare")
async def show_comparison(
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
        "accuracy/compare.html",
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


@router.get("/accuracy/compare/{name}.{ending}")
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
    return await respond(make_pictures(view), name, ending, theme)


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
    return link_all(make_pictures(view), "/accuracy/compare", urlencode(shown))


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
