"""The section *Compare* of Accuracy: two models on the same launches, and feature groups' worth."""

import asyncio
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache, cached
from fastapi import APIRouter
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, chart_errors, make_series
from kernelcast.service.dependencies import Name, Reader, Route
from kernelcast.service.errors import message_of
from kernelcast.service.pages.pictures import show, with_pictures
from kernelcast.service.pages.rendering import link_kernel, run_in_thread
from kernelcast.service.routes.jobs import find_result

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy import (
        Comparison,
        DeviceComparison,
        ExplainedError,
        ValidationReport,
    )

router = APIRouter(route_class=Route)
KINDS: Final = (JobKind.COMPARE, JobKind.VALIDATE)
"""Jobs whose results the page shows."""


@cached(LRUCache(8), key=lambda job, *chosen: (job.id, *chosen), lock=Lock())
def make_view(
    job: JobRecord, first: str, second: str, device_id: str
) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Read the result of a job: what the page shows of it, and its pictures by their names.

    Models and device are chosen where they are empty.

    It never changes; pictures ask again, and resampling is long.
    """
    from kernelcast.reports.accuracy import (
        compare_validated,
        find_ablation,
        read_comparison,
        read_report,
    )

    models: tuple[str, ...] = ()
    report: ValidationReport | None = None
    if job.kind is JobKind.COMPARE:
        comparison = read_comparison(job.result)
    else:
        report = read_report(job.result)
        models = tuple(one.model for one in report.rows.models)
        if len(models) < 2:
            raise InputError(
                f"this validation, leaving one {report.split} out, has the model {models[0]} "
                "alone; start one of several models, or a comparison"
            )
        silent = {one.model for one in report.rows.models if not any(one.seconds)}

        def choose(usual: Sequence[str], other: str) -> str:
            """Choose an analytic or a learned model that has answered."""
            return min(models, key=lambda one: (one == other, one in silent, one not in usual))

        second = second or choose(("hybrid", "hybrid_pooled"), first)
        first = first or choose(("analytic", "linear"), second)
        comparison = compare_validated(report, first, second)
    values: dict[str, Any] = {
        "job": job.id,
        "models": models,
        "comparison": comparison,
        "device": None,
    }
    pictures: dict[str, Figure] = {}
    if comparison.devices:
        # The chosen device, else that with the most launches.
        device = min(comparison.devices, key=lambda one: (one.device != device_id, -one.rows))
        ablation = [] if report is None else find_ablation(report, device.device)
        explained = [one for one in comparison.explained if one.device == device.device]
        pictures = _make_pictures(comparison, device, ablation, explained)
        values |= {
            "device": device,
            "has_groups": bool(ablation or explained),
            "explained": explained,
        }
    return values, pictures


def _make_pictures(
    comparison: "Comparison",
    device: "DeviceComparison",
    ablation: "Sequence[tuple[str, DeviceComparison]]",
    explained: "Sequence[ExplainedError]",
) -> dict[str, Figure]:
    """Make the pictures of a comparison by the names that their addresses have."""
    found: dict[str, Figure] = {}
    first, second = comparison.first, comparison.second
    known = [one for one in comparison.devices if one.difference is not None]
    if known:
        found["devices"] = _picture_differences(
            f"difference-{first}-{second}",
            f"Mean error of {second} less that of {first} by device, in points",
            f"Left of zero {second} is better, right of it {first}; the line is the "
            f"{comparison.confidence * 100:g} % interval. One that holds zero says that the two "
            "cannot be told apart.",
            [(one.device, one) for one in known],
        )
    if device.kernels:
        groups: dict[str, list[Point]] = {}
        for kernel in device.kernels:
            point = Point(
                x=max(kernel.first_error, 1e-4), y=max(kernel.second_error, 1e-4),
                label=kernel.kernel, link=link_kernel(kernel.kernel),
            )  # fmt: skip
            winner = "within noise" if kernel.winner is None else f"{kernel.winner} is better"
            groups.setdefault(winner, []).append(point)
        found["kernels"] = Figure(
            name=f"kernels-{first}-{second}-{device.device}",
            title=f"Mean errors of {first} and {second} for each kernel on {device.device}",
            caption="Below the middle line the second is better. A click on a point leads to its "
            "kernel.",
            heights=(4.6,),
            charts=(chart_errors(first, second, groups),),
        )
    if ablation:
        found["ablation"] = _picture_differences(
            f"ablation-{device.device}",
            "What the hybrid loses without a feature group, in points",
            "Mean error without the group less that with it, in points, with its interval: right "
            "of zero the group helps.",
            ablation,
        )
    if explained:
        found["groups"] = _picture_groups(explained)
    return found


def _picture_differences(
    name: str, title: str, caption: str, rows: "Sequence[tuple[str, DeviceComparison]]"
) -> Figure:
    """Picture differences in points, each with its interval."""
    points = [
        Point(
            x=place,
            y=100 * (one.difference or 0.0),
            low=None if one.low is None else 100 * one.low,
            high=None if one.high is None else 100 * one.high,
        )
        for place, (_, one) in enumerate(rows)
    ]
    chart = Chart(
        x=Axis(title="", names=tuple(name for name, _ in rows)),
        y=Axis(title="difference of mean errors (points)", unit="points"),
        series=(Series(name="difference", points=points, kind="bars"),),
        is_upright=False,
    )
    return Figure(
        name=name, title=title, caption=caption, charts=(chart,),
        heights=(1.1 + 0.42 * len(rows),),
    )  # fmt: skip


def _picture_groups(explained: "Sequence[ExplainedError]") -> Figure:
    """Picture what feature groups add to the correction of kernels, and what was needed."""
    names = sorted({share.group for one in explained for share in one.attribution.groups})
    series = [
        make_series(
            name, range(len(explained)),
            [
                100 * sum(each.contribution for each in one.attribution.groups
                          if each.group == name)
                for one in explained
            ],
            "bars",
        )
        for name in names
    ]  # fmt: skip
    needed = [100 * (one.needed - one.attribution.base) for one in explained]
    series.append(make_series("would have been right", range(len(explained)), needed, "bars"))
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
                series=tuple(series),
                is_upright=False,
            ),
        ),
    )


@with_pictures(router, "/accuracy/compare")
async def show_comparison(
    page: Reader, of: Name = "", first: Name = "", second: Name = "", device: Name = ""
) -> Response:
    """Show two models side by side, and the form that starts a comparison."""
    from kernelcast.reports.accuracy import ABLATION, list_models

    jobs = await asyncio.to_thread(
        page.service.state.jobs.list, kinds=KINDS, most=50, with_results=False
    )
    error, view, pictures = "", None, dict[str, Figure]()
    try:
        if job := await find_result(page.service, KINDS, of):
            view, pictures = await run_in_thread(make_view, job, first, second, device)
    except InputError as caught:
        error = message_of(caught)
    chosen = view["job"] if view else of
    shown = page.request.url.include_query_params(of=chosen)
    values = {
        "stored": [one for one in jobs if one.state is JobState.DONE and one.has_result],
        "view": view,
        "error": error,
        "key": secrets.token_hex(8),
        "known_models": await run_in_thread(list_models),
        "ablation_models": ABLATION,
        "is_at_work": any(not one.state.is_final for one in jobs),
        "chosen": chosen,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    return await show(page, "accuracy/compare.html", values, pictures, address=shown, status=status)
