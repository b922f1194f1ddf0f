"""The curves of a machine description as pictures."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelcast.records.machine import MachineDescription
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series
from kernelcast.reports.drawing import draw_charts
from kernelcast.service.pages.filters import write_digits, write_rate
from kernelcast.service.pages.pictures import Picture

_MOST_TOLD: Final = 8
_COMPUTING = ("fp32", "fp64")
_LEAST, _MOST = 1 / 64, 1024.0
_USUAL_BYTES = 4


def make_picture(figure: Figure, machine: MachineDescription) -> Picture:
    """Make the picture of curves that belong together."""
    return Picture(
        name=f"{machine.id}-{figure.name}",
        alternative=_tell(figure, machine),
        caption=figure.caption,
        columns=("curve", "x", "y", "low", "high"),
        rows=list(figure.list_points()),
        draw=lambda drawn: draw_charts(drawn, *figure.charts),
        height_inches=sum(figure.list_heights()),
        chart=figure.charts[0] if len(figure.charts) == 1 else None,
    )


def _tell(figure: Figure, machine: MachineDescription) -> str:
    """Say where each curve begins and ends."""
    curves = [one for chart in figure.charts for one in chart.series if one.kind == "line"]
    ends = [(one.name, one.points[0], one.points[-1]) for one in curves[:_MOST_TOLD]]
    told = [
        f"{name}: {write_digits(first.y)} at {write_digits(first.x)}, {write_digits(last.y)} at "
        f"{write_digits(last.x)}"
        for name, first, last in ends
    ]
    more = f" and {len(curves) - _MOST_TOLD} more curves" if len(curves) > _MOST_TOLD else ""
    chart = figure.charts[0]
    return (
        f"{figure.title} of {machine.name}: {chart.y.title} over {chart.x.title}. "
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
