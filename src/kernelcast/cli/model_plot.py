"""Pictures of ``kernelcast model``: breakdowns, rankings, sweeps over sizes, scatter."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.predictor.modelling.gpu_estimates import Configuration, Sweep
from kernelcast.predictor.modelling.transitions import Transition
from kernelcast.records.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VOLUMES = ("L2_to_L1", "L1_to_L2", "DRAM_to_L2", "L2_to_DRAM")
_COLOURS = {
    "DRAM": "#4477aa", "L2": "#66ccee", "L1": "#228833", "fp64": "#ccbb44", "fp32": "#ccbb44",
    "latency": "#ee6677", "launch": "#bbbbbb",
}  # fmt: skip
_OTHER_COLOURS = ("#aa3377", "#882255", "#999933", "#44aa99", "#332288", "#dd7788", "#777777")
_LEAST_SHARE = 0.005


def draw_breakdown(
    path: Path, title: str, labels: Sequence[str], found: Sequence[Configuration]
) -> None:
    """Draw each limiter's time, and the volumes per update, of some configurations.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _figure(path, width=max(7.0, 2.2 * len(found) + 5), height=4.6) as figure:
        times, volumes = figure.subplots(1, 2)
        _bar_limiters(times, labels, found)
        _bar_volumes(volumes, labels, found)
        figure.suptitle(title)


def draw_ranking(path: Path, title: str, sweeps: Sequence[tuple[str, Sweep]], shown: int) -> None:
    """Draw the limiters of the fastest configurations, one row of bars per machine.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    widest = max(min(shown, len(sweep.configurations)) for _, sweep in sweeps)
    with _figure(path, width=max(8.0, 1.0 * widest + 3), height=3.6 * len(sweeps) + 0.6) as figure:
        rows = figure.subplots(len(sweeps), 1, squeeze=False)
        for axes, (machine, sweep) in zip(rows[:, 0], sweeps, strict=True):
            best = sweep.configurations[:shown]
            labels = [
                "x".join(str(side) for side in one.local_size)
                + (f"\n{one.fold_text}" if one.folds else "")
                for one in best
            ]
            _bar_limiters(axes, labels, best)
            axes.set_title(f"{title} on {machine}: fastest of {len(sweep.configurations)}")


def draw_sizes(
    path: Path,
    parameter: str,
    curves: Mapping[str, Sequence[tuple[int, Configuration]]],
    transitions: Mapping[str, Transition | None],
) -> None:
    """Draw DRAM loads per update over a size, with the places where they climb (Fig. 23).

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _figure(path, width=8.0, height=5.0) as figure:
        axes = figure.subplots()
        for label, curve in curves.items():
            volumes = [one.estimate.volumes["DRAM_to_L2"] / one.updates for _, one in curve]
            [line] = axes.plot(
                [value for value, _ in curve], volumes, marker=".", linewidth=1.2, label=label
            )
            found = transitions.get(label)
            if found is not None:
                axes.axvline(found.begins, color=line.get_color(), linestyle=":", linewidth=1)
        axes.set_xlabel(parameter)
        axes.set_ylabel("DRAM loads (B/update)")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", title="dotted: where loads begin to climb")


def draw_scatter(
    path: Path, title: str, points: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> None:
    """Draw predicted over measured values, a panel for each quantity (Fig. 13, 14, 20, 24).

    Parameters
    ----------
    path : Path
        The picture.
    title : str
        Its title.
    points : mapping of str to (sequence of float, sequence of float)
        Measured and predicted values by the quantity's name.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _figure(path, width=4.2 * len(points), height=4.4) as figure:
        panels = figure.subplots(1, len(points), squeeze=False)
        for axes, (name, (measured, predicted)) in zip(panels[0], points.items(), strict=True):
            highest = 1.05 * max(*measured, *predicted)
            axes.plot([0, highest], [0, highest], color="#999999", linewidth=1)
            axes.scatter(measured, predicted, s=14)
            axes.set_xlim(0, highest)
            axes.set_ylim(0, highest)
            axes.set_xlabel(f"measured {name}")
            axes.set_ylabel(f"predicted {name}")
            axes.set_aspect("equal")
        figure.suptitle(title)


@contextmanager
def _figure(path: Path, *, width: float, height: float) -> Iterator["Figure"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        msg = f"{path}: the picture cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def _bar_limiters(axes: "Axes", labels: Sequence[str], found: Sequence[Configuration]) -> None:
    """Draw a group of bars per configuration, one per limiter, under the line of its time."""
    names = [
        name
        for name in dict.fromkeys(key for one in found for key in one.estimate.limiters)
        if any(
            one.estimate.limiters.get(name, 0) > _LEAST_SHARE * one.estimate.seconds
            for one in found
        )
    ]
    others = iter(_OTHER_COLOURS * len(names))
    width = 0.84 / max(1, len(names))
    for number, name in enumerate(names):
        places = [place - 0.42 + (number + 0.5) * width for place in range(len(found))]
        heights = [1e3 * one.estimate.limiters.get(name, 0) for one in found]
        colour = _COLOURS.get(name) or next(others)
        axes.bar(places, heights, width, label=name, color=colour)
    for place, one in enumerate(found):
        seconds = 1e3 * one.estimate.seconds
        label = "whole launch" if place == 0 else None
        axes.plot([place - 0.45, place + 0.45], [seconds] * 2, color="black", label=label)
    axes.set_xticks(range(len(found)), labels, fontsize="small")
    axes.set_ylabel("time alone (ms)")
    axes.legend(fontsize="small", ncols=2)


def _bar_volumes(axes: "Axes", labels: Sequence[str], found: Sequence[Configuration]) -> None:
    names = [name for name in _VOLUMES if any(name in one.estimate.volumes for one in found)]
    width = 0.84 / max(1, len(names))
    for number, name in enumerate(names):
        places = [place - 0.42 + (number + 0.5) * width for place in range(len(found))]
        heights = [one.estimate.volumes.get(name, 0) / one.updates for one in found]
        bars = axes.bar(places, heights, width, label=name.replace("_", " "))
        axes.bar_label(bars, fmt="%.3g", fontsize="x-small")
    axes.set_xticks(range(len(found)), labels, fontsize="small")
    axes.set_ylabel("bytes per update")
    axes.legend(fontsize="small")
