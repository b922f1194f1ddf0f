"""What the page *Jobs* shows of a job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.numbers import NOTHING, format_duration, format_error, format_points

TITLES: Final[Mapping[JobKind, str]] = {
    JobKind.COLLECT: "Collection",
    JobKind.CALIBRATE: "Calibration",
    JobKind.TRAIN: "Training",
    JobKind.VALIDATE: "Validation",
    JobKind.COMPARE: "Comparison",
}
"""What people call a kind of job."""
_LONGEST: Final = 200
_SHOWN: Final = (
    "id", "is_cancel_wanted", "created_at", "started_at", "ended_at", "created_by", "crashes",
)  # fmt: skip
Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """Something that happened to a job."""

    when: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of a job's result."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def make_view(job: JobRecord) -> dict[str, Any]:
    """Give a job as the page's templates show it."""
    progress = job.progress
    remaining_s = progress.get("remaining_seconds")
    is_running = job.state is JobState.RUNNING
    return {
        **{name: getattr(job, name) for name in _SHOWN},
        "title": TITLES[job.kind],
        "kind": job.kind.value,
        "state": job.state.value,
        "is_final": job.state.is_final,
        "has_result": job.state is JobState.DONE and job.result is not None,
        "options": [(name.replace("_", " "), _say(one)) for name, one in job.options.items()],
        "done": progress.get("done"),
        "total": progress.get("total"),
        "stage": str(progress.get("stage", "")),
        "remaining": format_duration(remaining_s) if is_running and remaining_s is not None else "",
        "error": "" if job.error is None else str(job.error.get("message", "")),
        "devices": ", ".join(job.devices or _list_devices(job.options)),
        "settings": _cut(
            ", ".join(
                f"{name.replace('_', ' ')} {_say(one)}"
                for name, one in job.options.items()
                if name != "devices" and one not in (None, [], "")
            )
        ),
        "duration": "" if job.started_at is None else format_duration(_find_duration(job)),
    }


def _list_devices(options: Plain) -> Sequence[str]:
    found = options.get("devices")
    return [str(one) for one in found] if isinstance(found, list | tuple) else []


def _find_duration(job: JobRecord) -> float:
    """Give the seconds that a job took, or is at it."""
    begun = job.started_at or job.created_at
    return max(((job.ended_at or datetime.now(UTC)) - begun).total_seconds(), 0.0)


def tell_outcome(job: JobRecord) -> str:
    """Say in a line what a finished job did; nothing of others."""
    if job.state is JobState.FAILED:
        return "" if job.error is None else _cut(str(job.error.get("message", "")))
    if job.state is not JobState.DONE or not isinstance(job.result, Mapping):
        return ""
    return _OUTCOMES[job.kind](job.result)


def _tell_collected(result: Plain) -> str:
    devices = result.get("devices", ())
    measured, failed = (
        sum(one["measured"] for one in devices), sum(len(one["failures"]) for one in devices)
    )  # fmt: skip
    told = f"measured {measured} launches of {sum(one['kernels'] for one in devices)} kernels"
    return f"{told}, {failed} failed" if failed else told


def _tell_calibrated(result: Plain) -> str:
    devices = result.get("devices", ())
    done = [one["device_id"] for one in devices if "error_message" not in one]
    failed = [one["device_id"] for one in devices if "error_message" in one]
    told = f"calibrated {', '.join(done) or 'nothing'}"
    return f"{told}; failed on {', '.join(failed)}" if failed else told


def _tell_trained(result: Plain) -> str:
    names = [one["name"] for one in result.get("models", ())]
    return f"published {', '.join(names) or 'no model'}"


def _tell_validated(result: Plain) -> str:
    scores = [one for one in result.get("scores", ()) if one["errors"] is not None]
    best = min(scores, key=lambda one: float(one["errors"]["mean"]), default=None)
    if best is None:
        return "no model answered"
    return f"best: {best['model']} on {best['device']}, {format_error(best['errors']['mean'])} mean"


def _tell_compared(result: Plain) -> str:
    known = [one for one in result.get("devices", ()) if one["difference"] is not None]
    told = ", ".join(f"{one['device']} {format_points(one['difference'])}" for one in known)
    return _cut(f"{result.get('second')} less {result.get('first')}, in points: {told or 'none'}")


def list_log(job: JobRecord) -> tuple[LogLine, ...]:
    """Give what happened to a job, oldest first, as far as it was written down."""
    lines = [LogLine(when=job.created_at, text=f"asked for by {job.created_by or 'nobody known'}")]
    if job.started_at is not None:
        lines.append(LogLine(when=job.started_at, text="begun"))
    for when, text in job.progress.get("log", ()):
        lines.append(LogLine(when=datetime.fromisoformat(when), text=text))
    if job.ended_at is not None:
        lines.append(LogLine(when=job.ended_at, text=job.state.value))
    return tuple(sorted(lines, key=lambda one: one.when))


def list_tables(job: JobRecord) -> tuple[ResultTable, ...]:
    """Give what a job has come to as tables; none where another page shows it better."""
    if job.state is not JobState.DONE or not isinstance(job.result, Mapping):
        return ()
    make = _TABLES.get(job.kind)
    return () if make is None else tuple(one for one in make(job.result) if one.rows)


def _say(value: object) -> str:
    """Write an option.

    Examples
    --------
    >>> _say(["nbody", "triad"]), _say([]), _say(True)
    ('nbody, triad', 'all', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(one) for one in value) or "all"
    return str(value)


def _table_collected(result: Plain) -> list[ResultTable]:
    devices = result.get("devices", ())
    rows = [
        (
            one["device_id"], str(one["kernels"]), str(one["measured"]), str(one["present"]),
            str(one["disturbed"]), str(len(one["skipped"])), str(len(one["failures"])),
        )
        for one in devices
    ]  # fmt: skip
    columns = ("device", "kernels", "measured", "known before", "disturbed", "left out", "failed")
    failures = [
        (one["device_id"], each["kernel"], f"{each['kind']}: {_cut(each['message'])}")
        for one in devices
        for each in one["failures"]
    ]
    kernels = ("device", "kernel", "why")
    return [
        ResultTable("Launches", columns, rows),
        ResultTable("Launches that failed", kernels, failures),
        ResultTable("Kernels that failed", kernels, _by_kernel(devices, "errors")),
        ResultTable("What was left out", kernels, _by_kernel(devices, "skipped")),
    ]


def _by_kernel(devices: Sequence[Plain], name: str) -> list[tuple[str, ...]]:
    """Give reasons that stand by kernel, device by device."""
    return [
        (one["device_id"], kernel, _cut(why))
        for one in devices
        for kernel, why in one[name].items()
    ]


def _table_calibrated(result: Plain) -> list[ResultTable]:
    rows = []
    failed = []
    for one in result.get("devices", ()):
        if "error_message" in one:
            failed.append((one["device_id"], NOTHING, _cut(one["error_message"])))
            continue
        took = one["durations_seconds"]
        rows.append((
            one["device_id"], str(len(took)), str(len(one["resumed"])), str(len(one["failed"])),
            format_duration(sum(took.values())),
        ))  # fmt: skip
        failed += [(one["device_id"], name, _cut(why)) for name, why in one["failed"].items()]
    return [
        ResultTable(
            "Calibrated", ("device", "microbenchmarks", "known before", "failed", "took"), rows
        ),
        ResultTable("What failed", ("device", "microbenchmark", "message"), failed),
    ]


def _table_trained(result: Plain) -> list[ResultTable]:
    rows = [
        (one["name"], one["version"], str(one["rows"]), str(one["kernels"]),
         ", ".join(one["devices"]))
        for one in result.get("models", ())
    ]  # fmt: skip
    return [
        ResultTable("Published models", ("model", "version", "rows", "kernels", "devices"), rows),
        _table_refused(result),
    ]


def _table_validated(result: Plain) -> list[ResultTable]:
    scores = result.get("scores", ())
    rows = [
        (
            one["model"], one["device"], str(one["errors"]["rows"]),
            format_error(one["errors"]["mean"]), format_error(one["errors"]["median"]),
            format_error(one["noise"]),
        )
        for one in scores
        if one["errors"] is not None
    ]  # fmt: skip
    return [
        ResultTable(
            f"Errors, leaving one {result.get('split', 'kernel')} out",
            ("model", "device", "rows", "mean", "median", "noise"),
            rows,
        ),
        _table_refused(result),
    ]


def _table_refused(result: Plain) -> ResultTable:
    rows = [(name, _cut(why)) for name, why in result.get("refused", {}).items()]
    return ResultTable("What could not be trained", ("model", "why"), rows)


def _table_compared(result: Plain) -> list[ResultTable]:
    rows = [
        (
            one["device"], str(one["rows"]),
            *(format_points(one[name]) for name in ("difference", "low", "high")),
        )
        for one in result.get("devices", ())
    ]  # fmt: skip
    title = f"{result.get('second')} less {result.get('first')}, in points of mean error"
    columns = ("device", "rows", "difference", "from", "to")
    return [ResultTable(title, columns, rows)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


_TABLES: Final[Mapping[JobKind, Callable[[Plain], list[ResultTable]]]] = {
    JobKind.COLLECT: _table_collected,
    JobKind.CALIBRATE: _table_calibrated,
    JobKind.TRAIN: _table_trained,
    JobKind.VALIDATE: _table_validated,
    JobKind.COMPARE: _table_compared,
}
_OUTCOMES: Final[Mapping[JobKind, Callable[[Plain], str]]] = {
    JobKind.COLLECT: _tell_collected,
    JobKind.CALIBRATE: _tell_calibrated,
    JobKind.TRAIN: _tell_trained,
    JobKind.VALIDATE: _tell_validated,
    JobKind.COMPARE: _tell_compared,
}
