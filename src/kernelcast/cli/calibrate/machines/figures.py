"""The figures of a machine's report, as SVG that takes the page's colour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelcast.cli.html_page import Html, figure_style, figure_to_svg
from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.drawing import INK, WIDTH_INCHES
from kernelcast.reports.machine import ReportFigure
from kernelcast.reports.machine.drawing import FEW_CURVES, draw_curves, draw_levels

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 4.2
_PANEL_HEIGHT = 2.7
_PANEL_COLUMNS = 2
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
            draw_levels(one, machine)
    return drawn


def _draw_panel(axes: "Axes", curves: Sequence[Curve], *, has_small_text: bool) -> None:
    draw_curves(axes, curves, _size, is_small=has_small_text)
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
    elif count > FEW_CURVES:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.legend()


def _size(value: float) -> str:
    if value < 1:
        return ""
    power, unit = next(one for one in _SIZES if value >= 2 ** one[0])
    return f"{value / 2**power:.3g} {unit}"
