"""Pictures of ``kernelcast model``: breakdowns, rankings, sweeps over sizes, hit rates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.analytic.gpu.hit_rates import HitRateFit
from kernelcast.launches.modelling.gpu_estimates import Configuration
from kernelcast.launches.modelling.gpu_sweeps import Sweep
from kernelcast.launches.modelling.hit_rate_points import HitRatePoint
from kernelcast.launches.modelling.transitions import Transition
from kernelcast.reports.drawing import saved_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "DRAM": "#4477aa", "L2": "#66ccee", "L1": "#228833", "fp64": "#ccbb44", "fp32": "#ccbb44",
    "latency": "#ee6677", "launch": "#bbbbbb",
}  # fmt: skip
_OTHER_COLOURS = ("#aa3377", "#882255", "#999933", "#44aa99", "#332288", "#dd7788", "#777777")
_LEAST_SHARE = 0.005
_LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}


def draw_breakdown(
    path: Path, title: str, labels: Sequence[str], found: Sequence[Configuration]
) -> None:
    """Draw each limiter's time, and the volumes per update, of some configurations."""
    with saved_figure(path, max(10.0, 2.6 * len(found) + 7), 4.6, dpi=130) as figure:
        times, volumes = figure.subplots(1, 2)
        _bar_limiters(times, labels, found)
        _bar_volumes(volumes, labels, found)
        figure.suptitle(title)


def draw_ranking(path: Path, title: str, sweeps: Sequence[tuple[str, Sweep]], shown: int) -> None:
    """Draw the limiters of the fastest configurations, one row of bars per machine."""
    widest = max(min(shown, len(sweep.configurations)) for _, sweep in sweeps)
    with saved_figure(path, max(8.0, 1.0 * widest + 3), 3.6 * len(sweeps) + 0.6, dpi=130) as figure:
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
    """Draw DRAM loads per update over a size, with the places where they climb (Fig. 23)."""
    with saved_figure(path, 8.0, 5.0, dpi=130) as figure:
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
    """Draw predicted over measured values, a panel per quantity (Fig. 13, 14, 20 and 24).

    Parameters
    ----------
    path : Path
        The picture.
    title : str
        Its title.
    points : mapping of str to (sequence of float, sequence of float)
        Measured and predicted values by the quantity's name.
    """
    with saved_figure(path, max(5.0, 3.9 * len(points)), 4.4, dpi=130) as figure:
        panels = figure.subplots(1, len(points), squeeze=False)
        for axes, (name, (measured, predicted)) in zip(panels[0], points.items(), strict=True):
            highest = 1.05 * max(*measured, *predicted)
            axes.plot([0, highest], [0, highest], color="#999999", linewidth=1)
            axes.scatter(measured, predicted, s=14)
            axes.set_xlim(0, highest)
            axes.set_ylim(0, highest)
            axes.set_title(name.replace("_", " "), fontsize="medium")
            axes.set_xlabel("measured")
            axes.set_ylabel("predicted")
            axes.set_aspect("equal")
        figure.suptitle(title)


def draw_hit_rates(
    path: Path, points: Sequence[HitRatePoint], fits: Mapping[str, HitRateFit]
) -> None:
    """Draw measured hit rates and the curves fitted to them (Fig. 12, 16 and 18)."""
    with saved_figure(path, max(5.0, 3.8 * len(fits)), 4.0, dpi=130) as figure:
        panels = figure.subplots(1, len(fits), squeeze=False)
        for axes, (name, fit) in zip(panels[0], fits.items(), strict=True):
            own = [one for one in points if one.function == name]
            over = [one.oversubscription for one in own]
            axes.scatter(over, [one.hit_rate for one in own], s=14, label="measured")
            steps = [1.05 * max(over) * number / 200 for number in range(201)]
            axes.plot(steps, [fit.rate.at(one) for one in steps], color="black", label="fit")
            axes.set_title(name)
            axes.set_xlabel("oversubscription")
            axes.set_ylabel("hit rate")
            axes.set_ylim(-0.03, 1.03)
            axes.legend(fontsize="small")


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
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _bar_volumes(axes: "Axes", labels: Sequence[str], found: Sequence[Configuration]) -> None:
    """Stack what the loads are made of, per update (Fig. 15, 19 and 22)."""
    parts = [_list_parts(one) for one in found]
    bottoms = {"L2 to L1": [0.0] * len(found), "DRAM to L2": [0.0] * len(found)}
    for key in dict.fromkeys(key for one in parts for key in one):
        boundary, name = key
        heights = [one.get(key, 0.0) for one in parts]
        if max(heights) <= 0:
            continue
        shift = -0.21 if boundary == "L2 to L1" else 0.21
        places = [place + shift for place in range(len(found))]
        is_saved = name.startswith("reused")
        bars = axes.bar(
            places, heights, 0.36, bottom=bottoms[boundary], label=f"{boundary}: {name}",
            fill=not is_saved, hatch="///" if is_saved else None, edgecolor="#444444",
            linewidth=0.5,
        )  # fmt: skip
        large = 0.04 * max(sum(one.values()) for one in parts)
        texts = [f"{one:.3g}" if one > large else "" for one in heights]
        axes.bar_label(bars, texts, label_type="center", fontsize="x-small", bbox=_LABEL_BOX)
        pairs = zip(bottoms[boundary], heights, strict=True)
        bottoms[boundary] = [one + other for one, other in pairs]
    axes.set_xticks(range(len(found)), labels, fontsize="small")
    axes.set_ylabel("loads (B/update)")
    axes.margins(y=0.08)
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _list_parts(found: Configuration) -> dict[tuple[str, str], float]:
    """Give what the loads of one configuration are made of, in bytes per update."""
    l1, wave = found.volumes.l1, found.volumes.wave
    of_group = found.volumes.work_groups / found.updates
    of_wave = wave.waves / found.updates
    missed = sum(one.shared_bytes * (1 - one.hit_rate) for one in wave.overlaps)
    again = missed + wave.capacity_load_bytes + wave.partial_store_bytes
    new = max(0.0, wave.loaded_bytes - again)
    return {
        ("L2 to L1", "compulsory"): l1.compulsory_bytes * of_group,
        ("L2 to L1", "capacity misses"): l1.capacity_bytes * of_group,
        ("DRAM to L2", "for the first time"): new * of_wave,
        ("DRAM to L2", "lost since earlier waves"): missed * of_wave,
        ("DRAM to L2", "capacity misses"): wave.capacity_load_bytes * of_wave,
        ("DRAM to L2", "partial stores"): wave.partial_store_bytes * of_wave,
        ("DRAM to L2", "reused, not loaded"): wave.reused_bytes * of_wave,
    }
