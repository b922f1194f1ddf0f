"""Pictures of ``kernelcast model scratchpad``: breakdowns, the timeline, what-if answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.analytic.scratchpad.model import ScratchpadTerms
from kernelcast.analytic.scratchpad.timeline import Timeline, plan_timeline
from kernelcast.analytic.scratchpad.what_if import CpeSweep, GranularityStep
from kernelcast.reports.drawing import saved_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    "T_gload": "#ee6677", "T_DMA": "#4477aa", "T_comp": "#ccbb44", "T_overlap": "#bbbbbb",
}  # fmt: skip
_BLOCKS = {"copy in": "#4477aa", "compute": "#ccbb44", "copy out": "#66ccee"}
_MICROSECONDS = 1e6


def draw_kernels(path: Path, found: Sequence[ScratchpadTerms]) -> None:
    """Draw the breakdown of kernels (Fig. 6), and of a single one its timeline (Fig. 4).

    Several kernels are drawn in shares of their times, since those may differ much.
    """
    only = found[0] if len(found) == 1 and found[0].dma.requests else None
    width = 12.5 if only else max(5.5, 1.2 * len(found) + 3.5)
    with saved_figure(path, width, 4.8, dpi=120) as figure:
        if only is None:
            names = [one.kernel.name for one in found]
            _stack(figure.add_subplot(), found, names, is_normalised=len(found) > 1)
            return
        bars, blocks = figure.subplots(1, 2, width_ratios=(1, 2.4))
        _stack(bars, found, [only.kernel.name])
        _draw_timeline(blocks, plan_timeline(only), only)


def draw_granularity(path: Path, steps: Sequence[GranularityStep]) -> None:
    """Draw the breakdown over the size of DMA requests (Fig. 7)."""
    with saved_figure(path, max(6.0, 1.1 * len(steps) + 3.5), 4.8, dpi=120) as figure:
        axes = figure.add_subplot()
        labels = [f"1/{one.parts}\n{one.smallest_bytes:,.0f} B" for one in steps]
        _stack(axes, [one.terms for one in steps], labels)
        axes.set_xlabel("size of the DMA requests, and bytes of the smallest copy")
        axes.set_title(f"{steps[0].terms.kernel.name}: smaller DMA requests")


def draw_cpes(path: Path, sweep: CpeSweep) -> None:
    """Draw time (Fig. 9) and breakdown (Fig. 10) over the number of active CPEs."""
    points = sweep.points
    with saved_figure(path, max(7.0, 0.75 * len(points) + 3.5), 7.2, dpi=120) as figure:
        times, parts = figure.subplots(2, 1)
        _draw_times(times, sweep)
        _stack(parts, [one.terms for one in points], [str(one.active_cpes) for one in points])
        parts.set_xlabel("active CPEs")


def _draw_times(axes: "Axes", sweep: CpeSweep) -> None:
    """Draw the time over the number of CPEs, with the best of all and of one core group."""
    counts = [one.active_cpes for one in sweep.points]
    totals = [one.terms.t_total_s * _MICROSECONDS for one in sweep.points]
    axes.plot(counts, totals, "k.-", label="T_total")
    marked = {"fastest": sweep.best, "fastest of one core group": sweep.best_of_one_group}
    for (label, one), colour in zip(marked.items(), ("#228833", "#ee6677"), strict=True):
        if one is not None and (one is not sweep.best or label == "fastest"):
            axes.plot(
                one.active_cpes, one.terms.t_total_s * _MICROSECONDS, "o", color=colour,
                markersize=9, label=f"{label}: {one.active_cpes} CPEs",
            )  # fmt: skip
    axes.set_xlabel("active CPEs")
    axes.set_ylabel("time (us)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    axes.set_title(f"{sweep.best.terms.kernel.name}: number of active CPEs")


def _stack(
    axes: "Axes",
    found: Sequence[ScratchpadTerms],
    labels: Sequence[str],
    *,
    is_normalised: bool = False,
) -> None:
    """Stack the parts of each time above zero, what overlaps below, and mark the total."""
    scales = [1 / one.t_total_s if is_normalised else _MICROSECONDS for one in found]
    parts = {
        "T_gload": [one.t_g_s for one in found],
        "T_DMA": [one.t_dma_s for one in found],
        "T_comp": [one.t_comp_s for one in found],
        "T_overlap": [-one.t_overlap_s for one in found],
    }
    places = range(len(found))
    bottom = [0.0] * len(found)
    for name, seconds in parts.items():
        if not any(seconds):
            continue
        heights = [one * scale for one, scale in zip(seconds, scales, strict=True)]
        is_hidden = name == "T_overlap"
        axes.bar(
            places, heights, 0.62, bottom=0 if is_hidden else bottom, label=name,
            color=_COLOURS[name], hatch="///" if is_hidden else None,
        )  # fmt: skip
        if not is_hidden:
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    totals = [one.t_total_s * scale for one, scale in zip(found, scales, strict=True)]
    axes.plot(places, totals, "kD", markersize=5, label="T_total")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(places, labels, fontsize="small")
    axes.set_xlim(-0.7, len(found) - 0.3)
    axes.set_ylabel("time over T_total" if is_normalised else "time (us)")
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_timeline(axes: "Axes", plan: Timeline, terms: ScratchpadTerms) -> None:
    """Draw what each virtual group does, the first at the top."""
    for row, group in enumerate(plan.groups):
        spans = (group.copy_in, group.compute, group.copy_out)
        for (name, colour), (begin, end) in zip(_BLOCKS.items(), spans, strict=True):
            axes.barh(
                row, (end - begin) * _MICROSECONDS, left=begin * _MICROSECONDS, height=0.8,
                color=colour, edgecolor="white", linewidth=0.5, label=name if not row else None,
            )  # fmt: skip
    if plan.idle_s > 0:
        first, last = plan.groups[-1].copy_in[1], plan.groups[0].copy_out[0]
        axes.axvspan(
            first * _MICROSECONDS, last * _MICROSECONDS, color="#ee6677", alpha=0.15,
            label="memory idles", zorder=0,
        )  # fmt: skip
    axes.set_yticks(range(len(plan.groups)), [str(row + 1) for row in range(len(plan.groups))])
    axes.invert_yaxis()
    cpes = -(-terms.kernel.active_cpes // len(plan.groups))
    axes.set_ylabel(f"virtual group, up to {cpes} CPEs each")
    axes.set_xlabel("time (us)")
    scenario = "2, memory never idles" if plan.is_fully_overlapped else "1, memory idles"
    axes.set_title(f"one of {plan.rounds:,.4g} rounds; scenario {scenario}", fontsize="medium")
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
