"""Answers as plain dictionaries for JSON; the keys are the program's public interface."""

import math
from collections.abc import Mapping
from dataclasses import asdict

from kernelcast.records.device import DeviceReport
from kernelcast.records.estimates import DeviceAnswer, Estimate

METHODS = ("linear", "analytic", "hybrid")
"""Keys that `estimates` always has; null where no such method has answered."""


def estimate_to_json(answer: DeviceAnswer) -> dict[str, object]:
    """Turn an answer into what `kernelcast estimate --json` prints of it.

    Parameters
    ----------
    answer : DeviceAnswer
        Of one problem on one device.

    Returns
    -------
    dict
        Strings, finite numbers, lists, dictionaries and None only; times are in seconds.
    """
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
    timer = report.timer
    return {
        **asdict(report.description),
        "max_work_item_sizes": list(report.description.max_work_item_sizes),
        "extensions": list(report.description.extensions),
        "timer": None
        if timer is None
        else {
            "event_seconds": timer.event_s,
            "host_seconds": timer.host_s,
            "agrees": timer.agrees,
        },
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
        "p_sat": saturation.p_sat.value,
        "p_sat_computed": saturation.computed,
        "p_sat_measured": saturation.measured,
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
        "in_domain": estimate.in_domain,
        "warnings": list(estimate.warnings),
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
    found = {name: value for name, value in estimates_s.items() if math.isfinite(value)}
    return dict.fromkeys(METHODS) | found
