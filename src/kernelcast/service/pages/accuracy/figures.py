"""The pictures of the page *Accuracy*: every launch, every kernel, over time, and by week."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kernelcast.reports.charts import (
    Axis,
    Chart,
    Figure,
    Point,
    Series,
    chart_mean_errors,
    chart_predictions,
)
from kernelcast.service.pages.accuracy.view import LINEAR, AccuracyView
from kernelcast.service.pages.filters import link_kernel

_GROUPS: Final = {
    True: "inside its interval", False: "outside its interval", None: "without an interval",
}  # fmt: skip
_MOST_POINTS: Final = 200
_LEAST_ERROR: Final = 1e-4
_MOST_SHIFTS: Final = 20


def make_pictures(view: AccuracyView) -> Mapping[str, Figure]:
    """Make the pictures of a view by the names that their addresses have; none without rows."""
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


def picture_weeks(rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Picture the mean error of answers by week and device; None where nothing was observed."""
    series: dict[str, list[Point]] = {}
    for row in reversed(rows):
        if row["error"] is not None:
            point = Point(
                x=row["week"].timestamp(), y=row["error"], label=f"{row['observed']} observed"
            )
            series.setdefault(row["device_id"], []).append(point)
    if not series:
        return None
    return Figure(
        name="answers-by-week",
        title="Mean error of answers that were observed, by week and device",
        caption="A point per week; what was answered then, and observed since.",
        charts=(
            Chart(
                x=Axis(title="week", unit="moment"),
                y=Axis(title="mean error", unit="share"),
                series=tuple(
                    Series(name=name, points=points, kind="line") for name, points in series.items()
                ),
            ),
        ),
    )


def _picture_launches(view: AccuracyView) -> Figure:
    groups: dict[str, list[Point]] = {}
    for one in view.rows:
        point = Point(
            x=one.measured_s, y=one.seconds, low=one.low, high=one.high, label=one.kernel,
            link=link_kernel(one.kernel),
        )  # fmt: skip
        groups.setdefault(_GROUPS[one.is_inside], []).append(point)
    series = (Series(name=name, points=own) for name, own in groups.items())
    return Figure(
        name=f"launches-{view.method}-{view.device}",
        title=f"Predicted over measured time of each launch on {view.device} by {view.method}",
        caption=(
            "Each launch once, with its interval, which should hold the middle line. A click on a "
            "point leads to its kernel."
        ),
        heights=(4.6,),
        charts=(chart_predictions(series),),
    )


def _picture_errors(view: AccuracyView) -> Figure:
    """Show which share of launches is predicted to within an error, by each method."""
    series = {method: own for method, own in view.errors.items() if own}
    if view.noises:
        series["noise of measured times"] = view.noises
    return Figure(
        name=f"errors-{view.device}",
        title=f"Errors of every method on {view.device}, on launches that all have predicted",
        caption="Share of the launches that all methods have predicted, by the largest error.",
        charts=(
            Chart(
                x=Axis(title="error at most", unit="share", is_log=True),
                y=Axis(title="share of launches", unit="share"),
                series=tuple(
                    Series(name=name, kind="line", points=_accumulate(own))
                    for name, own in series.items()
                ),
            ),
        ),
    )


def _accumulate(errors: Sequence[float]) -> list[Point]:
    """Make the share of errors up to each; some hundred points show what thousands do."""
    step = max(1, len(errors) // _MOST_POINTS)
    places = sorted({*range(0, len(errors), step), len(errors) - 1})
    return [Point(x=max(errors[one], _LEAST_ERROR), y=(one + 1) / len(errors)) for one in places]


def _picture_kernels(view: AccuracyView) -> Figure:
    methods: dict[str, list[float | None]] = {view.method: [one.error for one in view.kernels]}
    methods.setdefault(LINEAR, [one.linear_error for one in view.kernels])
    return replace(
        chart_mean_errors([one.kernel for one in view.kernels], methods, view.noise),
        name=f"kernels-{view.method}-{view.device}",
        title=f"Mean error of each kernel on {view.device} by {view.method}, worst first",
        caption="Mean error of each kernel, worst first. Bars that leave the picture have their "
        "value beside them.",
    )


def _picture_drift(view: AccuracyView) -> Figure:
    dated = [(one.when.timestamp(), one) for one in view.rows if one.when is not None]
    points = [
        Point(x=when, y=one.ratio, label=one.kernel, link=link_kernel(one.kernel))
        for when, one in dated
    ]
    middles = [
        Point(
            x=(one.begin + (one.end - one.begin) / 2).timestamp(), y=one.middle, low=one.low,
            high=one.high, label=f"{one.rows} launches",
        )
        for one in view.drift
    ]  # fmt: skip
    low, high = min(one.ratio for one in view.rows), max(one.ratio for one in view.rows)
    ends = [min(when for when, _ in dated), max(when for when, _ in dated)]
    shifts = sorted({
        one.shifted_at.timestamp() for one in view.rows if one.shifted_at is not None
    })  # fmt: skip
    guides = [("equal", [(one, 1.0) for one in ends])]
    guides += [("a launch's times have shifted", [(when, low), (when, high)]) for when in
               shifts[:_MOST_SHIFTS]]  # fmt: skip
    return Figure(
        name=f"drift-{view.method}-{view.device}",
        title=f"Predicted over measured time by {view.method} on {view.device} over time",
        caption=(
            "Dots are launches; the line is the middle of a stretch of measurements, with 80 % of "
            "them at its sides. Lines upright: the times of a launch have shifted for good."
        ),
        heights=(3.2,),
        charts=(
            Chart(
                x=Axis(title="measured", unit="moment"),
                y=Axis(title="predicted over measured", unit="ratio", is_log=True),
                series=(
                    Series(name="launch", points=points),
                    Series(name="middle", kind="line", points=middles),
                    *(
                        Series(name=name, kind="guide", points=[Point(x=x, y=y) for x, y in places])
                        for name, places in guides
                    ),
                ),
            ),
        ),
    )
