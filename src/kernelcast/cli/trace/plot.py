"""The chart of ``kernelcast trace --plot``: the paper's timelines, Fig. 5, 6 and 8."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcast.records.work_group_trace import (
    Staircase,
    StepTimes,
    Timeline,
    TraceAnswer,
    WorkGroupTrace,
)
from kernelcast.reports.drawing import saved_figure
from kernelcast.reports.numbers import unit_of_time
from kernelcast.sampling.trace_analysis import average_active

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_SIZE = (9.0, 5.6)
# More bars than that would lie on each other: whole waves are then left out.
_MOST_BARS = 4000
_BINS = 300
_MOST_NAMED_LANES = 8
_THINNEST, _THICKEST = 1.2, 8.0
_POINTS_OF_A_PANEL = 230.0


def save_trace_plot(path: Path, answers: Sequence[TraceAnswer]) -> None:
    """Draw each device's timeline above its active work-groups, or its t(n)."""
    traces = [one.trace for one in answers if one.trace is not None]
    with saved_figure(path, _SIZE[0], _SIZE[1] * len(traces), dpi=110) as figure:
        parts = figure.subfigures(len(traces), 1, squeeze=False, hspace=0.03)[:, 0]
        for part, trace in zip(parts, traces, strict=True):
            part.suptitle(_title(trace), fontsize=10)
            if isinstance(trace.outcome, Timeline):
                _draw_timeline(part, trace, trace.outcome)
            else:
                _draw_steps(part, trace, trace.outcome)


def choose_bars(waves: Sequence[int], most: int = _MOST_BARS) -> list[int]:
    """Choose which work-groups get a bar: all, or those of waves spread evenly.

    Examples
    --------
    >>> choose_bars([0, 0, 1, 1, 2, 2, 3, 3], most=4)
    [0, 1, 6, 7]
    """
    numbers = np.asarray(waves)
    if len(numbers) <= most:
        return list(range(len(numbers)))
    count = int(numbers.max()) + 1
    kept = max(2, count * most // len(numbers))
    chosen = np.unique(np.linspace(0, count - 1, kept).astype(int))
    members = np.flatnonzero(np.isin(numbers, chosen))
    # Waves differ in size, and a single one may be too many by itself.
    picked = np.unique(np.linspace(0, len(members) - 1, most).astype(int))
    return [int(one) for one in members[picked]]


def _title(trace: WorkGroupTrace) -> str:
    outcome = trace.outcome
    told = [f"P_sat {trace.p_sat}", f"{trace.concurrency} work-groups active at once"]
    if isinstance(outcome, Timeline):
        told.append(f"{outcome.wave_count:,} waves")
        if trace.staircase is not Staircase.NOT_APPLICABLE:
            told.append(f"staircase: {trace.staircase}")
    elif trace.p_sat is None:
        told = ["no steps seen"]
    return f"{trace.problem} on {trace.device_id}\n{', '.join(told)}"


def _draw_timeline(part: "SubFigure", trace: WorkGroupTrace, timeline: Timeline) -> None:
    from matplotlib.ticker import MaxNLocator

    upper, lower = part.subplots(2, 1, sharex=True, height_ratios=(3.2, 1))
    scale, unit = unit_of_time(max(timeline.finishes_s))
    _draw_bars(upper, timeline, scale)
    upper.set_ylabel("work-group number")
    upper.set_ylim(-1, len(timeline.starts_s))
    edges_s, active = average_active(
        np.asarray(timeline.starts_s), np.asarray(timeline.finishes_s), bins=_BINS
    )
    lower.stairs(active, edges_s / scale, fill=True, color="0.75")
    lower.stairs(active, edges_s / scale, color="0.35", linewidth=0.8)
    if trace.concurrency is not None:
        lower.axhline(trace.concurrency, color="tab:red", linewidth=0.8, linestyle="--")
        lower.set_ylim(0, trace.concurrency * 1.2)
    lower.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    lower.set_ylabel("active\nwork-groups")
    lower.set_xlabel(f"time after the first start ({unit})")
    lower.set_xlim(0, max(timeline.finishes_s) / scale)


def _draw_bars(axes: "Axes", timeline: Timeline, scale: float) -> None:
    """Draw a bar from start to finish for each chosen work-group, in the colour of its lane."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    chosen = choose_bars(timeline.waves)
    kind = "compute unit" if timeline.lanes_are_compute_units else "lane"
    lanes = np.asarray(timeline.lanes)[chosen]
    names = sorted(set(lanes.tolist()))
    colours = colormaps["tab10" if len(names) <= _MOST_NAMED_LANES else "turbo"]
    width = min(max(_POINTS_OF_A_PANEL / len(timeline.starts_s), _THINNEST), _THICKEST)
    for place, lane in enumerate(names):
        members = [chosen[index] for index in np.flatnonzero(lanes == lane)]
        axes.add_collection(
            LineCollection(
                _segments(timeline, members, scale),
                colors=[colours(place if len(names) <= _MOST_NAMED_LANES else place / len(names))],
                linewidths=width,
                # A bar shorter than a pixel still shows as a dot.
                capstyle="butt" if width > _THINNEST else "projecting",
                label=f"{kind} {lane}",
            )
        )
    _annotate(axes, names, kind, drawn=len(chosen), total=len(timeline.starts_s))


def _annotate(axes: "Axes", names: Sequence[int], kind: str, *, drawn: int, total: int) -> None:
    """Say what the colours mean, and how much is not drawn."""
    notes = []
    if len(names) <= _MOST_NAMED_LANES:
        axes.legend(loc="upper left", fontsize=8, framealpha=0.9)
    else:
        notes.append(f"colour: {kind} {names[0]} (blue) to {names[-1]} (red)")
    if drawn < total:
        notes.append(f"{drawn:,} of {total:,} work-groups drawn")
    note = "\n".join(notes)
    axes.text(0.99, 0.02, note, transform=axes.transAxes, ha="right", fontsize=8, color="0.3")


def _segments(
    timeline: Timeline, members: Sequence[int], scale: float
) -> list[npt.NDArray[np.float64]]:
    return [
        np.array([
            (timeline.starts_s[number] / scale, number),
            (timeline.finishes_s[number] / scale, number),
        ])
        for number in members
    ]  # fmt: skip


def _draw_steps(part: "SubFigure", trace: WorkGroupTrace, steps: StepTimes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = part.subplots()
    scale, unit = unit_of_time(max(steps.times_s))
    times = [time_s / scale for time_s in steps.times_s]
    if trace.concurrency is not None:
        edges = range(trace.concurrency, steps.work_groups[-1] + 1, trace.concurrency)
        for edge in edges:
            axes.axvline(edge + 0.5, color="0.85", linewidth=0.8)
    axes.plot(steps.work_groups, times, marker="o", markersize=4, linewidth=1)
    axes.set_ylim(0, 1.08 * max(times))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("work-groups n in the launch")
    axes.set_ylabel(f"time t(n) of the launch ({unit})")
