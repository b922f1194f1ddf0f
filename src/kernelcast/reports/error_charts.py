"""Charts of prediction errors that command line and service both show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    SMALL_FONT,
    choose_limit,
    draw_panels,
    shorten_names,
    write_percent,
)

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernelcast.models.validation.comparison import ComparedKernel

_BLUE, _ORANGE = COLOURS[:2]
_LEAST_ERROR: Final = 1e-4

_Numbers = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class ErrorSeries:
    """Mean errors of one method, for each kernel; None where it has none."""

    method: str
    errors: Sequence[float | None]


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


def chart_errors(
    first: str,
    second: str,
    kernels: Sequence["ComparedKernel"],
    link: Callable[[str], str] = lambda _: "",
) -> Chart:
    """Chart the errors of two models on each kernel, by who wins it."""
    groups: dict[str, list[Point]] = {}
    for one in kernels:
        point = Point(
            x=max(one.first_error, _LEAST_ERROR), y=max(one.second_error, _LEAST_ERROR),
            label=one.kernel, link=link(one.kernel),
        )  # fmt: skip
        name = "within noise" if one.winner is None else f"{one.winner} is better"
        groups.setdefault(name, []).append(point)
    errors = [error for own in groups.values() for one in own for error in (one.x, one.y)]
    ends = [Point(x=one, y=one) for one in (min(errors), max(errors))]
    return Chart(
        x=Axis(title=f"mean error of {first}", unit="share", is_log=True),
        y=Axis(title=f"mean error of {second}", unit="share", is_log=True),
        series=(
            *(Series(name=name, points=own) for name, own in sorted(groups.items())),
            Series(name="equal", kind="guide", points=ends),
        ),
        is_square=True,
    )
