"""The figures of a machine's report, as SVG that takes the page's colour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelcast.cli.html_page import (
    COLOURS,
    INK,
    MARKERS,
    WIDTH_INCHES,
    Html,
    figure_style,
    figure_to_svg,
)
from kernelcast.predictor.machine_report import ReportFigure, label_curve
from kernelcast.predictor.machine_report.quantities import format_traits
from kernelcast.records.machine import Curve, MachineDescription

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 4.2
_PANEL_HEIGHT = 2.7
_PANEL_COLUMNS = 2
_WIDE_RATIO = 12.0
_FEW = 4
_SIZES = ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B"))


def draw_svg(figure: ReportFigure, machine: MachineDescription) -> Html:
    """Draw a figure as an SVG element for a page."""
    with figure_style():
        return figure_to_svg(draw(figure, machine))


def draw(figure: ReportFigure, machine: MachineDescription) -> "Figure":
    """Draw a figure with matplotlib."""
    from matplotlib.figure import Figure

    count = len(figure.panels)
    columns = min(count, _PANEL_COLUMNS)
    rows = -(-count // columns)
    height = _HEIGHT if count == 1 else _PANEL_HEIGHT * rows
    drawn = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    axes = drawn.subplots(rows, columns, squeeze=False).flat
    for place, one in enumerate(axes):
        if place >= count:
            one.set_visible(False)
            continue
        _draw_panel(one, figure.panels[place], has_small_text=count > 1)
        if figure.panel_titles:
            one.set_title(figure.panel_titles[place].replace("_", " "), fontsize=9, loc="left")
        if figure.is_walk:
            _draw_levels(one, machine)
    return drawn


def _draw_panel(axes: "Axes", curves: Sequence[Curve], *, has_small_text: bool) -> None:
    for place, curve in enumerate(curves):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            curve.x, curve.y, color=colour, marker=MARKERS[place % len(MARKERS)], markersize=3,
            linewidth=1.2, label=label_curve(curve, curves),
        )  # fmt: skip
        if curve.low and curve.high:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    _scale(axes, curves, ticks=5 if has_small_text else 9)
    first = curves[0]
    size = 7.5 if has_small_text else 9
    axes.set_xlabel(first.x_name, fontsize=size)
    axes.set_ylabel(first.y_name, fontsize=size)
    axes.grid(visible=True, which="major", color=INK, alpha=0.15, linewidth=0.5)
    if len(curves) > 1:
        _add_legend(axes, len(curves), is_panel=has_small_text)


def _add_legend(axes: "Axes", count: int, *, is_panel: bool) -> None:
    """Put the legend where no curve can be: above a panel, beside many curves."""
    if is_panel:
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.02, 0.97), ncols=count, handlelength=1.2,
            columnspacing=0.8, handletextpad=0.3,
        )  # fmt: skip
    elif count > _FEW:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend()


def _scale(axes: "Axes", curves: Sequence[Curve], *, ticks: int) -> None:
    """Choose scales and ticks by what the axes count."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    x = [value for one in curves for value in one.x if value > 0]
    y = [value for one in curves for value in one.y if value > 0]
    x_name, y_name = curves[0].x_name, curves[0].y_name
    if x and max(x) >= _FEW * min(x):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=ticks))
        axes.xaxis.set_minor_formatter(NullFormatter())
    counts_bytes = "byte" in x_name and "second" not in x_name
    axes.xaxis.set_major_formatter(FuncFormatter(_size if counts_bytes else _count))
    if y and max(y) > _WIDE_RATIO * min(y):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    if "second" in y_name:
        unit = "s" if y_name.startswith("second") else ""
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit, sep=" " if unit else ""))


def _size(value: float, _: object = None) -> str:
    if value < 1:
        return ""
    power, unit = next(one for one in _SIZES if value >= 2 ** one[0])
    return f"{value / 2**power:.3g} {unit}"


def _count(value: float, _: object = None) -> str:
    return f"{value:g}"


def _draw_levels(axes: "Axes", machine: MachineDescription) -> None:
    """Draw the latencies and sizes of the caches into the walk through global memory."""
    for cache in machine.caches:
        if cache.latency_s is not None:
            axes.axhline(cache.latency_s.value, color=INK, alpha=0.5, dashes=(4, 3), linewidth=0.8)
        if cache.size_bytes is None:
            continue
        size = cache.size_bytes.value
        axes.axvline(size, color=INK, alpha=0.5, linestyle=":", linewidth=0.9)
        text = f"{cache.name} {format_traits('size_bytes', (cache.size_bytes,), marks=False)}"
        axes.text(
            size, 0.99, f" {text}", fontsize=7, rotation=90, va="top", ha="right",
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    memory = machine.memory("global")
    if memory is not None and memory.latency_s is not None:
        axes.axhline(memory.latency_s.value, color=INK, alpha=0.5, dashes=(4, 3), linewidth=0.8)
