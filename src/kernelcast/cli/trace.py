"""``kernelcast trace``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, present, progress
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import prefix
from kernelcast.launches.tracing import TraceSettings, trace_on_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.plain import pick, to_plain
from kernelcast.records.work_group_trace import Staircase, StepTimes, Timeline, WorkGroupTrace
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.presenter import Table, Value, write_lines
from kernelcast.sampling.instrumented import average_active

_MOST_BARS: Final = 4000


@option.command(
    short="Show when each work-group of a kernel begins and ends.",
    plot="FILE.png: Draw the timelines to FILE (png, pdf, svg); needs kernelcast[plot].",
)  # fmt: skip
def trace(
    problem_file: Path = option.argument("P.yaml"),
    device_ids: tuple[str, ...] = option.device,
    settings: TraceSettings = option.settings(
        work_groups=option.given(
            "--work-groups N",
            "Trace about the first N work-groups: part of a row, whole rows or whole planes.  "
            "[default: all, at most 10000]",
        ),
        method=option.given(
            "--method",
            "By a clock on the device, by the steps of t(n), or by what the device offers.",
        ),
        seed=option.seed,
    ),
    parameters: Mapping[str, int | float] = option.parameters,
    timeout_s: float = option.timeout,
) -> ExitStatus:
    """Show when each work-group of a problem file's kernel begins and ends on each device.

    A copy of the kernel, in which every work-group reads a clock at its begin and end, runs on
    copies of the buffers. That shows the waves, the measured P_sat (work-groups active at once
    per compute unit) and the staircase of work-groups that share a compute unit. Where a device
    has no such clock, launches of 1, 2, 3, ... work-groups are timed instead.
    """
    with progress() as report:
        problem = read_problem(problem_file, parameters=parameters)
        collected = Collected[tuple[DeviceDescription, WorkGroupTrace | KernelcastError]]()
        with collected.until_interrupted():
            report("looking for devices")
            devices = choose_devices(device_ids)
            traced = trace_on_devices(
                problem, devices, settings=settings,
                timeout_s=timeout_s, report=prefix(report, f"{problem.name} on "),
            )  # fmt: skip
            collected.answers.extend(traced)
    rows: list[Sequence[Value]] = []
    content: list[dict[str, object]] = []
    traces = []
    for device, one in collected.answers:
        about: dict[str, object] = {
            "device": device.name, "device_id": device.id, "problem": problem.name,
            "kernel": problem.kernel.name,
        }  # fmt: skip
        if isinstance(one, KernelcastError):
            collected.failures.append((problem.name, one))
            content.append({**about, "error_message": str(one)})
            rows.append([problem.name, device.id, "failed", *[""] * 8])
            continue
        traces.append(one)
        timeline = one.outcome if isinstance(one.outcome, Timeline) else None
        steps = one.outcome if isinstance(one.outcome, StepTimes) else None
        content.append({
            **about,
            **pick(one, global_size="ndrange.global_size", local_size="ndrange.known_local_size",
                   work_groups="ndrange.work_group_count", traced_work_groups="work_groups"),
            "method": str(one.method),
            **to_plain(one, omit=(*about, "ndrange", "outcome")),
            "timeline": timeline and {**to_plain(timeline), "wave_count": timeline.wave_count},
            "steps": steps and {
                **to_plain(steps, omit=("times_s",)), "seconds": list(steps.times_s),
            },
        })  # fmt: skip
        rows.append([
            problem.name, device.id, str(one.method),
            f"{one.work_groups:,} of {one.ndrange.work_group_count:,}",
            "?" if one.concurrency is None else one.concurrency,
            "?" if one.p_sat is None else one.p_sat,
            *(["-"] * 5 if timeline is None else [
                timeline.wave_count, str(one.staircase),
                "-" if one.run_length is None else f"{one.run_length:,.1f}",
                timeline.launch_s, timeline.plain_s,
            ]),
        ])  # fmt: skip
    if not traces and all(isinstance(error, InputError) for _, error in collected.failures):
        collected.refusals, collected.failures = collected.failures, []
    table = Table(
        columns={
            "problem": "text", "device": "text", "method": "text", "work-groups": "number",
            "active\nat once": "whole", "P_sat": "whole", "waves": "whole", "staircase": "text",
            "consecutive\nper lane": "number", "time\ntraced": "s", "time\nplain": "s",
        },
        rows=rows,
    )  # fmt: skip
    charts = tuple(chart for one in traces for chart in _chart_trace(one))
    present(
        content, *([table] if rows else ()), *write_lines("trace.txt", traces=traces),
        figure=Figure(charts=charts, columns=1, heights=(4.0, 1.8)) if charts else None,
    )  # fmt: skip
    return collected.conclude()


def _chart_trace(trace: WorkGroupTrace) -> Iterator[Chart]:
    """Chart a timeline above its active work-groups, or t(n) (the paper's Fig. 5, 6 and 8)."""
    outcome = trace.outcome
    facts = [f"P_sat {trace.p_sat}", f"{trace.concurrency} work-groups active at once"]
    if isinstance(outcome, StepTimes):
        facts = facts if trace.p_sat is not None else ["no steps seen"]
        title = f"{trace.problem} on {trace.device_id}: {', '.join(facts)}"
        times = make_series("t(n)", outcome.work_groups, outcome.times_s, "line")
        edges = range(trace.concurrency or 0, outcome.work_groups[-1] + 1, trace.concurrency or 1)
        guides = [
            make_series(
                "more than are active at once", [edge + 0.5] * 2, (0.0, max(outcome.times_s)),
                "guide",
            )
            for edge in (edges if trace.concurrency else ())
        ]  # fmt: skip
        x = Axis(title="work-groups n in the launch", unit="count")
        y = Axis(title="time t(n) of the launch", unit="s")
        yield Chart(title=title, x=x, y=y, series=(times, *guides))
        return
    facts.append(f"{outcome.wave_count:,} waves")
    if trace.staircase is not Staircase.NOT_APPLICABLE:
        facts.append(f"staircase: {trace.staircase}")
    # More bars would lie on each other.
    count = len(outcome.starts_s)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _MOST_BARS)).astype(int)).tolist()
    if len(chosen) < count:
        facts.append(f"{len(chosen):,} of {count:,} work-groups drawn")
    kind = "compute unit" if outcome.lanes_are_compute_units else "lane"
    lanes: dict[int, list[int]] = {}
    for number in chosen:
        lanes.setdefault(outcome.lanes[number], []).append(number)
    time = Axis(title="time after the first start", unit="s")
    yield Chart(
        title=f"{trace.problem} on {trace.device_id}\n{', '.join(facts)}",
        x=time,
        y=Axis(title="work-group number", unit="count"),
        series=tuple(
            make_series(
                f"{kind} {lane}",
                [outcome.starts_s[one] for one in own],
                own,
                "spans",
                high=[outcome.finishes_s[one] for one in own],
            )
            for lane, own in sorted(lanes.items())
        ),
    )
    edges_s, active = average_active(
        np.asarray(outcome.starts_s), np.asarray(outcome.finishes_s), bins=300
    )
    middles_s = (edges_s[:-1] + edges_s[1:]) / 2
    series = [make_series("active", middles_s.tolist(), active.tolist(), "stack")]
    if trace.concurrency is not None:
        ends = (0.0, max(outcome.finishes_s))
        series.append(make_series("at once", ends, [trace.concurrency] * 2, "guide"))
    y = Axis(title="active work-groups", unit="count")
    yield Chart(x=time, y=y, series=tuple(series))
