"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.machine import ReportFigure
from kernelcast.reports.machine.drawing import draw_figure, find_height
from kernelcast.reports.machine.figures import label_curve
from kernelcast.service.pages.charts import Axis, Chart, Point, Series, Unit
from kernelcast.service.pages.filters import write_digits
from kernelcast.service.pages.pictures import Cell, Picture

_COLUMNS: Final = ("curve", "x quantity", "x", "y quantity", "y", "low", "high")
_MOST_TOLD: Final = 8
_LOG_FROM: Final = 20.0
_UNITS: Final[tuple[tuple[str, Unit], ...]] = (
    ("bytes per second", "B/s"), ("per second", "op/s"), ("seconds", "s"), ("bytes", "B"),
)  # fmt: skip


def make_picture(figure: ReportFigure, machine: MachineDescription) -> Picture:
    """Make the picture of curves that belong together."""
    return Picture(
        name=f"{machine.id}-{figure.kind}",
        alternative=_tell(figure, machine),
        caption=figure.caption,
        columns=_COLUMNS,
        rows=list(_list_points(figure)),
        draw=lambda drawn: draw_figure(drawn, figure, machine),
        height_inches=find_height(figure),
        chart=_make_chart(figure, machine) if len(figure.panels) == 1 else None,
    )


def _make_chart(figure: ReportFigure, machine: MachineDescription) -> Chart:
    """Chart curves that share axes; both axes by factors where all numbers allow it."""
    [curves] = figure.panels
    first = curves[0]
    sizes = _list_sizes(machine, first) if figure.is_walk else ()
    ends = (min(min(one.y) for one in curves), max(max(one.y) for one in curves))
    return Chart(
        x=_make_axis(first.x_name, [value for one in curves for value in one.x]),
        y=_make_axis(first.y_name, [value for one in curves for value in one.y]),
        series=(
            *(
                Series(name=label_curve(one, curves), kind="line", points=list(_chart_points(one)))
                for one in curves
            ),
            *(
                Series(name=name, kind="guide", points=[Point(x=size, y=one) for one in ends])
                for name, size in sizes
            ),
        ),
    )


def _list_sizes(machine: MachineDescription, walk: Curve) -> list[tuple[str, float]]:
    """Give the caches whose sizes lie within a walk."""
    return [
        (one.name, float(one.size_bytes.value))
        for one in machine.caches
        if one.size_bytes is not None and min(walk.x) < one.size_bytes.value < max(walk.x)
    ]


def _chart_points(curve: Curve) -> Iterator[Point]:
    low, high = (one or (None,) * len(curve.x) for one in (curve.low, curve.high))
    for x, y, least, most in zip(curve.x, curve.y, low, high, strict=True):
        yield Point(x=x, y=y, low=least, high=most)


def _make_axis(name: str, values: Sequence[float]) -> Axis:
    unit: Unit = next((unit for words, unit in _UNITS if words in name), "")
    is_log = min(values) > 0 and max(values) > _LOG_FROM * min(values)
    return Axis(title=name, unit=unit, is_log=is_log)


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
