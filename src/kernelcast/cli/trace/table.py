"""What ``kernelcast trace`` prints: a table and the sentences below it, or JSON."""

from collections.abc import Sequence

from rich.table import Table

from kernelcast.cli import terminal
from kernelcast.records.work_group_trace import StepTimes, Timeline, TraceAnswer, WorkGroupTrace
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.plain import to_plain

_COLUMNS = (
    "problem", "device", "method", "work-groups", "active\nat once", "P_sat", "waves",
    "staircase", "consecutive\nper lane", "time\ntraced", "time\nplain",
)  # fmt: skip
_TEXTS = frozenset({"problem", "device", "method", "staircase"})
_SLOWED = 1.2


def make_table(answers: Sequence[TraceAnswer]) -> Table:
    """Lay traces out, one per row; a device that failed says so, its error goes elsewhere."""
    table = terminal.make_table(*_COLUMNS, right={*_COLUMNS} - _TEXTS)
    for answer in answers:
        row = [answer.problem, answer.device_id]
        table.add_row(*row, *(_describe(answer.trace) if answer.trace else ["failed"]))
    return table


def list_remarks(answers: Sequence[TraceAnswer]) -> list[str]:
    """Say of each trace how it was made and what to keep in mind."""
    return [
        f"{answer.problem} on {answer.device_id}: {remark}"
        for answer in answers
        if answer.trace is not None
        for remark in _remark(answer.trace)
    ]


def _describe(trace: WorkGroupTrace) -> list[str]:
    total = trace.ndrange.work_group_count
    return [
        str(trace.method),
        f"{trace.work_groups:,} of {total:,}",
        "?" if trace.concurrency is None else f"{trace.concurrency:,}",
        "?" if trace.p_sat is None else f"{trace.p_sat:,}",
        *_describe_outcome(trace),
    ]


def _describe_outcome(trace: WorkGroupTrace) -> list[str]:
    """Give the cells that only a clock fills."""
    timeline = trace.outcome
    if isinstance(timeline, StepTimes):
        return ["-"] * 5
    return [
        f"{timeline.wave_count:,}",
        str(trace.staircase),
        "-" if trace.run_length is None else f"{trace.run_length:,.1f}",
        format_seconds(timeline.launch_s),
        format_seconds(timeline.plain_s),
    ]


def _remark(trace: WorkGroupTrace) -> list[str]:
    outcome = trace.outcome
    if isinstance(outcome, StepTimes):
        return [_remark_on_steps(trace, outcome)]
    remarks = [
        f"traced by {outcome.clock}, seen to tick every {format_seconds(outcome.resolution_s)}; "
        f"{trace.reason}"
    ]
    if outcome.slowdown > _SLOWED:
        remarks.append(
            f"tracing made the launch {outcome.slowdown:.1f} times as long: the work-groups are "
            "short, or the machine is busy"
        )
    return remarks


def _remark_on_steps(trace: WorkGroupTrace, steps: StepTimes) -> str:
    told = (
        f"t(n) climbs in steps of {trace.concurrency}"
        if steps.has_steps
        else "t(n) shows no steps, so nothing is known of the work-groups active at once"
    )
    return (
        f"timed launches of {steps.work_groups[0]} to {steps.work_groups[-1]} work-groups, not "
        f"traced by a clock: {trace.reason}; {told} (a probe kernel: {trace.probe_concurrency} "
        "active at once)"
    )


def trace_to_json(answer: TraceAnswer) -> dict[str, object]:
    """Turn an answer into what `kernelcast trace --json` prints of it."""
    about: dict[str, object] = {
        "device": answer.device,
        "device_id": answer.device_id,
        "problem": answer.problem,
        "kernel": answer.kernel,
    }
    if answer.trace is None:
        return {**about, "error_message": str(answer.error)}
    return {**about, **_trace_to_json(answer.trace)}


def _trace_to_json(trace: WorkGroupTrace) -> dict[str, object]:
    outcome = trace.outcome
    return {
        "global_size": list(trace.ndrange.global_size),
        "local_size": list(trace.ndrange.known_local_size),
        "work_groups": trace.ndrange.work_group_count,
        "traced_work_groups": trace.work_groups,
        "compute_units": trace.compute_units,
        "method": str(trace.method),
        "reason": trace.reason,
        "concurrency": trace.concurrency,
        "p_sat": trace.p_sat,
        "probe_concurrency": trace.probe_concurrency,
        "staircase": str(trace.staircase),
        "run_length": trace.run_length,
        "timeline": {**to_plain(outcome), "wave_count": outcome.wave_count}
        if isinstance(outcome, Timeline)
        else None,
        "steps": {**to_plain(outcome, omit=("times_seconds",)), "seconds": list(outcome.times_s)}
        if isinstance(outcome, StepTimes)
        else None,
    }
