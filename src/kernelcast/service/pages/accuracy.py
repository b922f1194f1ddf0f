"""Accuracy: how good answers were, what validations found of models, and which are in use."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache, cached
from fastapi import APIRouter
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.charts import (
    Axis,
    Chart,
    Figure,
    Point,
    Series,
    chart_errors,
    chart_mean_errors,
    chart_predictions,
    make_series,
)
from kernelcast.reports.presenter import Part, Section, make_html
from kernelcast.service.dependencies import Name, Reader, Route
from kernelcast.service.errors import message_of
from kernelcast.service.pages.rendering import (
    group_points,
    link_all,
    link_kernel,
    mark_answer,
    render,
    run_in_thread,
    show,
    with_pictures,
)
from kernelcast.service.routes.jobs import find_result
from kernelcast.service_state import AnswerFilter, AnswerRecord
from kernelcast.training.registry import ModelVersions, open_registry

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports import accuracy as results

router = APIRouter(route_class=Route)
REACHES: Final = {4: "four weeks", 13: "three months", 52: "a year"}
_USUAL_WEEKS: Final = 13
_MOST_BARS: Final = 40


@with_pictures(router, "/accuracy")
async def show_accuracy(
    page: Reader, device: Name = "", weeks: int = _USUAL_WEEKS, job: Name = ""
) -> Response:
    service, weeks = page.service, weeks if weeks in REACHES else _USUAL_WEEKS
    await service.answers.flush()
    every = AnswerFilter(given_from=datetime.now(UTC) - timedelta(weeks=weeks))
    wanted = replace(every, devices=(device,) if device else ())
    table = service.state.answers

    def read() -> dict[str, Any]:
        kernels = table.sum_up(("kernel",), wanted)
        observed = table.find(replace(wanted, is_observed=True), most=2000)
        return {
            "weeks": weeks,
            "devices": [one["device_id"] for one in table.sum_up(("device_id",), every)],
            "methods": table.sum_up(("device_id", "tier"), wanted),
            "by_week": table.sum_up(("week", "device_id"), wanted),
            "kernels": sorted(kernels, key=lambda one: -(one["error"] or 0.0)),
            "observed": [one.as_it_was for one in observed],  # the last ones, newest first
        }

    found = await asyncio.to_thread(read)
    validated = await find_result(service, (JobKind.VALIDATE,), job)
    text, charts = ("", {}) if validated is None else await run_in_thread(_present, validated)
    validation = "" if validated is None else validated.id
    values = {
        **found,
        "device": device,
        "shifts": [one for one in service.answers.shifts.values() if device in {"", one.device_id}],
        "reaches": REACHES,
        "is_asked": bool(job),
        "validation": validation,
        "told": text,
        "charts": link_all(charts, page.request.url.include_query_params(job=validation)),
    }
    return await show(page, "accuracy/page.html", values, {**_picture_answers(found), **charts})


def _picture_answers(found: Mapping[str, Any]) -> dict[str, Figure]:
    """Make the pictures of sums and observed answers by the names that their addresses have."""
    observed: list[AnswerRecord] = found["observed"]
    pictures: list[Figure] = []
    held = ("outside its interval", "inside its interval")
    observed = sorted(observed, key=lambda one: not one.is_inside)
    if observed:
        launches = group_points(
            (held[bool(one.is_inside)], mark_answer(one, one.kernel, link_kernel(one.kernel)))
            for one in observed
        )
        pictures.append(Figure(
            name="launches", title="Answers over measured times",
            caption="Each answer that was observed, with its interval, which should hold the "
            "middle line. A click on a point leads to its kernel.",
            charts=(chart_predictions(launches),), heights=(4.6,),
        ))  # fmt: skip
        drift = group_points(
            (held[bool(one.is_inside)], Point(
                x=(one.observed_at or one.at).timestamp(),
                # Callers may report anything: an axis has to end somewhere.
                y=min(max(one.seconds / (one.measured_s or 1.0), 1e-6), 1e6),
                label=one.kernel, link=link_kernel(one.kernel),
            ))
            for one in observed
        )  # fmt: skip
        moments = [at.x for one in drift for at in one.points]
        equal = make_series("equal", (min(moments), max(moments)), (1.0, 1.0), "guide")
        pictures.append(Figure(
            name="drift", title="Answers over measured times, by when they were observed",
            caption="Above the line answers were too long. Where points leave it for good, a "
            "driver, a clock or the machine's work has changed.",
            charts=(Chart(
                x=Axis(title="observed", unit="moment"),
                y=Axis(title="predicted over measured", unit="ratio", is_log=True),
                series=(*drift, equal),
            ),),
            heights=(3.2,),
        ))  # fmt: skip
    if known := [one for one in found["kernels"] if one["observed"]][:_MOST_BARS]:
        errors = {"mean error": [one["error"] for one in known]}
        pictures.append(replace(
            chart_mean_errors([one["kernel"] for one in known], errors, None),
            name="kernels", title="Mean error of answers to each kernel, worst first",
            caption=f"At most {_MOST_BARS} kernels.",
        ))  # fmt: skip
    weeks = group_points(
        (
            (row["device_id"], Point(
                x=row["week"].timestamp(), y=row["error"], label=f"{row['observed']} observed"
            ))
            for row in reversed(found["by_week"]) if row["observed"]
        ),
        "line",
    )  # fmt: skip
    if weeks:
        pictures.append(Figure(
            name="weeks", title="Mean error of answers that were observed, by week and device",
            caption="A point per week; what was answered then, and observed since.",
            charts=(Chart(
                x=Axis(title="week", unit="moment"),
                y=Axis(title="mean error", unit="share"),
                series=tuple(weeks),
            ),),
        ))  # fmt: skip
    return {one.name: one for one in pictures}


def _present(job: JobRecord) -> tuple[str, dict[str, Figure]]:
    """Read the result of a validation: its HTML, and its figures by name."""
    from kernelcast.reports.accuracy import report_from_json
    from kernelcast.reports.validation import present_validation

    pictures: dict[str, Figure] = {}
    parts = _take_out(present_validation(report_from_json(job.result)), pictures)
    return make_html(*parts, level=3), pictures


def _take_out(parts: Iterable[Part], pictures: dict[str, Figure]) -> list[Part]:
    """Take figures out of parts: the page has them by addresses, for its policy lets no other."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, Figure):
            name = f"validation-{len(pictures) + 1}"
            pictures[name] = replace(part, name=name)
        elif isinstance(part, Section):
            kept.append(replace(part, parts=_take_out(part.parts, pictures)))
        else:
            kept.append(part)
    return kept


@router.get("/accuracy/models")
async def show_models(page: Reader) -> Response:
    used, known, failure = await run_in_thread(read_models, page.service.settings.registry)
    found, missing = await page.service.devices.find()
    devices = sorted(one.id for one in found)
    # A model serves the device that its name ends in, or all where it names none.
    served = [
        (one, [device for device in devices if one["name"].partition("/")[2] in {"", device}])
        for one in used
    ]
    values = {
        "used": served,
        "unserved": [one for one in devices if not any(one in own for _, own in served)],
        "known": known,
        "failures": [*filter(None, (failure, missing))],
    }
    return render(page.request, "accuracy/models.html", values)


def read_models(
    registry: str | None,
) -> tuple[Sequence[Mapping[str, Any]], Sequence[ModelVersions], str]:
    """Read the models in use and those of the registry, or say why they cannot be read."""
    from kernelcast.reports.accuracy import list_used_models

    try:
        return list_used_models(registry), open_registry(registry).list_models(), ""
    except InputError as error:
        return (), (), message_of(error)


KINDS: Final = (JobKind.COMPARE, JobKind.VALIDATE)


@cached(LRUCache(8), key=lambda job, *chosen: (job.id, *chosen), lock=Lock())
def make_view(
    job: JobRecord, first: str, second: str, device_id: str
) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Read the result of a job: what the page shows of it, and its pictures by their names.

    Models and device are chosen where they are empty. The result never changes; pictures ask again,
    and resampling is long.
    """
    from kernelcast.reports import accuracy as results

    models: tuple[str, ...] = ()
    report: results.ValidationReport | None = None
    if job.kind is JobKind.COMPARE:
        comparison = results.comparison_from_json(job.result)
    else:
        report = results.report_from_json(job.result)
        models = report.models
        if len(models) < 2:
            raise InputError(
                f"this validation, leaving one {report.split} out, has the model {models[0]} "
                "alone; start one of several models, or a comparison"
            )
        silent = {one["model"] for one in report.rows.models if not any(one["seconds"])}

        def choose(usual: Sequence[str], other: str) -> str:
            """Choose an analytic or a learned model that has answered."""
            return min(models, key=lambda one: (one == other, one in silent, one not in usual))

        second = second or choose(("hybrid", "hybrid_pooled"), first)
        first = first or choose(("analytic", "linear"), second)
        comparison = results.compare_validated(report, first, second)
    values: dict[str, Any] = {
        "job": job.id, "models": models, "comparison": comparison, "device": None,
    }  # fmt: skip
    pictures: dict[str, Figure] = {}
    if comparison.devices:
        # The chosen device, else that with the most launches.
        device = min(comparison.devices, key=lambda one: (one.device != device_id, -one.rows))
        ablation = [] if report is None else results.find_ablation(report, device.device)
        explained = [one for one in comparison.explained if one.device == device.device]
        pictures = _picture_comparison(comparison, device, ablation, explained)
        values |= {
            "device": device,
            "has_groups": bool(ablation or explained),
            "explained": explained,
        }
    return values, pictures


def _picture_comparison(
    comparison: "results.Comparison",
    device: "results.DeviceComparison",
    ablation: "Sequence[tuple[str, results.DeviceComparison]]",
    explained: "Sequence[results.ExplainedError]",
) -> dict[str, Figure]:
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
                x=max(kernel["first_error"], 1e-4), y=max(kernel["second_error"], 1e-4),
                label=kernel["kernel"], link=link_kernel(kernel["kernel"]),
            )  # fmt: skip
            winner = f"{kernel['winner']} is better" if kernel["winner"] else "within noise"
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
    name: str, title: str, caption: str, rows: "Sequence[tuple[str, results.DeviceComparison]]"
) -> Figure:
    points = [
        Point(
            x=place,
            y=100 * (one.difference or 0.0),
            low=None if one.low is None else 100 * one.low,
            high=None if one.high is None else 100 * one.high,
        )
        for place, (_, one) in enumerate(rows)
    ]
    return _lay_bars(
        [one for one, _ in rows],
        "difference of mean errors (points)",
        [Series(name="difference", points=points, kind="bars")],
        0.42,
        name=name, title=title, caption=caption,
    )  # fmt: skip


def _picture_groups(explained: "Sequence[results.ExplainedError]") -> Figure:
    places = range(len(explained))
    shares = [
        {each["group"]: each["contribution"] for each in one.attribution.groups}
        for one in explained
    ]
    bars = {
        name: [own.get(name, 0.0) for own in shares]
        for name in sorted({name for own in shares for name in own})
    }
    bars["would have been right"] = [one.needed - one.attribution.base for one in explained]
    return _lay_bars(
        [one.kernel for one in explained],
        "points of the linear model's time",
        [
            make_series(name, places, [100 * share for share in own], "bars")
            for name, own in bars.items()
        ],
        0.6,
        name=f"groups-{explained[0].device}",
        title="Contributions of feature groups to the correction of the worst kernels",
        caption="Points of the linear model's time that a feature group adds or takes (Shapley "
        "values). They add up to the correction, less that of a launch whose features are all "
        "in the middle; beside them the one that would have been right, less that too.",
    )


def _lay_bars(
    names: Sequence[str],
    what: str,
    series: Sequence[Series],
    each_inches: float,
    **about: Any,  # noqa: ANN401 - fields of the figure
) -> Figure:
    """Picture bars in points that lie below each other."""
    chart = Chart(
        x=Axis(title="", names=tuple(names)), y=Axis(title=what, unit="points"),
        series=tuple(series), is_upright=False,
    )  # fmt: skip
    return Figure(charts=(chart,), heights=(1.2 + each_inches * len(names),), **about)


@with_pictures(router, "/accuracy/compare")
async def show_comparison(
    page: Reader, of: Name = "", first: Name = "", second: Name = "", device: Name = ""
) -> Response:
    from kernelcast.reports.accuracy import ABLATION, list_models

    jobs = await asyncio.to_thread(page.service.state.jobs.list, kinds=KINDS, most=50)
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
    return await show(page, "accuracy/compare.html", values, pictures, address=shown)
