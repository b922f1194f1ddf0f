"""What the page *Jobs* shows of a job."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.reports.numbers import format_duration, format_error, format_points
from kernelcast.reports.presenter import Table

TITLES: Final[Mapping[JobKind, str]] = {
    JobKind.COLLECT: "Collection",
    JobKind.CALIBRATE: "Calibration",
    JobKind.TRAIN: "Training",
    JobKind.VALIDATE: "Validation",
    JobKind.COMPARE: "Comparison",
}
"""What people call a kind of job."""
_SHOWN: Final = (
    "id", "is_cancel_wanted", "created_at", "started_at", "ended_at", "created_by", "crashes",
)  # fmt: skip
Plain = Mapping[str, Any]


def make_view(job: JobRecord) -> dict[str, Any]:
    """Give a job as the page's templates show it."""
    progress = job.progress
    remaining_s = progress.get("remaining_seconds")
    is_running = job.state is JobState.RUNNING
    options = {name.replace("_", " "): _say(one) for name, one in job.options.items()}
    given = {name: one for name, one in options.items() if name != "devices"}
    asked = job.options.get("devices")
    begun = job.started_at or job.created_at
    took_s = max(((job.ended_at or datetime.now(UTC)) - begun).total_seconds(), 0.0)
    return {
        **{name: getattr(job, name) for name in _SHOWN},
        "title": TITLES[job.kind],
        "kind": job.kind.value,
        "state": job.state.value,
        "is_final": job.state.is_final,
        "has_result": job.state is JobState.DONE and job.result is not None,
        "options": list(options.items()),
        "done": progress.get("done"),
        "total": progress.get("total"),
        "stage": str(progress.get("stage", "")),
        "remaining": format_duration(remaining_s) if is_running and remaining_s is not None else "",
        "error": "" if job.error is None else str(job.error.get("message", "")),
        "devices": ", ".join(job.devices or (asked if isinstance(asked, list | tuple) else ())),
        "settings": _cut(", ".join(f"{name} {one}" for name, one in given.items() if one)),
        "duration": "" if job.started_at is None else format_duration(took_s),
    }


def tell_outcome(job: JobRecord) -> str:
    """Say in a line what a finished job did; nothing of others."""
    if job.state is JobState.FAILED:
        return "" if job.error is None else _cut(str(job.error.get("message", "")))
    result = job.result
    if job.state is not JobState.DONE or not isinstance(result, Mapping):
        return ""
    devices = result.get("devices", ())
    match job.kind:
        case JobKind.COLLECT:
            measured, kernels = (sum(one[name] for one in devices) for name in
                                 ("measured", "kernels"))  # fmt: skip
            lost = sum(len(one["failures"]) for one in devices)
            told = f"measured {measured} launches of {kernels} kernels"
            return f"{told}, {lost} failed" if lost else told
        case JobKind.CALIBRATE:
            failed_on = [one["device_id"] for one in devices if "error_message" in one]
            done = [one["device_id"] for one in devices if "error_message" not in one]
            told = f"calibrated {', '.join(done) or 'nothing'}"
            return f"{told}; failed on {', '.join(failed_on)}" if failed_on else told
        case JobKind.TRAIN:
            names = [one["name"] for one in result.get("models", ())]
            return f"published {', '.join(names) or 'no model'}"
        case JobKind.VALIDATE:
            scores = [one for one in result.get("scores", ()) if one["errors"] is not None]
            best = min(scores, key=lambda one: float(one["errors"]["mean"]), default=None)
            if best is None:
                return "no model answered"
            mean = format_error(best["errors"]["mean"])
            return f"best: {best['model']} on {best['device']}, {mean} mean"
        case JobKind.COMPARE:
            known = [one for one in devices if one["difference"] is not None]
            told = ", ".join(f"{one['device']} {format_points(one['difference'])}" for one in known)
            pair = " less ".join(result[one] for one in ("second", "first") if one in result)
            return _cut(f"{pair}, in points: {told or 'none'}")


def list_log(job: JobRecord) -> list[tuple[datetime, str]]:
    """Give what happened to a job, oldest first, as far as it was written down."""
    lines = [(job.created_at, f"asked for by {job.created_by or 'nobody known'}")]
    if job.started_at is not None:
        lines.append((job.started_at, "begun"))
    lines += [(datetime.fromisoformat(when), text) for when, text in job.progress.get("log", ())]
    if job.ended_at is not None:
        lines.append((job.ended_at, job.state.value))
    return sorted(lines, key=lambda one: one[0])


def list_tables(job: JobRecord) -> list[Table]:
    """Give what a job has come to; of validations and comparisons Accuracy shows it better."""
    if job.state is not JobState.DONE or not isinstance(job.result, Mapping):
        return []
    return [one for one in _tabulate(job.kind, job.result) if one.rows]


def _tabulate(kind: JobKind, result: Plain) -> Iterator[Table]:
    devices = result.get("devices", ())
    match kind:
        case JobKind.COLLECT:
            counts = {"kernels": "kernels", "measured": "measured", "present": "known before",
                      "disturbed": "disturbed"}  # fmt: skip
            lists = {"skipped": "left out", "failures": "failed"}
            yield Table(
                title="Launches",
                columns={"device": "text",
                         **dict.fromkeys((*counts.values(), *lists.values()), "whole")},
                rows=[
                    (one["device_id"], *(one[name] for name in counts),
                     *(len(one[name]) for name in lists))
                    for one in devices
                ],
            )  # fmt: skip
            yield _list_reasons("Launches that failed", "kernel", [
                (one["device_id"], each["kernel"], f"{each['kind']}: {each['message']}")
                for one in devices
                for each in one["failures"]
            ])  # fmt: skip
            for title, name in (("Kernels that failed", "errors"), ("Left out", "skipped")):
                yield _list_reasons(title, "kernel", _flatten(devices, name))
        case JobKind.CALIBRATE:
            done = [one for one in devices if "error_message" not in one]
            yield Table(
                title="Calibrated",
                columns={"device": "text", "microbenchmarks": "whole", "known before": "whole",
                         "failed": "whole", "took": "s"},
                rows=[
                    (one["device_id"], len(one["durations_seconds"]), len(one["resumed"]),
                     len(one["failed"]), sum(one["durations_seconds"].values()))
                    for one in done
                ],
            )  # fmt: skip
            lost = [(one["device_id"], "", one["error_message"])
                    for one in devices if "error_message" in one]  # fmt: skip
            yield _list_reasons("What failed", "microbenchmark", [*lost, *_flatten(done, "failed")])
        case JobKind.TRAIN:
            yield Table(
                title="Published models",
                columns={"model": "text", "version": "text", "rows": "whole", "kernels": "whole",
                         "devices": "text"},
                rows=[
                    (one["name"], one["version"], one["rows"], one["kernels"],
                     ", ".join(one["devices"]))
                    for one in result.get("models", ())
                ],
            )  # fmt: skip
            yield Table(
                title="What could not be trained",
                columns={"model": "text", "why": "text"},
                rows=[(name, _cut(why)) for name, why in result.get("refused", {}).items()],
            )


def _list_reasons(title: str, what: str, rows: Sequence[tuple[str, str, str]]) -> Table:
    shown = [(device, name, _cut(why)) for device, name, why in rows]
    return Table(title=title, columns=dict.fromkeys(("device", what, "why"), "text"), rows=shown)


def _flatten(devices: Sequence[Plain], name: str) -> list[tuple[str, str, str]]:
    """Give reasons that stand by kernel or microbenchmark, device by device."""
    return [(one["device_id"], each, why) for one in devices for each, why in one[name].items()]


def _say(value: object) -> str:
    """Write an option."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}\N{HORIZONTAL ELLIPSIS}"
