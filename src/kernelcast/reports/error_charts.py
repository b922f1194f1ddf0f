"""Charts of prediction errors that command line and service both show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    MANY_POINTS,
    SMALL_FONT,
    choose_limit,
    draw_panels,
    find_reach,
    scale_ratios,
    scale_seconds,
    shorten_names,
    show_grid,
    write_percent,
)

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernelcast.models.validation.comparison import ComparedKernel

GREY: Final = "#8a929c"
"""Of differences within noise."""
_BLUE, _ORANGE, _RED = COLOURS[0], COLOURS[1], COLOURS[5]
# Callers may report any time: an axis from the first atom's life on would show nothing else.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e7

_Numbers = npt.NDArray[np.floating[Any]]
_Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ErrorSeries:
    """Mean errors of one method, for each kernel; None where it has none."""

    method: str
    errors: Sequence[float | None]


@dataclass(frozen=True, slots=True, eq=False)
class PredictedLaunches:
    """Predictions of launches that were measured.

    Parameters
    ----------
    measured_s, ratio : array
        Measured time, and predicted over measured time, of each launch.
    low_s, high_s : array
        Ends of the predictions' intervals; NaN where there is none.
    is_inside, in_domain : array of bool
        Whether the interval holds the measured time, and whether the launch resembles those
        that were learned from; True where that is unknown.
    """

    measured_s: _Numbers
    ratio: _Numbers
    low_s: _Numbers
    high_s: _Numbers
    is_inside: _Marks
    in_domain: _Marks


def draw_mean_errors(
    figure: "Figure", kernels: Sequence[str], series: Sequence[ErrorSeries], noise: float | None
) -> None:
    """Draw the mean errors of each kernel by one or two methods, beside each other.

    Parameters
    ----------
    figure : Figure
        Empty.
    kernels : sequence of str
        At least one.
    series : sequence of ErrorSeries
        At most two.
    noise : float, optional
        Of the measured times, drawn as a line.
    """
    short = shorten_names(kernels)
    limit = choose_limit([value for one in series for value in one.errors if value is not None])

    def draw(axes: "Axes", part: slice) -> None:
        for number, (one, colour) in enumerate(zip(series, (_BLUE, _ORANGE), strict=False)):
            bars = axes.bar(
                _spread(len(one.errors[part]), number, len(series)),
                [min(value or 0.0, limit) for value in one.errors[part]],
                0.8 / len(series), color=colour, label=one.method,
            )  # fmt: skip
            _write_cut(axes, bars, one.errors[part], limit)
        axes.set_ylim(0, limit)
        axes.yaxis.set_major_formatter(write_percent)
        axes.set_ylabel("mean error")
        if noise is not None:
            axes.axhline(
                noise, color=INK, linewidth=0.8, linestyle=":", label="noise of measured times"
            )

    first = draw_panels(figure, [short[one] for one in kernels], draw)
    # Above the first panel: cut bars reach to its upper end.
    figure.legend(*first.get_legend_handles_labels(), loc="outside upper right", ncols=3)


def _spread(count: int, number: int, together: int) -> _Numbers:
    """Give where the bars of one of several series stand."""
    width = 0.8 / together
    return np.arange(count) + width * (number - (together - 1) / 2)


def _write_cut(
    axes: "Axes",
    bars: Any,  # noqa: ANN401 - a container of matplotlib
    errors: Sequence[float | None],
    limit: float,
) -> None:
    """Write the errors beyond the limit beside their bars."""
    for bar, value in zip(bars, errors, strict=True):
        if value is not None and value > limit:
            axes.text(
                bar.get_x() + bar.get_width() / 2, limit, f" {value * 100:.0f} %", rotation=90,
                fontsize=SMALL_FONT - 0.5, ha="center", va="bottom", color=bar.get_facecolor(),
            )  # fmt: skip


def draw_differences(
    figure: "Figure", kernels: Sequence["ComparedKernel"], first: str, second: str
) -> None:
    """Draw the difference of errors of each kernel, coloured by the better model."""
    from matplotlib.patches import Patch

    colours = {first: COLOURS[1], second: COLOURS[0], None: GREY}
    short = shorten_names(one.kernel for one in kernels)
    points = [one.difference * 100 for one in kernels]

    def draw(axes: "Axes", part: slice) -> None:
        own = kernels[part]
        axes.bar(range(len(own)), points[part], 0.8, color=[colours[one.winner] for one in own])
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(1.3 * min(*points, -1.0), 1.3 * max(*points, 1.0))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
        axes.set_ylabel("difference (points)")

    draw_panels(figure, [short[one.kernel] for one in kernels], draw)
    handles = [
        Patch(color=colour, label=f"{name} better" if name else "within noise")
        for name, colour in colours.items()
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=3)


def draw_ratios(figure: "Figure", launches: PredictedLaunches) -> None:
    """Draw predicted over measured time of each launch with its interval, over measured time."""
    measured = np.clip(launches.measured_s, _SHORTEST_S, _LONGEST_S)
    reach = find_reach(launches.ratio)
    low, high, shown = (
        np.clip(one, 1 / reach, reach)
        for one in (launches.low_s / measured, launches.high_s / measured, launches.ratio)
    )
    has_intervals = not np.isnan(low).all()
    many = len(measured) > MANY_POINTS
    axes = figure.add_subplot()
    axes.axhspan(0.9, 1.1, color=INK, alpha=0.07, linewidth=0)
    axes.axhline(1.0, color=INK, linewidth=0.7)
    for marks, colour, marker, label in (
        (launches.is_inside, _BLUE, "o",
         "measured time inside the interval" if has_intervals else "launch"),
        (~launches.is_inside, _RED, "D", "outside"),
    ):  # fmt: skip
        held = marks & ~np.isnan(low) & ~np.isnan(high)
        axes.vlines(
            measured[held], low[held], high[held], color=colour, alpha=0.22, linewidth=0.8,
            rasterized=many,
        )  # fmt: skip
        for wanted, face in (
            (marks & launches.in_domain, colour),
            (marks & ~launches.in_domain, "none"),
        ):
            axes.plot(
                measured[wanted], shown[wanted], marker, color=colour, markersize=3.6,
                markerfacecolor=face, markeredgewidth=0.7 if face == "none" else 0,
                label=label if face != "none" and wanted.any() else None, rasterized=many,
            )  # fmt: skip
    if not launches.in_domain.all():
        axes.plot([], [], "o", color=INK, markersize=3.5, markerfacecolor="none",
                  markeredgewidth=0.8, label="unlike what was learned from")  # fmt: skip
    scale_ratios(axes, reach)
    scale_seconds(axes)
    show_grid(axes, "both")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
