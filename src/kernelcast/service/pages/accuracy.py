"""Accuracy: how good answers were, what validations found of models, and which are in use."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind, JobRecord
from kernelcast.reports.charts import (
    Axis,
    Chart,
    Figure,
    Point,
    chart_mean_errors,
    chart_predictions,
    make_series,
)
from kernelcast.reports.presenter import Part, Section, make_html
from kernelcast.service.dependencies import Name, Reader, Route
from kernelcast.service.errors import message_of
from kernelcast.service.pages.pictures import (
    group_points,
    link_all,
    mark_answer,
    show,
    with_pictures,
)
from kernelcast.service.pages.rendering import link_kernel, render, run_in_thread
from kernelcast.service.routes.jobs import find_result
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter, AnswerRecord
from kernelcast.training.registry import ModelVersions, open_registry

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy import UsedModel

router = APIRouter(route_class=Route)
REACHES: Final = {4: "four weeks", 13: "three months", 52: "a year"}
"""How far back answers are looked at, in weeks."""
_USUAL_WEEKS: Final = 13
_MOST_BARS: Final = 40


@with_pictures(router, "/accuracy")
async def show_accuracy(
    page: Reader, device: Name = "", weeks: int = _USUAL_WEEKS, job: Name = ""
) -> Response:
    """Show how far answers to a device, or all, were off, and what a validation found."""
    service = page.service
    found = await _look(service, device, weeks if weeks in REACHES else _USUAL_WEEKS)
    validated = await find_result(service, (JobKind.VALIDATE,), job)
    text, charts = ("", {}) if validated is None else await run_in_thread(_present, validated)
    validation = "" if validated is None else validated.id
    values = {
        **found,
        "device": device,
        "shifts": [
            one for one in service.answers.shifts.values() if device in {"", one.answer.device_id}
        ],
        "reaches": REACHES,
        "is_asked": bool(job),
        "validation": validation,
        "told": text,
        "charts": link_all(charts, page.request.url.include_query_params(job=validation)),
    }
    return await show(page, "accuracy/page.html", values, {**_make_pictures(found), **charts})


async def _look(service: Service, device: str, weeks: int) -> dict[str, Any]:
    """Find answers of a device, or of all: sums by `AnswerTable.sum_up`, and those observed."""
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

    return await asyncio.to_thread(read)


def _make_pictures(found: Mapping[str, Any]) -> dict[str, Figure]:
    """Make the pictures of what `_look` has found by the names that their addresses have."""
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
    from kernelcast.reports.accuracy import read_report
    from kernelcast.reports.validation import present_validation

    pictures: dict[str, Figure] = {}
    parts = _take_out(present_validation(read_report(job.result)), pictures)
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
    """Show the models in use with the devices that each serves, and the versions trained here."""
    used, known, failure = await run_in_thread(read_models, page.service.settings.registry)
    found, missing = await page.service.devices.find()
    devices = sorted(one.id for one in found)
    # A model serves the device that its name ends in, or all where it names none.
    served = [
        (one, [device for device in devices if one.name.partition("/")[2] in {"", device}])
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
) -> "tuple[Sequence[UsedModel], Sequence[ModelVersions], str]":
    """Read the models in use and those of the registry, or say why they cannot be read."""
    from kernelcast.reports.accuracy import list_used_models

    try:
        return list_used_models(registry), open_registry(registry).list_models(), ""
    except InputError as error:
        return (), (), message_of(error)
