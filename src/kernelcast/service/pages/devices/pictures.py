"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelcast.records.machine import MachineDescription
from kernelcast.reports.chart_drawing import draw_charts
from kernelcast.reports.machine import ReportFigure
from kernelcast.reports.machine.charts import find_height, make_charts
from kernelcast.service.pages.filters import write_digits
from kernelcast.service.pages.pictures import Cell, Picture

_COLUMNS: Final = ("curve", "x quantity", "x", "y quantity", "y", "low", "high")
_MOST_TOLD: Final = 8


def make_picture(figure: ReportFigure, machine: MachineDescription) -> Picture:
    """Make the picture of curves that belong together."""
    charts = make_charts(figure, machine)
    return Picture(
        name=f"{machine.id}-{figure.kind}",
        alternative=_tell(figure, machine),
        caption=figure.caption,
        columns=_COLUMNS,
        rows=list(_list_points(figure)),
        draw=lambda drawn: draw_charts(drawn, *charts),
        height_inches=find_height(figure),
        chart=charts[0] if len(charts) == 1 else None,
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
