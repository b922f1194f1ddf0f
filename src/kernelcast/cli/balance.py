"""``kernelcast balance``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from kernelcast.balancing.balancer import Balancer, fill_buffers
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.balance import Activity, BalanceReport, MergeRule
from kernelcast.records.errors import InputError
from kernelcast.records.plain import pick
from kernelcast.records.private_files import make_folder, writing
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, make_series
from kernelcast.reports.numbers import format_range, format_seconds
from kernelcast.reports.presenter import Table, write_lines
from kernelcast.sampling.host import read_cores

_SIGNS: Final = {
    Activity.PREPARE: (".", "prepares"), Activity.SAMPLE: ("s", "samples (done work)"),
    Activity.RUN: ("#", "runs"), Activity.COLLECT: ("=", "hands over"),
    Activity.MERGE: ("m", "merges"),
}  # fmt: skip
"""How each activity is drawn on a terminal, and what it is called."""


@option.command(
    short="Run one kernel over several devices at once.",
    plot="FILE.png: Draw the timeline to FILE (png, pdf, svg); needs kernelcast[plot].",
)
def balance(
    problem_file: Path = option.argument("P.yaml"),
    device_ids: tuple[str, ...] = option.device,
    cores: str | None = option.given(
        "--cores ID=CORES,...",
        "Bind a device's process to processor cores, for example intel=0,pocl=1-3.  [default: CPU "
        "devices share the cores evenly]",
    ),
    settings: BalanceSettings = option.settings(
        first_share=option.given(
            "--first-share SHARE",
            "Part of the work that is divided by estimates; the rest is divided by measured "
            "speeds.",
        ),
        budget=option.given(
            "--budget SHARE",
            "Part of the launch that is run for estimates; it counts as done.",
        ),
        assumes_independence=option.given(
            "--independent",
            "State that no work-group reads what another one writes, where that cannot be proven.",
        ),
        seed=option.seed,
        timeout_s=option.given(
            "--timeout SECONDS", "Give up a device that shows no sign of life for this time."
        ),
    ),
    parameters: Mapping[str, int | float] = option.parameters,
    folder: Path | None = option.given(
        "--out FOLDER",
        "Write each buffer that the kernel writes to FOLDER, as .npy files.",
        type=option.FOLDER,
    ),
) -> ExitStatus:
    """Run the kernel of a problem file over several devices, so that all finish together.

    Each device runs parts of the index space, in a process of its own. A few parts tell the
    speeds; most of the rest is divided by these estimates, and what is left by measured speeds. A
    kernel whose work-groups are not independent is refused.

    Exit status: 0 when all devices took part, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    if folder is not None:
        make_folder(folder)
    places = place_by_text(device_ids, cores)
    with progress() as report:
        problem = read_problem(problem_file, parameters=parameters)
        report("filling the buffers")
        arrays = fill_buffers(problem, seed=settings.seed)
        report("looking for devices")
        with Balancer(places, settings) as balancer:
            launch = balancer.run(problem, arrays, report=report)
    table = Table.of(launch.shares, {
        "device": ("text", "device_id"),
        "cores": ("text", lambda one: ", ".join(map(str, one.cores)) or "any"),
        "alone, estimated": ("s", lambda one: (
            "failed" if one.failure else "" if one.estimated_s is None else one.estimated_s
        )),
        "interval": ("number", lambda one: (
            "" if one.failure or one.low_s is None else format_range(one.low_s, one.high_s)
        )),
        "share, estimated": ("share", lambda one: (
            "" if one.failure or one.estimated_s is None else one.estimated_share
        )),
        "share": "share", "busy": ("s", lambda one: "" if one.failure else one.real_s or ""),
    })  # fmt: skip
    present(
        balance_to_json(launch), table, *draw_timeline(launch), "",
        *write_lines("balance.txt", one=launch), figure=chart_timeline(launch),
    )  # fmt: skip
    if folder is not None:
        for (name, rule), array in zip(launch.merges.items(), arrays.values(), strict=True):
            if rule is not MergeRule.READ:
                path = folder / f"{name}.npy"
                with writing(path):
                    np.save(path, array)
    failures = [share.failure for share in launch.shares if share.failure]
    for failure in failures:
        complain(failure)
    return ExitStatus.FAILED if failures else ExitStatus.ANSWERED


def place_by_text(device_ids: Sequence[str], cores: str | None) -> list[DevicePlace]:
    places = [DevicePlace(device_id=one) for one in device_ids]
    for part in filter(None, (cores or "").split(",")):
        name, equals, text = part.partition("=")
        number = next(
            (n for n, one in enumerate(places) if one.device_id == name and not one.cores), None
        )
        if not equals or number is None:
            names = ", ".join(device_ids) or "none"
            raise InputError(f"cores {part!r}: give DEVICE=CORES with a device as named: {names}")
        places[number] = replace(places[number], cores=read_cores(text))
    return places


def balance_to_json(report: BalanceReport) -> dict[str, object]:
    return {
        **pick(
            report, "kernel", global_size="space.ndrange.global_size",
            local_size="space.ndrange.known_local_size",
            work_groups="space.ndrange.work_group_count", axis="space.axis", slabs="space.count",
            merges="merges", estimated_seconds="estimated_s", seconds="real_s",
            prepare_seconds="prepare_s", merge_seconds="merge_s", total_seconds="total_s",
        ),
        "devices": [
            {**pick(
                share, "device_id", "device", "cores", "work_groups", "share", "estimated_share",
                estimated_seconds_alone="estimated_s", low="low_s", high="high_s",
                busy_seconds="real_s",
            ), "failure": share.failure or None}
            for share in report.shares
        ],
        "timeline": [
            {"device": bar.device if bar.device < len(report.shares) else None,
             **pick(bar, "activity", "work_groups", start="start_s", end="end_s")}
            for bar in report.bars
        ],
        "notes": list(report.notes),
    }  # fmt: skip


def draw_timeline(report: BalanceReport, width: int = 72) -> list[str]:
    """Draw who was busy when, one line per device and one for the host."""
    names: list[str] = []
    for name in [*(share.device_id for share in report.shares), "host"]:  # a device may come twice
        times = sum(one == name or one.startswith(f"{name} (") for one in names)
        names.append(f"{name} ({times + 1})" if times else name)
    margin = max(map(len, names))
    end_s = max((bar.end_s for bar in report.bars), default=0.0) or 1.0
    lines = []
    for place, name in enumerate(names):
        line = [" "] * width
        own = [bar for bar in report.bars if bar.device == place]
        for bar in sorted(own, key=lambda bar: bar.start_s):
            first = min(int(bar.start_s / end_s * width), width - 1)
            stop = max(first + 1, round(bar.end_s / end_s * width))
            line[first:stop] = _SIGNS[bar.activity][0] * (min(stop, width) - first)
        lines.append(f"{name:<{margin}} |{''.join(line)}|")
    used = {bar.activity for bar in report.bars}
    key = ", ".join(" ".join(_SIGNS[activity]) for activity in Activity if activity in used)
    return [*lines, f"{'':<{margin}} 0{format_seconds(end_s):>{width}}", key]


def chart_timeline(report: BalanceReport) -> Figure:
    names = [f"{share.device_id}\n{share.share:.0%}" for share in report.shares] + ["host"]
    series = [
        Series(name=words, kind="spans", points=[
            Point(x=bar.start_s, y=bar.device, high=bar.end_s)
            for bar in report.bars if bar.activity is activity
        ])
        for activity, (_, words) in _SIGNS.items()
    ]  # fmt: skip
    if report.estimated_s is not None:
        end_s = report.prepare_s + report.estimated_s
        ends = (-0.5, len(names) - 0.5)
        series.append(make_series("estimated end", (end_s, end_s), ends, "guide"))
    chart = Chart(
        title=f"{report.kernel}: {report.real_s:.3g} s of work on {len(names) - 1} devices",
        x=Axis(title="time", unit="s"), y=Axis(title="", names=tuple(names)),
        series=tuple(one for one in series if one.points),
    )  # fmt: skip
    return Figure(charts=(chart,), heights=(1.2 + 0.8 * len(names),))
