"""Reports of tuning as JSON, and as the auto-tuning community's T4 results."""

from datetime import UTC, datetime
from typing import Any

from kernelcast.tuning.report import TunedConfiguration, TuneFailure, TuneReport

T4_VERSION = "1.0.0"
_MILLISECOND = 1e-3


def report_to_json(report: TuneReport | TuneFailure, *, top: int | None = None) -> dict[str, Any]:
    """Give a report as plain values; times are in seconds.

    Parameters
    ----------
    top : int, optional
        Configurations to list; all when left out.
    """
    head = {"problem": report.problem, "device": report.device, "device_id": report.device_id}
    if isinstance(report, TuneFailure):
        return {**head, "error_message": report.message}
    pick = report.pick
    return {
        **head,
        "kernel": report.kernel,
        "models": report.models.value,
        "searched": list(report.names),
        "configurations_total": len(report.configurations),
        "configurations_valid": report.valid_count,
        "pick": None if pick is None else _describe(pick),
        "configurations": [_describe(one) for one in report.configurations[:top]],
        "models_seconds": report.models_s,
        "sampling_seconds": report.sampling_s,
        "measuring_seconds": report.measuring_s,
        "warnings": list(report.warnings),
    }


def report_to_t4(report: TuneReport) -> dict[str, Any]:
    """Give measured configurations and those that were refused in the T4 format.

    Run times are in milliseconds, as Kernel Tuner writes them. Configurations that were only
    predicted are no results and are left out.
    """
    return {
        "schema_version": T4_VERSION,
        "metadata": {"timeunit": "milliseconds"},
        "results": [
            _as_result(one)
            for one in report.configurations
            if one.runs_s or (one.obstacle and one.local_size)
        ],
    }


def _describe(one: TunedConfiguration) -> dict[str, Any]:
    return {
        "parameters": dict(one.parameters),
        "global_size": list(one.global_size),
        "local_size": list(one.local_size),
        "build_options": list(one.build_options),
        "seconds": one.expected_s,
        "predicted_seconds": one.predicted_s,
        "sampled_seconds": one.sampled_s,
        "measured_seconds": one.measured_s,
        "measured_runs": list(one.runs_s),
        "limiter": one.limiter or None,
        "obstacle": one.obstacle or None,
    }


def _as_result(one: TunedConfiguration) -> dict[str, Any]:
    measured = one.measured_s
    return {
        "timestamp": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "configuration": dict(one.parameters),
        "times": {
            "compilation": one.build_s / _MILLISECOND,
            "runtimes": [run / _MILLISECOND for run in one.runs_s],
        },
        "invalidity": "correct" if one.runs_s else _name_failure(one.obstacle),
        # Results are not compared with a reference: 0 would say that they were found wrong.
        "correctness": 1 if one.runs_s else 0,
        "measurements": (
            []
            if measured is None
            else [{"name": "time", "value": measured / _MILLISECOND, "unit": "ms"}]
        ),
        "objectives": ["time"],
    }


def _name_failure(obstacle: str) -> str:
    """Give the schema's word for why a configuration cannot be launched."""
    if "no answer within" in obstacle:
        return "timeout"
    if "compiler" in obstacle:
        return "compile"
    return "runtime" if "process" in obstacle or "could not be run" in obstacle else "constraints"
