"""Answers as plain dictionaries for JSON; the keys are the program's public interface."""

import math
from collections.abc import Mapping

from kernelcast.records.device import DeviceReport
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.explanation import Explanation
from kernelcast.reports.plain import to_plain

METHODS = ("linear", "two_point", "pooled_rate", "analytic", "hybrid", "history")
"""Keys that `estimates` always has; null where no such method has answered."""


def estimate_to_json(answer: DeviceAnswer) -> dict[str, object]:
    """Turn an answer into what `kernelcast estimate --json` prints of it."""
    if answer.estimate is None:
        return {
            "device": answer.device,
            "device_id": answer.device_id,
            "problem": answer.problem,
            "kernel": answer.kernel,
            "error_message": str(answer.error),
        }
    described = {"problem": answer.problem, **_describe(answer.estimate)}
    return {**described, **_describe_measurement(answer.estimate)}


def report_to_json(report: DeviceReport) -> dict[str, object]:
    """Turn a device's report into what `kernelcast devices --json` prints of it."""
    return {
        **to_plain(report.description),
        "timer": None if report.timer is None else to_plain(report.timer),
        "status": "ok" if report.broken_reason is None else "broken",
        "broken_reason": report.broken_reason,
    }


def _describe(estimate: Estimate) -> dict[str, object]:
    saturation = estimate.saturation
    return {
        "device": estimate.device,
        "device_id": estimate.device_id,
        "kernel": estimate.kernel,
        "global_size": list(estimate.ndrange.global_size),
        "local_size": list(estimate.ndrange.known_local_size),
        "work_groups": estimate.ndrange.work_group_count,
        "compute_units": estimate.compute_units,
        "p_sat": saturation.p_sat.value if saturation else None,
        "p_sat_computed": saturation.computed if saturation else None,
        "p_sat_measured": saturation.measured if saturation else None,
        "sample_work_groups": list(estimate.sample_work_groups),
        "sampled_work_groups": estimate.sampled_work_groups,
        "seconds": estimate.seconds,
        "low": estimate.low,
        "high": estimate.high,
        "coverage": estimate.coverage,
        "tier": str(estimate.tier),
        "limiter": estimate.limiter,
        "estimates": _list_methods(estimate.estimates_s),
        "sampling_seconds": estimate.sampling_seconds,
        "overhead_seconds": estimate.overhead_seconds,
        "compile_seconds": estimate.compile_seconds,
        "launch_seconds": estimate.launch_seconds,
        "in_domain": estimate.in_domain,
        "warnings": list(estimate.warnings),
        "explanation": explanation_to_json(estimate.explain()),
    }


def explanation_to_json(explanation: Explanation) -> dict[str, object]:
    """Turn an explanation into plain values; times are in seconds, moments ISO 8601."""
    return {
        **to_plain(explanation, omit=("methods_seconds",)),
        "methods": _list_methods(explanation.methods_s),
        "limiters": _keep_finite(explanation.limiters),
    }


def _describe_measurement(estimate: Estimate) -> dict[str, object]:
    measurement = estimate.measurement
    if measurement is None:
        return {}
    return {
        "measured_seconds": measurement.seconds,
        "measured_runs": len(measurement.durations_s),
        "noise": measurement.noise,
        "error": measurement.error_of(estimate.seconds),
    }


def _list_methods(estimates_s: Mapping[str, float]) -> dict[str, float | None]:
    """List every method's seconds; null for one that has not answered with a finite number."""
    return dict.fromkeys(METHODS) | _keep_finite(estimates_s)


def _keep_finite(times_s: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in times_s.items() if math.isfinite(seconds)}
