"""The pictures of the page *Accuracy*: every launch, every kernel, and over time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    MANY_POINTS,
    PANEL_INCHES,
    count_panels,
    find_reach,
    scale_ratios,
    show_grid,
)
from kernelcast.reports.error_charts import (
    ErrorSeries,
    PredictedLaunches,
    draw_mean_errors,
    draw_ratios,
)
from kernelcast.service.pages.accuracy.scores import (
    DriftBin,
    Judged,
    KernelScore,
    score_methods,
)
from kernelcast.service.pages.accuracy.view import LINEAR, AccuracyView
from kernelcast.service.pages.filters import write_share
from kernelcast.service.pages.pictures import Cell, Picture

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _RED = COLOURS[0], COLOURS[1], COLOURS[5]


def make_pictures(view: AccuracyView) -> Mapping[str, Picture]:
    """Give the pictures of a view by the names that their addresses have; none without rows."""
    if not view.rows:
        return {}
    found = {"launches": _picture_launches(view), "kernels": _picture_kernels(view)}
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
        draw=partial(_draw_launches, rows=view.rows),
        caption=(
            "Each launch once, with its interval; the band is 10 % to either side. Points beyond "
            "the axis stand at its edge."
        ),
        height_inches=4.0,
    )  # fmt: skip


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
        draw=partial(_draw_drift, bins=view.drift, rows=view.rows),
        caption=(
            "Dots are launches; the line is the middle of a stretch of measurements, the band "
            "holds 80 % of them. Lines upright: the times of a launch have shifted for good."
        ),
        height_inches=3.2,
    )


def _middle(kernels: Sequence[KernelScore]) -> float:
    return float(np.median([one.error for one in kernels]))


def _draw_launches(figure: "Figure", rows: Sequence[Judged]) -> None:
    draw_ratios(
        figure,
        PredictedLaunches(
            measured_s=np.array([one.measured_s for one in rows]),
            ratio=np.array([one.ratio for one in rows]),
            low_s=np.array([one.low for one in rows], dtype=np.float64),
            high_s=np.array([one.high for one in rows], dtype=np.float64),
            is_inside=np.array([one.is_inside is not False for one in rows]),
            in_domain=np.array([one.in_domain is not False for one in rows]),
        ),
    )


def _draw_kernels(figure: "Figure", view: AccuracyView) -> None:
    kernels = view.kernels
    series = [ErrorSeries(view.method, [one.error for one in kernels])]
    linear = [one.linear_error for one in kernels]
    if view.method != LINEAR and any(one is not None for one in linear):
        series.append(ErrorSeries(LINEAR, linear))
    draw_mean_errors(figure, [one.kernel for one in kernels], series, view.noise)


def _draw_drift(figure: "Figure", bins: Sequence[DriftBin], rows: Sequence[Judged]) -> None:
    dated = [(one.when, one.ratio) for one in rows if one.when is not None]
    ratios = np.array([ratio for _, ratio in dated])
    reach = find_reach(ratios)
    axes = figure.add_subplot()
    axes.axhline(1.0, color=INK, linewidth=0.7)
    axes.plot(
        _place([when for when, _ in dated]), np.clip(ratios, 1 / reach, reach), "o",
        color=_BLUE, alpha=0.55, markersize=2.5, markeredgewidth=0, label="launch",
        rasterized=len(dated) > MANY_POINTS,
    )  # fmt: skip
    middles = _place([one.begin + (one.end - one.begin) / 2 for one in bins])
    style = "-" if len(bins) > 1 else "D"
    axes.plot(middles, [one.middle for one in bins], style, color=_ORANGE, linewidth=1.6,
              label="middle")  # fmt: skip
    axes.fill_between(
        middles, [one.low for one in bins], [one.high for one in bins], color=_ORANGE, alpha=0.2,
        linewidth=0, label="80 % of launches",
    )  # fmt: skip
    shifts = [one.shifted_at for one in rows if one.shifted_at is not None]
    if shifts:
        axes.vlines(
            _place(shifts), 0, 1, transform=axes.get_xaxis_transform(), color=_RED,
            linewidth=0.9, linestyles="--", label="a launch's times have shifted",
        )  # fmt: skip
    scale_ratios(axes, reach)
    show_grid(axes, "both")
    _scale_dates(axes)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)


def _place(moments: Sequence[datetime]) -> npt.NDArray[Any]:
    """Give where moments are on an axis."""
    from matplotlib.dates import date2num

    found: npt.NDArray[Any] = date2num(moments)  # type: ignore[no-untyped-call]  # the library has none
    return found


def _scale_dates(axes: "Axes") -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_formatter(formatter)
    axes.set_xlabel("measured (UTC)")
