"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.machine import ReportFigure
from kernelcast.reports.machine.drawing import FEW_CURVES, draw_curves, draw_levels
from kernelcast.service.pages.pictures import Cell, Picture
from kernelcast.service.pages.words import write_bytes, write_digits

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = ("curve", "x quantity", "x", "y quantity", "y", "low", "high")
_HEIGHT: Final = 4.0
_PANEL_HEIGHT: Final = 2.7
_PANEL_COLUMNS: Final = 2
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
            draw_levels(one, machine)


def _draw_panel(axes: "Axes", curves: Sequence[Curve], *, is_small: bool) -> None:
    draw_curves(axes, curves, write_bytes, is_small=is_small)
    _add_ticks(axes, curves)
    axes.grid(visible=True, which="major")
    if len(curves) > FEW_CURVES and not is_small:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif len(curves) > 1:
        axes.legend(fontsize=7 if is_small else 8)


def _add_ticks(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Add ticks between powers of ten where there are few of these."""
    y = [value for one in curves for value in one.y if value > 0]
    if axes.get_yscale() == "log" and max(y) < _FEW_DECADES * min(y):
        from matplotlib.ticker import LogLocator

        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
