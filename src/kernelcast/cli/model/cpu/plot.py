"""Pictures of ``kernelcast model cpu``: sweeps over a size (paper, Fig. 3 and 4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.analytic.cpu.units import Unit, convert
from kernelcast.cli.model.cpu.tables import MeasuredSize
from kernelcast.launches.modelling.cpu_loops import LoopPrediction
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.reports.drawing import saved_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")
_Row = tuple[LoopPrediction, MeasuredSize | None]


def draw_sweep(path: Path, title: str, name: str, rows: Sequence[_Row], unit: Unit) -> None:
    """Draw ECM terms stacked on each other, with Roofline and what was measured, over a size.

    Above, the contributions in cycles per cache line, as in the paper's Fig. 3; below, lines per
    cache line of work over each boundary.
    """
    sizes = [found.constants.get(name, 0) for found, _ in rows]
    with saved_figure(path, 8.5, 7.5, dpi=120) as figure:
        times, lines = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        _stack_terms(times, sizes, rows)
        _draw_totals(times, sizes, rows, unit)
        times.set_title(title)
        for place, boundary in enumerate(_boundaries(rows)):
            volumes = [_lines(found, boundary) for found, _ in rows]
            label = " - ".join(boundary)
            lines.plot(sizes, volumes, _mark(sizes), color=_COLOURS[place + 1], label=label)
        lines.set_ylabel("lines per cache line of work")
        lines.set_xlabel(name or "size")
        lines.set_ylim(bottom=0)
        lines.legend(fontsize="small")


def draw_estimates(
    path: Path, title: str, name: str, rows: Sequence[tuple[int, AnalyticEstimate]]
) -> None:
    """Draw the limiters of an OpenCL launch, over a parameter where one was swept."""
    with saved_figure(path, 8.5, 5.0, dpi=120) as figure:
        axes = figure.add_subplot()
        if not name:
            times = {one: s for one, s in rows[0][1].limiters.items() if s > 0}
            ordered = sorted(times, key=lambda one: times[one])
            axes.barh(ordered, [times[one] for one in ordered], color=_COLOURS[0])
            axes.axvline(rows[0][1].seconds, color="black", linestyle="--", label="estimate")
            axes.set_xlabel("time alone (s)")
        else:
            sizes = [value for value, _ in rows]
            axes.plot(sizes, [one.seconds for _, one in rows], "k-", label="estimate")
            for place, limiter in enumerate(_largest(rows)):
                alone = [one.limiters.get(limiter, 0.0) for _, one in rows]
                axes.plot(sizes, alone, "--", color=_COLOURS[place], label=limiter)
            axes.set_xlabel(name)
            axes.set_ylabel("time (s)")
            axes.set_ylim(bottom=0)
        axes.set_title(title)
        axes.legend(fontsize="small")


def _largest(rows: Sequence[tuple[int, AnalyticEstimate]]) -> list[str]:
    names = {name for _, one in rows for name in one.limiters}
    most = {name: max(one.limiters.get(name, 0.0) for _, one in rows) for name in names}
    return sorted(most, key=lambda one: -most[one])[: len(_COLOURS)]


def _stack_terms(axes: "Axes", sizes: Sequence[int], rows: Sequence[_Row]) -> None:
    """Stack what does not overlap; what does is a line."""
    bottom = [0.0] * len(rows)
    loads = [found.in_core.non_overlapping if found.in_core else 0.0 for found, _ in rows]
    parts = [("T_nOL", loads)]
    for nearer, farther in _boundaries(rows):
        heights = [
            sum(one.cycles for one in found.ecm.transfers if one.farther == farther)
            for found, _ in rows
        ]
        parts.append((f"T_{nearer}{farther}", heights))
    for place, (label, heights) in enumerate(parts):
        top = [low + height for low, height in zip(bottom, heights, strict=True)]
        if len(sizes) > 1:
            axes.fill_between(sizes, bottom, top, color=_COLOURS[place], alpha=0.6, label=label)
        else:
            axes.bar([str(sizes[0])], heights, bottom=bottom, color=_COLOURS[place], label=label)
        bottom = top
    if any(found.in_core is not None for found, _ in rows) and len(sizes) > 1:
        hidden = [found.in_core.hidden if found.in_core else 0.0 for found, _ in rows]
        axes.plot(sizes, hidden, color="#777777", linestyle=":", label="T_OL")


def _draw_totals(axes: "Axes", sizes: Sequence[int], rows: Sequence[_Row], unit: Unit) -> None:
    places = sizes if len(sizes) > 1 else [str(sizes[0])]
    style = _mark(sizes)
    axes.plot(places, [found.cycles for found, _ in rows], f"k{style}", label="ECM")
    if all(found.roofline is not None for found, _ in rows):
        cycles = [found.roofline.cycles for found, _ in rows if found.roofline is not None]
        dashes = "--" if len(sizes) > 1 else "D"
        axes.plot(places, cycles, dashes, color="#aa3377", label="Roofline")
    measured = [
        (place, one.cycles) for place, (_, one) in zip(places, rows, strict=True) if one is not None
    ]
    if measured:
        at, heights = zip(*measured, strict=True)
        axes.plot(at, heights, "x", color="#ee6677", label="measured")
    axes.set_ylabel("core cycles per cache line of work")
    axes.set_ylim(bottom=0)
    if unit is not Unit.CYCLES_PER_LINE and rows[0][0].cycles:
        _add_axis(axes, rows, unit)
    axes.legend(fontsize="small", ncols=2)


def _add_axis(axes: "Axes", rows: Sequence[_Row], unit: Unit) -> None:
    """Add the unit asked for on the right, where it is the same function for all sizes."""
    if unit is Unit.SECONDS:
        return
    work = rows[0][0].work

    def tell(cycles: float) -> float:
        return convert(max(float(cycles), 1e-9), unit, work)

    top = axes.get_ylim()[1]
    other = axes.twinx()
    ticks = [top * share for share in (0.25, 0.5, 0.75, 1.0)]
    other.set_ylim(0, top)
    other.set_yticks(ticks, [f"{tell(one):.3g}" for one in ticks])
    other.set_ylabel(unit.value)


def _boundaries(rows: Sequence[_Row]) -> list[tuple[str, str]]:
    return [(one.nearer, one.farther) for one in rows[0][0].ecm.transfers]


def _lines(found: LoopPrediction, boundary: tuple[str, str]) -> float:
    return sum(
        one.lines for one in found.volumes.transfers() if (one.nearer, one.farther) == boundary
    )


def _mark(sizes: Sequence[int]) -> str:
    return "-" if len(sizes) > 1 else "o"
