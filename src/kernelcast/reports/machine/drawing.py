"""Draws the curves of a machine description; matplotlib is loaded when something is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.drawing import COLOURS, INK, MARKERS
from kernelcast.reports.machine.figures import ReportFigure, label_curve
from kernelcast.reports.machine.quantities import format_traits
from kernelcast.reports.numbers import format_bytes

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW_CURVES: Final = 4
"""That a legend within the picture has room for."""
_WIDE_RATIO: Final = 12.0
_SCALED_RATIO: Final = 4
_FEW_DECADES: Final = 300.0
"""Ratio below which powers of ten alone would be too few ticks."""
_HEIGHT: Final = 4.2
_PANEL_HEIGHT: Final = 2.7
_PANEL_COLUMNS: Final = 2


def find_height(figure: ReportFigure) -> float:
    """Give the height of a figure that is as wide as the page, in inches."""
    count = len(figure.panels)
    return _HEIGHT if count == 1 else _PANEL_HEIGHT * -(-count // _PANEL_COLUMNS)


def draw_figure(drawn: "Figure", figure: ReportFigure, machine: MachineDescription) -> None:
    """Draw curves that belong together on an empty figure."""
    count = len(figure.panels)
    columns = min(count, _PANEL_COLUMNS)
    axes = drawn.subplots(-(-count // columns), columns, squeeze=False).flat
    for place, one in enumerate(axes):
        if place >= count:
            one.set_visible(False)
            continue
        _draw_curves(one, figure.panels[place], is_small=count > 1)
        if figure.panel_titles:
            one.set_title(figure.panel_titles[place].replace("_", " "), loc="left")
        if figure.is_walk:
            _draw_levels(one, machine)


def _draw_curves(axes: "Axes", curves: Sequence[Curve], *, is_small: bool) -> None:
    """Draw curves that share their axes."""
    for place, curve in enumerate(curves):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            curve.x, curve.y, color=colour, marker=MARKERS[place % len(MARKERS)], markersize=3,
            linewidth=1.2, label=label_curve(curve, curves),
        )  # fmt: skip
        if curve.low and curve.high:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    _scale(axes, curves, ticks=5 if is_small else 9)
    size = 7.5 if is_small else 9
    axes.set_xlabel(curves[0].x_name, fontsize=size)
    axes.set_ylabel(curves[0].y_name, fontsize=size)
    axes.grid(visible=True, which="major")
    if len(curves) > 1:
        _add_legend(axes, len(curves), is_panel=is_small)


def _add_legend(axes: "Axes", count: int, *, is_panel: bool) -> None:
    """Put the legend where no curve can be: above a panel, beside many curves."""
    if is_panel:
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.02, 0.97), ncols=count, handlelength=1.2,
            columnspacing=0.8, handletextpad=0.3,
        )  # fmt: skip
    elif count > _FEW_CURVES:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend()


def _scale(axes: "Axes", curves: Sequence[Curve], *, ticks: int) -> None:
    """Choose scales and ticks by what the axes count."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    x = [value for one in curves for value in one.x if value > 0]
    y = [value for one in curves for value in one.y if value > 0]
    x_name, y_name = curves[0].x_name, curves[0].y_name
    if x and max(x) >= _SCALED_RATIO * min(x):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=ticks))
        axes.xaxis.set_minor_formatter(NullFormatter())
    counts_bytes = "byte" in x_name and "second" not in x_name
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: _write_size(value) if counts_bytes else f"{value:g}")
    )
    if y and max(y) > _WIDE_RATIO * min(y):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        if max(y) < _FEW_DECADES * min(y):
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axes.set_ylim(bottom=0)
    if "second" in y_name:
        unit = "s" if y_name.startswith("second") else ""
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit, sep=" " if unit else ""))


def _write_size(value: float) -> str:
    return "" if value < 1 else format_bytes(value)


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
