"""The curves of a machine description as charts."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelcast.records.machine import Curve, MachineDescription
from kernelcast.reports.charts import Axis, Chart, Point, Series, Unit
from kernelcast.reports.machine.figures import ReportFigure, label_curve

_LOG_FROM: Final = 12.0
_HEIGHT: Final = 4.2
_PANEL_HEIGHT: Final = 2.7
_PANEL_COLUMNS: Final = 2
_UNITS: Final[tuple[tuple[str, Unit], ...]] = (
    ("bytes per second", "B/s"), ("per second", "op/s"), ("seconds", "s"), ("bytes", "B"),
)  # fmt: skip


def find_height(figure: ReportFigure) -> float:
    """Give the height of a figure that is as wide as the page, in inches."""
    count = len(figure.panels)
    return _HEIGHT if count == 1 else _PANEL_HEIGHT * -(-count // _PANEL_COLUMNS)


def make_charts(figure: ReportFigure, machine: MachineDescription) -> tuple[Chart, ...]:
    """Chart each panel of a figure."""
    titles = figure.panel_titles or ("",) * len(figure.panels)
    return tuple(
        _make_chart(curves, title.replace("_", " "), machine if figure.is_walk else None)
        for curves, title in zip(figure.panels, titles, strict=True)
    )


def _make_chart(curves: Sequence[Curve], title: str, walked: MachineDescription | None) -> Chart:
    """Chart curves that share axes; an axis goes by factors where its numbers are far apart."""
    levels = () if walked is None else _list_levels(walked, curves[0])
    return Chart(
        x=_make_axis(curves[0].x_name, [value for one in curves for value in one.x]),
        y=_make_axis(curves[0].y_name, [value for one in curves for value in one.y]),
        series=(
            *(
                Series(name=label_curve(one, curves), kind="line", points=list(_list_points(one)))
                for one in curves
            ),
            *levels,
        ),
        title=title,
    )


def _list_levels(machine: MachineDescription, walk: Curve) -> Iterator[Series]:
    """Give the caches within a walk, each as its latency up to its size."""
    for one in machine.caches:
        if one.size_bytes is None or not min(walk.x) < one.size_bytes.value < max(walk.x):
            continue
        size = float(one.size_bytes.value)
        latency_s = max(walk.y) if one.latency_s is None else float(one.latency_s.value)
        points = [Point(x=size, y=latency_s), Point(x=size, y=min(walk.y))]
        if one.latency_s is not None:
            points.insert(0, Point(x=min(walk.x), y=latency_s))
        yield Series(name=one.name, kind="guide", points=points)


def _list_points(curve: Curve) -> Iterator[Point]:
    low, high = (one or (None,) * len(curve.x) for one in (curve.low, curve.high))
    for x, y, least, most in zip(curve.x, curve.y, low, high, strict=True):
        yield Point(x=x, y=y, low=least, high=most)


def _make_axis(name: str, values: Sequence[float]) -> Axis:
    unit: Unit = next((unit for words, unit in _UNITS if words in name), "")
    is_log = min(values) > 0 and max(values) > _LOG_FROM * min(values)
    return Axis(title=name, unit=unit, is_log=is_log)
