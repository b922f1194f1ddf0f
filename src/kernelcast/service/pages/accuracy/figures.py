"""The pictures of the page *Accuracy*: every launch, every kernel, and over time."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from kernelcast.reports.charts import Axis, Chart, Point, Series, chart_predictions
from kernelcast.reports.drawing import PANEL_INCHES, count_panels
from kernelcast.reports.error_charts import ErrorSeries, draw_mean_errors
from kernelcast.service.pages.accuracy.scores import (
    DriftBin,
    Judged,
    KernelScore,
    score_methods,
)
from kernelcast.service.pages.accuracy.view import LINEAR, AccuracyView
from kernelcast.service.pages.filters import link_kernel, write_share
from kernelcast.service.pages.pictures import Cell, Picture

if TYPE_CHECKING:  # slow to load
    from matplotlib.figure import Figure

_GROUPS: Final = {
    True: "inside its interval", False: "outside its interval", None: "without an interval",
}  # fmt: skip
_MOST_POINTS: Final = 200
_LEAST_ERROR: Final = 1e-4
_MOST_SHIFTS: Final = 20


def make_pictures(view: AccuracyView) -> Mapping[str, Picture]:
    """Give the pictures of a view by the names that their addresses have; none without rows."""
    if not view.rows:
        return {}
    found = {
        "launches": _picture_launches(view),
        "errors": _picture_errors(view),
        "kernels": _picture_kernels(view),
    }
    if view.drift:
        found["drift"] = _picture_drift(view)
    return found


def _picture_launches(view: AccuracyView) -> Picture:
    score = score_methods(view.rows).methods[0]  # all that stand in the picture
    inside = ""
    if score.coverage is not None:
        inside = f", {write_share(score.coverage)} inside their intervals"
    mean, median = (0.0, 0.0) if score.errors is None else (score.errors.mean, score.errors.median)
    rows: list[tuple[Cell, ...]] = [
        (
            one.kernel, one.measured_s, one.seconds, one.low, one.high, one.ratio,
            None if one.in_domain is None else int(one.in_domain), one.observations, one.noise,
        )
        for one in view.rows
    ]  # fmt: skip
    return Picture(
        name=f"launches-{view.method}-{view.device}",
        alternative=(
            f"{score.rows} launches of {score.kernels} kernels on {view.device}: predicted over "
            f"measured time by {view.method}. Mean error {write_share(mean)}, median "
            f"{write_share(median)}{inside}."
        ),
        columns=("kernel", "measured_s", "predicted_s", "low_s", "high_s",
                 "predicted_over_measured", "in_domain", "observations", "noise"),
        rows=rows,
        caption=(
            "Each launch once, with its interval, which should hold the middle line. A click on a "
            "point leads to its kernel."
        ),
        height_inches=4.6,
        chart=_chart_launches(view.rows),
    )  # fmt: skip


def _chart_launches(rows: Sequence[Judged]) -> Chart:
    groups: dict[str, list[Point]] = {}
    for one in rows:
        point = Point(
            x=one.measured_s, y=one.seconds, low=one.low, high=one.high, label=one.kernel,
            link=link_kernel(one.kernel),
        )  # fmt: skip
        groups.setdefault(_GROUPS[one.is_inside], []).append(point)
    return chart_predictions(Series(name=name, points=own) for name, own in groups.items())


def _picture_errors(view: AccuracyView) -> Picture:
    """Show which share of launches is predicted to within an error, by each method."""
    series = [(method, own) for method, own in view.errors.items() if own]
    count = len(series[0][1]) if series else 0
    told = "; ".join(
        f"{name}: half within {write_share(float(np.median(own)))}" for name, own in series
    )
    if view.noises:
        series.append(("noise of measured times", view.noises))
    return Picture(
        name=f"errors-{view.device}",
        alternative=(
            f"Errors of every method on {view.device}, on {count} launches that all have "
            f"predicted. {told}."
        ),
        columns=("method", "error", "share_of_launches"),
        rows=[
            (name, error, (place + 1) / len(own))
            for name, own in series
            for place, error in enumerate(own)
        ],
        caption="Share of the launches that all methods have predicted, by the largest error.",
        chart=Chart(
            x=Axis(title="error at most", unit="share", is_log=True),
            y=Axis(title="share of launches", unit="share"),
            series=tuple(
                Series(name=name, kind="line", points=_accumulate(own)) for name, own in series
            ),
        ),
    )


def _accumulate(errors: Sequence[float]) -> list[Point]:
    """Give the share of errors up to each; some hundred points show what thousands do."""
    step = max(1, len(errors) // _MOST_POINTS)
    places = sorted({*range(0, len(errors), step), len(errors) - 1})
    return [
        Point(x=max(errors[one], _LEAST_ERROR), y=(one + 1) / len(errors))
        for one in places
        if errors
    ]


def _picture_kernels(view: AccuracyView) -> Picture:
    worst = view.kernels[0]
    beside = "" if view.method == LINEAR else ", with that of the linear model beside it"
    return Picture(
        name=f"kernels-{view.method}-{view.device}",
        alternative=(
            f"Mean error of each of {len(view.kernels)} kernels on {view.device} by "
            f"{view.method}{beside}. The worst is {worst.kernel} with {write_share(worst.error)}; "
            f"half of them are below {write_share(_middle(view.kernels))}."
        ),
        columns=("kernel", "rows", "mean_error", "linear_mean_error", "noise"),
        rows=[
            (one.kernel, one.rows, one.error, one.linear_error, one.noise) for one in view.kernels
        ],
        draw=partial(_draw_kernels, view=view),
        caption="Worst first. Bars that leave the picture have their value beside them.",
        height_inches=PANEL_INCHES * count_panels(len(view.kernels)),
    )


def _picture_drift(view: AccuracyView) -> Picture:
    first, last = view.drift[0], view.drift[-1]
    shifts = [one for one in view.rows if one.shifted_at is not None]
    return Picture(
        name=f"drift-{view.method}-{view.device}",
        alternative=(
            f"Predicted over measured time by {view.method} on {view.device} by the time of the "
            f"measurement, from {first.begin:%Y-%m-%d %H:%M} to {last.end:%Y-%m-%d %H:%M} UTC. The "
            f"middle goes from {first.middle:.2f} to {last.middle:.2f}; {len(shifts)} lasting "
            "shifts were seen."
        ),
        columns=("begin", "end", "rows", "low_10_percent", "middle", "high_90_percent"),
        rows=[
            (one.begin.isoformat(), one.end.isoformat(), one.rows, one.low, one.middle, one.high)
            for one in view.drift
        ],
        caption=(
            "Dots are launches; the line is the middle of a stretch of measurements, with 80 % of "
            "them at its sides. Lines upright: the times of a launch have shifted for good."
        ),
        height_inches=3.2,
        chart=_chart_drift(view.drift, view.rows),
    )


def _chart_drift(bins: Sequence[DriftBin], rows: Sequence[Judged]) -> Chart:
    dated = [(one.when.timestamp(), one) for one in rows if one.when is not None]
    points = [
        Point(x=when, y=one.ratio, label=one.kernel, link=link_kernel(one.kernel))
        for when, one in dated
    ]
    middles = [
        Point(
            x=(one.begin + (one.end - one.begin) / 2).timestamp(), y=one.middle, low=one.low,
            high=one.high, label=f"{one.rows} launches",
        )
        for one in bins
    ]  # fmt: skip
    low, high = min(one.ratio for one in rows), max(one.ratio for one in rows)
    ends = [min(when for when, _ in dated), max(when for when, _ in dated)]
    shifts = sorted({one.shifted_at.timestamp() for one in rows if one.shifted_at is not None})
    return Chart(
        x=Axis(title="measured", unit="moment"),
        y=Axis(title="predicted over measured", unit="ratio", is_log=True),
        series=(
            Series(name="launch", points=points),
            Series(name="middle", kind="line", points=middles),
            Series(name="equal", kind="guide", points=[Point(x=one, y=1.0) for one in ends]),
            *(
                Series(
                    name="a launch's times have shifted", kind="guide",
                    points=[Point(x=when, y=low), Point(x=when, y=high)],
                )
                for when in shifts[:_MOST_SHIFTS]
            ),
        ),
    )  # fmt: skip


def _middle(kernels: Sequence[KernelScore]) -> float:
    return float(np.median([one.error for one in kernels]))


def _draw_kernels(figure: "Figure", view: AccuracyView) -> None:
    kernels = view.kernels
    series = [ErrorSeries(view.method, [one.error for one in kernels])]
    linear = [one.linear_error for one in kernels]
    if view.method != LINEAR and any(one is not None for one in linear):
        series.append(ErrorSeries(LINEAR, linear))
    draw_mean_errors(figure, [one.kernel for one in kernels], series, view.noise)
