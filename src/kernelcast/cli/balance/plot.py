"""The picture of ``kernelcast balance --plot``: who was busy when."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.records.balance import Activity, BalanceReport
from kernelcast.reports.drawing import saved_figure

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.figure import Figure

_COLOURS = {
    Activity.PREPARE: "0.8",
    Activity.SAMPLE: "tab:orange",
    Activity.RUN: "tab:blue",
    Activity.COLLECT: "tab:green",
    Activity.MERGE: "tab:purple",
}


def save_timeline(path: Path, report: BalanceReport) -> None:
    """Draw the timeline of a balanced launch."""
    names = [f"{one.device_id}\n{one.share:.0%}" for one in report.shares] + ["host"]
    with saved_figure(path, 9.0, 1.2 + 0.8 * len(names)) as figure:
        _draw(figure, report, names)


def _draw(figure: "Figure", report: BalanceReport, names: Sequence[str]) -> None:
    axes = figure.add_subplot()
    for activity, colour in _COLOURS.items():
        bars = [bar for bar in report.bars if bar.activity is activity]
        if bars:
            axes.barh(
                [bar.device for bar in bars],
                [bar.end_s - bar.start_s for bar in bars],
                left=[bar.start_s for bar in bars],
                height=0.6,
                color=colour,
                edgecolor="white",
                linewidth=0.5,
                label=str(activity),
            )
    if report.estimated_s is not None:
        end_s = report.prepare_s + report.estimated_s
        axes.axvline(end_s, color="black", linestyle="--", linewidth=1, label="estimated end")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("time (s)")
    axes.set_title(f"{report.kernel}: {report.real_s:.3g} s of work on {len(names) - 1} devices")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=6, frameon=False)
