"""Draws the curves of a machine description; matplotlib is loaded when something is drawn."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.drawing import COLOURS, INK, MARKERS
from kernelcast.reports.machine.figures import label_curve
from kernelcast.reports.machine.quantities import format_traits

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes

FEW_CURVES: Final = 4
"""That a legend within the picture has room for."""
_WIDE_RATIO: Final = 12.0
_SCALED_RATIO: Final = 4


def draw_curves(
    axes: "Axes", curves: Sequence[Curve], write_size: Callable[[float], str], *, is_small: bool
) -> None:
    """Draw curves that share their axes, without a grid and a legend.

    Parameters
    ----------
    axes : Axes
        Empty.
    curves : sequence of Curve
        At least one.
    write_size : callable
        Writes a tick that counts bytes.
    is_small : bool
        Whether it is one of several panels.
    """
    for place, curve in enumerate(curves):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            curve.x, curve.y, color=colour, marker=MARKERS[place % len(MARKERS)], markersize=3,
            linewidth=1.2, label=label_curve(curve, curves),
        )  # fmt: skip
        if curve.low and curve.high:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    _scale(axes, curves, write_size, ticks=5 if is_small else 9)
    size = 7.5 if is_small else 9
    axes.set_xlabel(curves[0].x_name, fontsize=size)
    axes.set_ylabel(curves[0].y_name, fontsize=size)


def _scale(
    axes: "Axes", curves: Sequence[Curve], write_size: Callable[[float], str], *, ticks: int
) -> None:
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
        FuncFormatter(lambda value, _: write_size(value) if counts_bytes else f"{value:g}")
    )
    if y and max(y) > _WIDE_RATIO * min(y):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    if "second" in y_name:
        unit = "s" if y_name.startswith("second") else ""
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit, sep=" " if unit else ""))


def draw_levels(axes: "Axes", machine: MachineDescription) -> None:
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
