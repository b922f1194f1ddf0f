"""The picture of ``kernelcast balance --plot``: who was busy when."""

from pathlib import Path

from kernelcast.records.balance import Activity, BalanceReport
from kernelcast.records.errors import InputError

_COLOURS = {
    Activity.PREPARE: "0.8",
    Activity.SAMPLE: "tab:orange",
    Activity.RUN: "tab:blue",
    Activity.COLLECT: "tab:green",
    Activity.MERGE: "tab:purple",
}


def save_timeline(path: Path, report: BalanceReport) -> None:
    """Draw the timeline of a balanced launch.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib.figure import Figure

    names = [f"{one.device_id}\n{one.share:.0%}" for one in report.shares] + ["host"]
    figure = Figure(figsize=(9.0, 1.2 + 0.8 * len(names)), layout="constrained")
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
    try:
        figure.savefig(path)
    except OSError as error:
        msg = f"{path}: the chart cannot be written: {error.strerror or error}"
        raise InputError(msg) from error
