"""A validation as tables and figures (`kernelcast.reports.presenter`), beside the paper's own."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from kernelcast.models.validation.report import DeviceScore, ValidationReport
from kernelcast.reports.charts import (
    Axis,
    Chart,
    Figure,
    chart_mean_errors,
    chart_predictions,
    make_series,
)
from kernelcast.reports.numbers import NOTHING, format_class, format_error, format_points
from kernelcast.reports.presenter import Part, Section, Table, Value
from kernelcast.training.settings import pluralise

FAVOURITE = "hybrid"
_BASELINE = "linear"


PUBLISHED: Final[Mapping[str, tuple[float, float | None, float]]] = {
    "GTX 280": (0.0719, 0.0642, 0.08),
    "GTX 580": (0.0572, 0.0476, 0.08),
    "GTX 680": (0.10, None, 0.08),
    "HD 6970": (0.0810, 0.0791, 0.15),
}
"""Every device of the paper: mean errors of the linear and the learned model as shares, None where
there was none, and mean sampling time over the kernels' time, which the paper gives for NVIDIA
(8 %) and AMD (15 %) as a whole."""
PUBLISHED_CLASSES: Final = {
    "GTX 280": ((0.0188, 0.0236, -0.0048), (0.0665, 0.0313, 0.0350), (0.2124, 0.1867, 0.0257)),
    "GTX 580": ((0.0203, 0.0213, -0.0010), (0.0759, 0.0657, 0.0101), (0.1846, 0.1341, 0.0506)),
}
"""Of Table 3: mean errors of linear and learned model and the gain, as printed there, in the
classes 0-5 %, 5-10 % and beyond, of the devices that it has."""


def present_validation(
    report: ValidationReport,
    points: pd.DataFrame | None = None,
    *,
    noise: Mapping[str, float] | None = None,
    is_brief: bool = False,
) -> Iterator[Part]:
    rows, split = report.rows, report.split
    yield (
        f"{len(rows.keys)} launches of {len(set(rows.kernels))} kernels; held out: one {split} at "
        f"a time; intervals shall hold {report.coverage * 100:g} %"
    )
    # Pictures show the hybrid, else the last model that is not the linear one.
    names = report.models
    others = [one for one in names if one != _BASELINE] or names
    chosen = FAVOURITE if FAVOURITE in names else others[-1]
    if is_brief:
        chosen = names[-1]
    if not is_brief:
        versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
        digest = report.data_digest[:12]
        yield f"features {report.schema_id}, data {digest}, {versions}"
        means: list[list[Value]] = [
            [
                model,
                *(
                    NOTHING if errors is None
                    else f"{format_error(errors['mean'])} ({format_error(errors['median'])})"
                    for errors in (report.score(model, one).errors for one in report.devices)
                ),
            ]
            for model in report.models
        ]  # fmt: skip
        noises = (format_error(_find_noise(report, one)) for one in report.devices)
        yield Table(
            title="Mean error by device",
            columns={"model": "text", **dict.fromkeys(report.devices, "number")},
            rows=[*means, ["noise floor", *noises]],
            chosen=[report.models.index(chosen)],
            note="In brackets the median.",
        )
    for device in report.devices:
        parts = [tabulate_scores(report, device, chosen), _tabulate_classes(report, device)]
        worst = report.score(chosen, device)
        if worst.groups:
            parts.append(_tabulate_worst(report, worst, noise or {}))
        pictures = [] if is_brief else _draw_device(report, worst)
        if points is not None and device in {*points["device"]} and not is_brief:
            pictures.append(_draw_sampling_points(points[points["device"] == device]))
        yield Section(title=device, parts=[*parts, *pictures])
    if report.rankings:
        yield Table.of(
            report.rankings,
            {
                "model": "text", "launches": ("whole", "problems"),
                "differing by\nover 10 %": ("whole", "differing"),
                "fastest\nnamed": ("share", "top_1"), "mean\nregret": (".3f", "mean_regret"),
                "worst\nregret": (".3f", "worst_regret"),
            },
            title="Which device is fastest",
            note="Fastest named: of the launches that differ. Regret: time on the device that the "
            "model names over that on the fastest.",
        )  # fmt: skip
    if points is not None and len(points):
        yield Table.of(
            points.to_dict("records"),
            {
                "device": "text", "sampling\npoints": ("text", "label"),
                "mean\nerror": ("share", "mean"), "median": "share",
                "90th\npercentile": ("share", "p90"), "cost": "share", "rows": "whole",
            },
            title="Linear model over sampling points",
        )  # fmt: skip
    if is_brief:
        return
    if report.refused:
        yield Section(title="What could not be trained", parts=[dict(report.refused)])
    yield Table(
        title="The paper's own results",
        columns={
            "device (paper)": "text", "linear (paper)": "number", "learned (paper)": "number",
            "sampling cost (paper)": "number",
        },
        rows=[
            # With no more digits than the paper has.
            (name, *(format_error(each).replace(".00 %", " %") for each in errors),
             f"{cost * 100:g} %")
            for name, (*errors, cost) in PUBLISHED.items()
        ],
        note="Published figures, for orientation: 70 kernels, one left out at a time, on other "
        "devices. For the GTX 680 the paper says about 10 %. It gives the cost for all NVIDIA "
        "devices together, and for AMD.",
    )  # fmt: skip


def tabulate_scores(report: ValidationReport, device: str, chosen: str = "") -> Table:
    scores = [one for one in report.scores if one.device == device]
    return Table.of(
        scores,
        {
            "model": "text", "mean\nerror": ("error", "errors.mean"),
            "median": ("error", "errors.median"), "90th\npercentile": ("share", "errors.p90"),
            "worst": ("share", "errors.worst"), "covered": ("share", "coverage"),
            "half\nwidth": ("share", "half_width"), "in domain": "share", "unanswered": "whole",
        },
        chosen=[place for place, one in enumerate(scores) if one.model == chosen],
        note=f"Noise floor, the mean noise of the measured times: "
        f"{format_error(_find_noise(report, device))}. Half width: of intervals, the median.",
    )  # fmt: skip


def _tabulate_classes(report: ValidationReport, device: str) -> Table:
    """Tabulate the paper's Table 3: what models make of groups that the linear one does well."""
    scores = [one for one in report.scores if one.device == device]
    groups = pluralise(report.split)
    columns = {"error of\nlinear": "text", groups: "whole"}
    columns |= dict.fromkeys((one.model for one in scores), "number")
    for name in PUBLISHED_CLASSES:
        columns |= {f"{name} (paper)\n{what}": "number" for what in ("linear", "learned", "gain")}
    rows: list[list[Value]] = []
    for place, ours in enumerate(scores[0].classes if scores else ()):
        cells: list[Value] = [format_class(ours["low"], ours["high"]), ours["groups"]]
        for score in scores:
            error, plain = score.classes[place]["error"], score.classes[place]["linear_error"]
            if error is None or plain is None or math.isnan(error):
                cells.append(NOTHING)
            else:
                cells.append(f"{format_error(error)} ({format_points(plain - error)})")
        for classes in PUBLISHED_CLASSES.values():
            linear, learned, gain = classes[place]
            cells += [format_error(linear), format_error(learned), f"{gain * 100:+.2f}"]
        rows.append(cells)
    return Table(
        title=f"By class of the linear model's error (the paper's Table 3), {groups}",
        columns=columns,
        rows=rows,
        note="Mean error, and in brackets the points that it is below the linear model's on the "
        "same launches. The paper's columns are of other kernels on other devices.",
    )


def _tabulate_worst(
    report: ValidationReport, score: DeviceScore, noise: Mapping[str, float]
) -> Table:
    """Tabulate the groups on which a model errs most, with what may excuse it."""
    rows = report.rows.to_frame()
    rows = rows[(rows["model"] == score.model) & (rows["device"] == score.device)]
    rows = rows[rows["error"].notna()].assign(
        noise=[noise.get(key, np.nan) for key in rows["key"][rows["error"].notna()]],
        inside=rows["measured_s"].between(rows["low_s"], rows["high_s"]),
    )
    facts = rows.groupby("group")[["noise", "inside", "in_domain"]].agg(
        {"noise": "mean", "inside": "sum", "in_domain": "sum"}
    )
    return Table(
        title=f"worst of {score.model}",
        columns={
            report.split: "text", "rows": "whole", "mean\nerror": "error", "linear\nmodel": "error",
            "noise": "error", "inside\ninterval": "whole", "in\ndomain": "whole",
        },
        rows=[
            [*(one[key] for key in ("group", "rows", "error", "linear_error")),
             *facts.loc[one["group"]]]
            for one in score.groups[:12]
        ],
    )  # fmt: skip


def _draw_device(report: ValidationReport, score: DeviceScore) -> list[Figure]:
    """Draw errors by group, linear beside the model, and predicted over measured times."""
    bars = [one for one in score.groups if one["linear_error"] is not None]
    bars.sort(key=lambda one: (-one["linear_error"], one["group"]))
    figures = []
    if bars:
        errors: dict[str, list[float | None]] = {
            score.model: [one["error"] for one in bars],
            _BASELINE: [one["linear_error"] for one in bars],
        }
        noise = _find_noise(report, score.device)
        figures.append(replace(
            chart_mean_errors([one["group"] for one in bars], errors, noise),
            caption=f"Error by {report.split}, linear and {score.model} (as the paper's Fig. 11, "
            "12 and 14), each held out. Cut bars have their value beside them.",
        ))  # fmt: skip
    rows = report.rows.to_frame().dropna(subset=["error"])
    rows = rows[(rows["model"] == score.model) & (rows["device"] == score.device)]
    is_inside = rows["measured_s"].between(rows["low_s"], rows["high_s"])
    names = np.where(is_inside, "inside its interval", "outside its interval")
    names = np.where(rows["in_domain"], names, [f"{one}, unlike what was learned" for one in names])
    series = [
        make_series(
            str(name), own["measured_s"], own["predicted_s"], low=own["low_s"], high=own["high_s"]
        )
        for name, own in rows.groupby(names)
    ]
    if series:
        figures.append(Figure(
            charts=(chart_predictions(series),),
            caption=f"Predicted over measured, {score.model}: every row with its interval, which "
            "should hold the middle line.",
        ))  # fmt: skip
    return figures


def _draw_sampling_points(points: pd.DataFrame) -> Figure:
    """Draw error and cost of the linear model over the sampling points of one device."""
    series, usual = points[points["multiple"] > 0], points[points["multiple"] == 0]
    charts = []
    for title, names in (("error of the linear model", ("mean", "median")),
                         ("sampling cost", ("cost",))):  # fmt: skip
        places, ends = range(len(series)), (0, max(len(series) - 1, 1))
        lines = [make_series(name, places, series[name], "line") for name in names]
        guides = [
            make_series(f"{name}, default samples", ends, [value] * 2, "guide")
            for name in names
            for value in usual[name]
        ]
        charts.append(Chart(
            x=Axis(title="multiples of P_sat", names=tuple(series["label"])),
            y=Axis(title=title, unit="share"), series=(*lines, *guides), title=title,
        ))  # fmt: skip
    return Figure(
        charts=tuple(charts), heights=(2.9,),
        caption="Error and cost over sampling points (as the paper's Fig. 15): the linear model, "
        "sampled at two multiples of the work-groups that the device runs at once; dashed, the "
        "samples that an estimate takes by default. Cost is the samples' device time over the "
        f"whole launch's. {points['rows'].max()} predictions.",
    )  # fmt: skip


def _find_noise(report: ValidationReport, device: str) -> float | None:
    known = (one.noise for one in report.scores if one.device == device)
    return next((one for one in known if one is not None), None)
