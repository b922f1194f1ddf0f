"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelcast.records.machine import MachineDescription
from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.reports.drawing import draw_charts
from kernelcast.reports.machine import ReportFigure
from kernelcast.reports.machine.charts import find_height, make_charts
from kernelcast.service.pages.filters import write_digits, write_rate
from kernelcast.service.pages.pictures import Cell, Picture

_COLUMNS: Final = ("curve", "x quantity", "x", "y quantity", "y", "low", "high")
_MOST_TOLD: Final = 8
_COMPUTING = ("fp32", "fp64")
_LEAST, _MOST = 1 / 64, 1024.0
_USUAL_BYTES = 4


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


def make_roofline(machines: Sequence[MachineDescription]) -> Picture | None:
    """Draw peak operations and bandwidths; None where no machine has both.

    One machine shows the roofs of its caches too; several show those of memory and of fp32.
    """
    is_alone = len(machines) == 1
    series, told = [], []
    for machine in machines:
        bandwidth = find_bandwidth(machine)
        if bandwidth is None:
            continue
        kinds = _COMPUTING if is_alone else _COMPUTING[:1]
        for kind in kinds:
            found = machine.instruction(kind)
            if found is None or found.peak_per_s is None:
                continue
            name = f"{kind} from memory" if is_alone else machine.name
            series.append(_make_roof(name, bandwidth, found.peak_per_s.value))
            told.append(
                f"{machine.name}: {write_digits(found.peak_per_s.value / 1e9)} Gop/s {kind}, "
                f"{write_rate(bandwidth)}"
            )
        if is_alone:
            series += _list_caches(machine)
    if not told:
        return None
    return Picture(
        name="roofline",
        alternative=f"Rooflines. {'; '.join(told)}.",
        caption="Operations per second that are possible, by operations per byte.",
        columns=("roof", "operations_per_byte", "operations_per_s"),
        rows=[(one.name, point.x, point.y) for one in series for point in one.points],
        chart=Chart(
            x=Axis(title="operations per byte", is_log=True),
            y=Axis(title="operations per second", unit="op/s", is_log=True),
            series=tuple(series),
        ),
    )


def find_bandwidth(machine: MachineDescription) -> float | None:
    """Give the bandwidth of loads from global memory, in bytes per second."""
    memory = machine.memory("global")
    if memory is None:
        return None
    known = {width: one.value for width, one in memory.load_bytes_per_s.items()}
    if known:
        return float(known.get(_USUAL_BYTES) or max(known.values()))
    return None if memory.copy_bytes_per_s is None else float(memory.copy_bytes_per_s.value)


def _list_caches(machine: MachineDescription) -> Iterator[Series]:
    """Give the roofs of caches whose bandwidth was measured, below the peak of fp32."""
    found = machine.instruction("fp32")
    if found is None or found.peak_per_s is None:
        return
    for cache in machine.caches:
        if cache.load_bytes_per_s is not None:
            rate = float(cache.load_bytes_per_s.value)
            yield _make_roof(f"fp32 from {cache.name}", rate, found.peak_per_s.value)


def _make_roof(name: str, bandwidth: float, peak: float) -> Series:
    ridge = min(max(peak / bandwidth, _LEAST), _MOST)
    points = [Point(x=_LEAST, y=_LEAST * bandwidth), Point(x=ridge, y=peak), Point(x=_MOST, y=peak)]
    return Series(name=name, points=points, kind="line")
