"""Draws charts here: for papers, and for browsers without scripts."""

from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernelcast.reports.charts import Axis, Chart, Series
from kernelcast.reports.drawing import COLOURS, INK, MARKERS, show_grid
from kernelcast.reports.numbers import (
    format_bytes,
    format_count,
    format_digits,
    format_seconds,
    format_share,
    typeset,
)

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MANY: Final = 300
_COLUMNS: Final = 2
_FEW_DECADES: Final = 300.0
"""Ratio below which powers of ten alone would be too few ticks."""
_LONGEST_NAME: Final = 24


def draw_charts(figure: "Figure", *charts: Chart) -> None:
    """Draw a chart on an empty figure of matplotlib, or several in two columns."""
    columns = min(len(charts), _COLUMNS)
    panels = figure.subplots(-(-len(charts) // columns), columns, squeeze=False).flat
    for axes, chart in zip_longest(panels, charts):
        if chart is None:
            axes.set_visible(False)
        else:
            _draw(axes, chart)
    if len(charts) > 1:
        _share_labels(figure, figure.axes[: len(charts)])


def _share_labels(figure: "Figure", panels: "list[Axes]") -> None:
    """Write once what stands at all panels: a long one is longer than a panel is high."""
    size = panels[0].xaxis.label.get_fontsize()
    for name, write in (("xlabel", figure.supxlabel), ("ylabel", figure.supylabel)):
        found = {str(one.properties()[name]) for one in panels}
        if len(found) == 1:
            write(found.pop(), fontsize=size)
            for one in panels:
                one.set(**{name: ""})


def _draw(axes: "Axes", chart: Chart) -> None:
    bars = [one for one in chart.series if one.kind == "bars"]
    for number, one in enumerate(chart.series):
        if one.kind == "bars":
            _draw_bars(axes, one, chart, (bars.index(one), len(bars), number))
        else:
            _draw_points(axes, one, number)
    across, upward = (chart.x, chart.y) if chart.is_upright else (chart.y, chart.x)
    _set_axis(axes, "x", across)
    _set_axis(axes, "y", upward)
    if chart.is_square:
        ends = np.array([axes.get_xlim(), axes.get_ylim()])
        axes.set(xlim=(ends.min(), ends.max()), ylim=(ends.min(), ends.max()))
        axes.set_box_aspect(1)
    show_grid(axes, "both" if not bars else "y" if chart.is_upright else "x")
    if chart.title:
        axes.set_title(chart.title, loc="left")
    if len(chart.series) > 1:
        place = {"loc": "best"} if chart.title else {
            "loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4,
        }  # fmt: skip
        axes.legend(**place)


def _draw_points(axes: "Axes", one: Series, number: int) -> None:
    x, y = ([point.x for point in one.points], [point.y for point in one.points])
    if one.kind == "guide":
        axes.plot(x, y, "--", color=INK, linewidth=0.8, alpha=0.6, label=one.name)
        return
    colour = COLOURS[number % len(COLOURS)]
    is_many = len(x) > _MANY
    spans = [each for each in one.points if each.low is not None and each.high is not None]
    if spans and one.kind == "line":
        axes.fill_between(
            [each.x for each in spans], [each.low or 0.0 for each in spans],
            [each.high or 0.0 for each in spans], color=colour, alpha=0.2, linewidth=0,
        )  # fmt: skip
    elif spans:
        axes.vlines(
            [each.x for each in spans], [each.low or 0.0 for each in spans],
            [each.high or 0.0 for each in spans], color=colour, alpha=0.25 if is_many else 0.5,
            linewidth=0.8,
        )  # fmt: skip
    axes.plot(
        x, y, "-" if one.kind == "line" else "", marker=MARKERS[number % len(MARKERS)],
        markersize=2.5 if is_many else 3.5, markeredgewidth=0, color=colour, label=one.name,
        alpha=0.55 if is_many else 0.9, linewidth=1.2, rasterized=is_many,
    )  # fmt: skip


def _draw_bars(axes: "Axes", one: Series, chart: Chart, place: tuple[int, int, int]) -> None:
    number, together, colour = place
    width = 0.8 / together
    at = np.array([point.x for point in one.points]) + width * (number - (together - 1) / 2)
    lengths = np.array([point.y for point in one.points])
    ends = np.array([
        (point.y if point.low is None else point.low, point.y if point.high is None else point.high)
        for point in one.points
    ]).reshape(-1, 2)  # fmt: skip
    spread: Any = np.abs(ends - lengths[:, None]).T if len(lengths) else None
    if spread is not None and not spread.any():
        spread = None
    style: dict[str, Any] = {
        "color": COLOURS[colour % len(COLOURS)],
        "label": one.name,
        "ecolor": INK,
    }
    if chart.is_upright:
        axes.bar(at, lengths, width, yerr=spread, **style)
    else:
        axes.barh(at, lengths, width, xerr=spread, **style)


def _set_log_scale(axes: "Axes", side: str, base: int) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    (axes.set_xscale if side == "x" else axes.set_yscale)("log", base=base)
    one = axes.xaxis if side == "x" else axes.yaxis
    one.set_minor_formatter(NullFormatter())
    low, high = one.get_view_interval()
    if base == 10 and high < _FEW_DECADES * low:
        one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _set_axis(axes: "Axes", side: str, axis: Axis) -> None:
    one = axes.xaxis if side == "x" else axes.yaxis
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(axis.title)
    if axis.names:
        names = [
            name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
            for name in axis.names
        ]
        one.set_ticks(range(len(names)), names)
        if side == "x":
            axes.tick_params(axis="x", rotation=60 if len(names) > 4 else 0)
        else:
            axes.invert_yaxis()
        return
    if axis.is_log:
        _set_log_scale(axes, side, base=2 if axis.unit == "B" else 10)
    elif side == "y" and axes.get_ylim()[0] >= 0:
        axes.set_ylim(bottom=0)
    one.set_major_formatter(lambda value, _: write_number(value, axis))


def write_number(value: float, axis: Axis) -> str:
    """Write a number of an axis.

    Examples
    --------
    >>> write_number(0.0125, Axis(title="time", unit="s")), write_number(0.5, Axis(title="x"))
    ('12.5 ms', '0.500')
    """
    if axis.unit == "s":
        return typeset(format_seconds(value)) if value > 0 else "0"
    if axis.unit == "share":
        return typeset(format_share(value))
    if axis.unit == "moment":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d}"
    if axis.unit == "B":
        return format_bytes(value) if value >= 1 else ""
    if axis.unit in {"B/s", "op/s"}:
        return format_count(value)
    return typeset(format_digits(value))
