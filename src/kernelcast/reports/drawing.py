"""Draws figures by matplotlib, the same for files and for pages.

`save_figure` writes PNG, PDF or SVG; `draw_svg` and `draw_png` make what pages show. A `Figure` of
`kernelcast.reports.charts` says what is drawn.
"""

import importlib.util
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import check_target, writing
from kernelcast.reports.charts import LONGEST_NAME, Axis, Chart, Figure, Series, elide, make_plain
from kernelcast.reports.numbers import WRITERS, typeset

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS: Final = (
    "#0a84d6", "#e07b00", "#0b9e6f", "#cc5fa4", "#c8a200", "#d9402f", "#7a6be0", "#5f9ea0",
)  # fmt: skip
"""Of curves; legible on white and on black (after Okabe and Ito)."""
MARKERS: Final = "osD^vPX*"
"""Of curves: colours alone do not tell them apart."""
DASHES: Final = ("-", "--", ":", "-.")
"""Of curves over areas, which all have the colour of text."""
INK: Final = "#010203"
"""Text and axes are drawn in it; pages put their own colour of text in its place."""
WIDTH_INCHES: Final = 8.0
STYLE: Final[Any] = {  # matplotlib lists every name in its type
    "svg.hashsalt": "kernelcast", "font.family": "sans-serif", "font.size": 9,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.7, "axes.titlesize": 9,
    "legend.frameon": False, "legend.fontsize": 8,
    "grid.color": INK, "grid.alpha": 0.15, "grid.linewidth": 0.5,
    "text.parse_math": False,  # kernels and devices may have any name
}  # fmt: skip
_DPI: Final = 150
_SMALL_FONT: Final = 6.5
_MOST_LEGEND: Final = 16
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
# Names of parts that nothing refers to; several figures on a page would repeat them.
_IDS = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|xtick|ytick|matplotlib\.axis|legend|'
    r'FillBetweenPolyCollection|LineCollection|PathCollection)_\d+"'
)
_SVG_TAG = re.compile(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>')


def require_matplotlib(option: str) -> None:
    """Refuse an option that draws where matplotlib is missing, before anything runs."""
    if importlib.util.find_spec("matplotlib") is None:
        msg = f"{option} needs matplotlib; install it with `pip install 'kernelcast[plot]'`"
        raise InputError(msg)


def check_plot(path: Path) -> None:
    """Refuse a path that no figure can be written to."""
    check_target(path)
    require_matplotlib("--plot")
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        msg = f"{path}: charts are written as {', '.join(kinds)}; end the name in one, as .png"
        raise InputError(msg)


def save_figure(path: Path, figure: Figure) -> None:
    """Write a figure to a file; the ending of its name decides the format."""
    with _draw(figure, shows_title=True) as canvas, writing(path, "the chart"):
        canvas.savefig(path, dpi=_DPI, facecolor="white")


def draw_png(figure: Figure) -> bytes:
    content = io.BytesIO()
    with _draw(figure) as canvas:
        canvas.savefig(content, format="png", dpi=_DPI, facecolor="white")
    return content.getvalue()


def draw_svg(figure: Figure, *, is_inline: bool = False) -> str:
    """Draw a figure as an SVG element in `INK`."""
    text = io.StringIO()
    with _draw(figure, fonttype="none" if is_inline else "path") as canvas:
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = _METADATA.sub("", svg[svg.index("<svg") :])
    if not is_inline:
        return svg
    return _SVG_TAG.sub(
        r'<svg viewBox="\1" role="img">', _IDS.sub("", svg.replace(INK, "currentColor"))
    )


@contextmanager
def _draw(
    figure: Figure, *, shows_title: bool = False, fonttype: str = "path"
) -> "Iterator[Canvas]":
    from matplotlib import colormaps, rc_context
    from matplotlib.figure import Figure as Canvas

    charts, columns = figure.charts, min(figure.columns, len(figure.charts))
    rows = -(-len(charts) // columns)
    heights = [figure.heights[min(row, len(figure.heights) - 1)] for row in range(rows)]
    with rc_context({**STYLE, "svg.fonttype": fonttype}):
        canvas = Canvas(figsize=(WIDTH_INCHES, sum(heights)), layout="constrained")
        panels = canvas.subplots(rows, columns, squeeze=False, height_ratios=heights).flat
        # Choose a colour for each name, the same in all charts; many names share a gradient.
        names = [
            [*dict.fromkeys(one.name for one in chart.series if one.kind != "guide")]
            for chart in charts
        ]
        every = dict.fromkeys(name for each in names for name in each)
        colours: dict[str, Any] = {
            name: COLOURS[place % len(COLOURS)] for place, name in enumerate(every)
        }
        for each in names:
            if len(each) > _MOST_LEGEND:
                gradient = colormaps["turbo"](np.linspace(0.05, 0.95, len(each)))
                colours |= dict(zip(each, gradient, strict=True))
        for chart in charts:
            _draw_chart(next(panels), chart, colours)
        for axes in panels:
            axes.set_visible(False)
        if len(charts) > 1:
            # Write once what stands at all panels: a long one is longer than a panel is high.
            shown = canvas.axes[: len(charts)]
            size = shown[0].xaxis.label.get_fontsize()
            for name, write in (("xlabel", canvas.supxlabel), ("ylabel", canvas.supylabel)):
                labels = {str(panel.properties()[name]) for panel in shown}
                if len(labels) == 1:
                    write(labels.pop(), fontsize=size)
                    for panel in shown:
                        panel.set(**{name: ""})
        if shows_title and figure.title:
            canvas.suptitle(make_plain(figure.title), fontsize=10)
        yield canvas


def _draw_chart(axes: "Axes", chart: Chart, colours: Mapping[str, Any]) -> None:
    bars = [one for one in chart.series if one.kind == "bars"]
    stack = [one for one in chart.series if one.kind == "stack"]
    if stack:
        _draw_stack(axes, stack, chart, colours)
    for number, one in enumerate(bars):
        _draw_bars(axes, one, chart, (number, len(bars)), colours[one.name])
    for number, one in enumerate(chart.series):
        if one.kind not in {"bars", "stack"}:
            _draw_curve(
                axes, chart, number, colours.get(one.name, INK), is_inked=bool(stack or bars)
            )
    across, upward = (chart.x, chart.y) if chart.is_upright else (chart.y, chart.x)
    _set_axis(axes, "x", across)
    _set_axis(axes, "y", upward)
    if chart.cuts_bars:
        # End where a few bars would make all others unreadable, and write their values beside them.
        values = [point.y for one in bars for point in one.points]
        largest, usual = max(values), float(np.quantile(values, 0.9))
        limit = (1.5 * usual if 0 < 2.5 * usual < largest else 1.05 * largest) or 1.0
        axes.set_ylim(0, limit)
        for bar in axes.patches:
            value = bar.get_height()  # type: ignore[attr-defined] # bars are rectangles
            if value > limit:
                at = bar.get_x() + bar.get_width() / 2  # type: ignore[attr-defined]
                axes.text(
                    at, limit, f" {write_number(value, chart.y)}", rotation=90, ha="center",
                    va="bottom", fontsize=_SMALL_FONT - 0.5, color=bar.get_facecolor(),
                )  # fmt: skip
    if chart.is_square:
        ends = np.array([axes.get_xlim(), axes.get_ylim()])
        axes.set(xlim=(ends.min(), ends.max()), ylim=(ends.min(), ends.max()))
        axes.set_box_aspect(1)
    is_free = not (bars or stack)
    axes.grid(visible=True, axis="both" if is_free else "y" if chart.is_upright else "x")
    axes.set_axisbelow(True)
    if chart.title:
        axes.set_title(make_plain(chart.title), loc="left")
    handles, names = axes.get_legend_handles_labels()
    shown = dict(zip(names, handles, strict=True))
    if len(chart.series) < 2:
        return
    if len(shown) > _MOST_LEGEND:
        note = f"colours: {names[0]} to {names[-1]}"
        axes.text(0.99, 0.02, note, transform=axes.transAxes, ha="right", fontsize=8, alpha=0.7)
        return
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4}
    if len(shown) > 4 or chart.cuts_bars or {"stack", "spans"} & {one.kind for one in chart.series}:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    elif chart.title:
        place = {"loc": "best"}
    axes.legend(list(shown.values()), [make_plain(one) for one in shown], **place)


def _draw_curve(axes: "Axes", chart: Chart, number: int, colour: Any, *, is_inked: bool) -> None:  # noqa: ANN401 - matplotlib's
    """Draw points, a line, spans or a guide; curves over areas are in ink."""
    one = chart.series[number]
    x, y = [at.x for at in one.points], [at.y for at in one.points]
    if one.kind == "guide":
        axes.plot(x, y, "--", color=INK, linewidth=0.8, alpha=0.6, label=one.name)
        return
    if one.kind == "spans":
        stops = [at.x if at.high is None else at.high for at in one.points]
        style: dict[str, Any] = {"label": one.name}
        if chart.y.names:
            widths = np.subtract(stops, x)
            axes.barh(y, widths, left=x, height=0.65, color=colour, **style)
            return
        width = min(max(230.0 / (max(y, default=0.0) + 1), 1.2), 8.0)
        # A bar shorter than a pixel still shows as a dot.
        style |= {"linewidths": width, "capstyle": "butt" if width > 1.2 else "projecting"}
        axes.hlines(y, x, stops, colors=[colour], **style)
        return
    is_many, colour = len(x) > 300, INK if is_inked else colour
    ends = [(at.x, at.low, at.high) for at in one.points if None not in {at.low, at.high}]
    if ends:
        at, lows, highs = np.array(ends, dtype=float).T
        if one.kind == "line":
            axes.fill_between(at, lows, highs, color=colour, alpha=0.2, linewidth=0)
        else:
            alpha = 0.25 if is_many else 0.5
            axes.vlines(at, lows, highs, color=colour, alpha=alpha, linewidth=0.8)
    axes.plot(
        x, y, color=colour, marker=MARKERS[number % len(MARKERS)],
        linestyle="none" if one.kind == "points" else DASHES[number * is_inked % 4],
        markersize=2.5 if is_many else 3.5, markeredgewidth=0, label=one.name,
        alpha=0.55 if is_many else 0.9, linewidth=1.2, rasterized=is_many,
    )  # fmt: skip


def _draw_bars(
    axes: "Axes", one: Series, chart: Chart, place: tuple[int, int], colour: str
) -> None:
    number, together = place
    width = 0.8 / together
    at = np.array([point.x for point in one.points]) + width * (number - (together - 1) / 2)
    lengths = np.array([point.y for point in one.points])
    ends = np.array([
        (point.y if point.low is None else point.low, point.y if point.high is None else point.high)
        for point in one.points
    ]).reshape(-1, 2)  # fmt: skip
    spread = np.abs(ends - lengths[:, None]).T
    error: Any = spread if spread.any() else None
    style: dict[str, Any] = {"color": colour, "label": one.name, "ecolor": INK}
    if chart.is_upright:
        axes.bar(at, lengths, width, yerr=error, **style)
    else:
        axes.barh(at, lengths, width, xerr=error, **style)


def _draw_stack(
    axes: "Axes", stack: Sequence[Series], chart: Chart, colours: Mapping[str, Any]
) -> None:
    places = sorted({point.x for one in stack for point in one.points})
    ends = {True: np.zeros(len(places)), False: np.zeros(len(places))}
    rows = [
        np.array([{point.x: point.y for point in one.points}.get(at, 0.0) for at in places])
        for one in stack
    ]
    longest = max(float(np.sum([np.abs(row) for row in rows], axis=0).max()), 1e-300)
    for one, lengths in zip(stack, rows, strict=True):
        base = np.where(lengths < 0, ends[False], ends[True])
        style: dict[str, Any] = {
            "color": colours[one.name], "label": one.name,
            "hatch": "///" if one.is_hollow else None, "alpha": 0.45 if one.is_hollow else 0.9,
        }  # fmt: skip
        if not chart.x.names and len(places) > 1:
            axes.fill_between(places, base, base + lengths, linewidth=0, **style)
        else:
            bars = axes.bar(places, lengths, 0.62, bottom=base, **style)
            # A piece is labelled from this part of the longest stack on.
            least = 0.06 * longest if len(places) <= 8 else np.inf
            axes.bar_label(bars, [
                write_number(abs(value), chart.y) if abs(value) > least else "" for value in lengths
            ], label_type="center", fontsize=_SMALL_FONT)  # fmt: skip
        ends[True] = np.where(lengths > 0, base + lengths, ends[True])
        ends[False] = np.where(lengths < 0, base + lengths, ends[False])


def _set_axis(axes: "Axes", side: Literal["x", "y"], axis: Axis) -> None:
    line = axes.xaxis if side == "x" else axes.yaxis
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(axis.title)
    if axis.names:
        names = [elide(make_plain(name), 2 * LONGEST_NAME) for name in axis.names]
        line.set_ticks(range(len(names)), names)
        if side == "y":
            axes.invert_yaxis()
        elif len(names) > 20:
            axes.tick_params(axis="x", rotation=90, labelsize=_SMALL_FONT)
        elif max(len(line) for name in names for line in name.split("\n")) * len(names) > 100:
            for label in axes.get_xticklabels():
                label.set(rotation=30, horizontalalignment="right")
        return
    if axis.is_log:
        from matplotlib.ticker import LogLocator, NullFormatter

        base = 2 if axis.unit == "B" else 10
        (axes.set_xscale if side == "x" else axes.set_yscale)("log", base=base)
        line.set_minor_formatter(NullFormatter())
        low, high = line.get_view_interval()
        # Powers of ten alone would be too few ticks.
        if base == 10 and high < 300.0 * low:
            line.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    elif side == "y" and axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    line.set_major_formatter(lambda value, _: write_number(value, axis))


def write_number(value: float, axis: Axis) -> str:
    if axis.unit == "moment":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d}"
    if axis.unit == "B" and value < 1:
        return ""
    if axis.unit in {"s", "share", "B", "B/s", "op/s", "count"}:
        return typeset(WRITERS[axis.unit](value))
    return typeset(f"{value:,.0f}" if value == int(value) else f"{value:.3g}")
