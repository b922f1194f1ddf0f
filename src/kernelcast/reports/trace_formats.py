"""Traces as plain dictionaries for JSON; the keys are the program's public interface."""

from kernelcast.records.work_group_trace import StepTimes, Timeline, TraceAnswer, WorkGroupTrace
from kernelcast.reports.plain import to_plain


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
    return {**about, **_describe(answer.trace)}


def _describe(trace: WorkGroupTrace) -> dict[str, object]:
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
