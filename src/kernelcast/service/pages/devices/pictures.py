"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.predictor.machine_report import ReportFigure, label_curve
from kernelcast.predictor.machine_report.quantities import format_traits
from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.service.pages.pictures import COLOURS, INK, MARKERS, Cell, Picture
from kernelcast.service.pages.words import write_bytes, write_digits

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = ("curve", "x quantity", "x", "y quantity", "y", "low", "high")
_HEIGHT: Final = 4.0
_PANEL_HEIGHT: Final = 2.7
_PANEL_COLUMNS: Final = 2
_WIDE_RATIO: Final = 12.0
_FEW: Final = 4
_FEW_DECADES: Final = 300.0
"""Ratio below which powers of ten alone would be too few ticks."""
_MOST_TOLD: Final = 8


def make_picture(figure: ReportFigure, machine: MachineDescription) -> Picture:
    """Make the picture of curves that belong together."""
    count = len(figure.panels)
    rows = -(-count // _PANEL_COLUMNS)
    return Picture(
        name=f"{machine.id}-{figure.kind}",
        alternative=_tell(figure, machine),
        caption=figure.caption,
        columns=_COLUMNS,
        rows=list(_list_points(figure)),
        draw=lambda drawn: _draw(drawn, figure, machine),
        height_inches=_HEIGHT if count == 1 else _PANEL_HEIGHT * rows,
    )


def _list_points(figure: ReportFigure) -> Iterator[Sequence[Cell]]:
    for curve in (one for panel in figure.panels for one in panel):
        low, high = (one or (None,) * len(curve.x) for one in (curve.low, curve.high))
        for point in zip(curve.x, curve.y, low, high, strict=True):
            x, y, least, most = point
            yield (curve.name, curve.x_name, x, curve.y_name, y, least, most)


def _tell(figure: ReportFigure, machine: MachineDescription) -> str:
    """Say where each curve begins and ends."""
    curves = [one for panel in figure.panels for one in panel]
    told = [
        f"{one.name}: {write_digits(one.y[0])} at {write_digits(one.x[0])}, "
        f"{write_digits(one.y[-1])} at {write_digits(one.x[-1])}"
        for one in curves[:_MOST_TOLD]
    ]
    more = f" and {len(curves) - _MOST_TOLD} more curves" if len(curves) > _MOST_TOLD else ""
    first = curves[0]
    return (
        f"{figure.title} of {machine.name}: {first.y_name} over {first.x_name}. "
        f"{'; '.join(told)}{more}. The CSV file has all points."
    )


def _draw(drawn: "Figure", figure: ReportFigure, machine: MachineDescription) -> None:
    count = len(figure.panels)
    columns = min(count, _PANEL_COLUMNS)
    axes = drawn.subplots(-(-count // columns), columns, squeeze=False).flat
    for place, one in enumerate(axes):
        if place >= count:
            one.set_visible(False)
            continue
        _draw_panel(one, figure.panels[place], is_small=count > 1)
        if figure.panel_titles:
            one.set_title(figure.panel_titles[place].replace("_", " "), loc="left")
        if figure.is_walk:
            _draw_levels(one, machine)


def _draw_panel(axes: "Axes", curves: Sequence[Curve], *, is_small: bool) -> None:
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
    if len(curves) > _FEW and not is_small:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif len(curves) > 1:
        axes.legend(fontsize=7 if is_small else 8)


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
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: write_bytes(value) if counts_bytes else f"{value:g}")
    )
    if y and max(y) > _WIDE_RATIO * min(y):
        axes.set_yscale("log")
        if max(y) < _FEW_DECADES * min(y):
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    if "second" in y_name:
        unit = "s" if y_name.startswith("second") else ""
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit, sep=" " if unit else ""))


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
