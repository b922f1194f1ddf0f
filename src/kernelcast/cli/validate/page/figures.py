"""The pictures of a validation: the paper's Fig. 11, 12, 14 and 15, and intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelcast.models.validation.report import GroupScore
from kernelcast.records.frames import Frame
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.reports import error_charts
from kernelcast.reports.drawing import (
    COLOURS,
    PANEL_INCHES,
    WIDTH_INCHES,
    count_panels,
    show_grid,
    write_percent,
)
from kernelcast.reports.error_charts import ErrorSeries, PredictedLaunches, draw_mean_errors
from kernelcast.reports.html import Html, figure_style, figure_to_svg

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes

_BLUE, _ORANGE, _GREEN = COLOURS[:3]


def draw_bars(bars: Sequence[GroupScore], model: str, noise: float | None) -> Html:
    """Draw each kernel's error by the linear and the learned model, worst linear error first."""
    from matplotlib.figure import Figure

    ordered = sorted(bars, key=lambda one: (-(one.linear_error or 0.0), one.group))
    series = [
        ErrorSeries(model, [one.error for one in ordered]),
        ErrorSeries("linear", [one.linear_error for one in ordered]),
    ]
    height = PANEL_INCHES * count_panels(len(ordered))
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        draw_mean_errors(figure, [one.group for one in ordered], series, noise)
        return figure_to_svg(figure)


def draw_ratios(rows: Frame) -> Html:
    """Draw predicted over measured time of every row with its interval, over measured time."""
    from matplotlib.figure import Figure

    measured, predicted, low, high, inside, known = (
        rows[name].to_numpy()
        for name in ("measured_s", "predicted_s", "low_s", "high_s", "is_inside", "in_domain")
    )
    launches = PredictedLaunches(measured, predicted / measured, low, high, inside, known)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, 4.0), layout="constrained")
        error_charts.draw_ratios(figure, launches)
        return figure_to_svg(figure)


def draw_sampling_points(points: Sequence[SamplingPointScore]) -> Html:
    """Draw error and cost of the linear model over the sampling points of one device.

    Parameters
    ----------
    points : sequence of SamplingPointScore
        Of one device; that of multiple 0 are the default samples.
    """
    from matplotlib.figure import Figure

    series = sorted((one for one in points if one.multiple), key=lambda one: one.multiple)
    usual = next((one for one in points if not one.multiple), None)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.set_ylabel("error of the linear model")
        right.set_ylabel("sampling cost")
        _draw_series(left, [one.mean for one in series], "mean", _ORANGE, "o-")
        _draw_series(left, [one.median for one in series], "median", _GREEN, "s-")
        _draw_series(right, [one.cost for one in series], "median cost", _BLUE, "o-")
        if usual is not None:
            for axes, value, colour, label in (
                (left, usual.mean, _ORANGE, "mean, default samples"),
                (left, usual.median, _GREEN, "median, default samples"),
                (right, usual.cost, _BLUE, "default samples"),
            ):
                axes.axhline(value, color=colour, linewidth=1.0, linestyle="--", label=label)
        for axes in (left, right):
            _finish_series(axes, [one.label for one in series])
        return figure_to_svg(figure)


def _draw_series(axes: "Axes", values: Sequence[float], label: str, colour: str, line: str) -> None:
    if values:
        axes.plot(
            range(len(values)), values, line, color=colour, markersize=4, linewidth=1.2,
            label=label,
        )  # fmt: skip


def _finish_series(axes: "Axes", labels: Sequence[str]) -> None:
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("sampling points in multiples of P_sat")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(write_percent)
    show_grid(axes)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=7)
