"""What the page *Compare* shows: two models on the same launches; what feature groups are worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind, JobRecord, JobState

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.judging import (
        AblatedGroup,
        Comparison,
        DeviceComparison,
        ExplainedError,
        ValidationReport,
    )

_FIRST: Final = ("analytic", "linear")
_SECOND: Final = ("hybrid", "hybrid_pooled")
KINDS: Final = (JobKind.COMPARE, JobKind.VALIDATE)
"""Jobs whose results the page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A comparison or a validation that is done."""

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingView:
    """The page's content."""

    stored: tuple[StoredJob, ...]
    """What may be chosen, newest first."""
    chosen: str = ""
    """Id of the job that is shown; empty where there is none."""
    models: tuple[str, ...] = ()
    """Models of a validation, of which any two may be compared; empty for a comparison."""
    devices: tuple[str, ...] = ()
    comparison: "Comparison | None" = None
    device: "DeviceComparison | None" = None
    """On the chosen device."""
    ablation: "tuple[AblatedGroup, ...]" = ()
    """On the chosen device; empty where the validation left no group out."""
    explained: "tuple[ExplainedError, ...]" = ()
    """On the chosen device."""


def list_stored(jobs: Sequence[JobRecord]) -> tuple[StoredJob, ...]:
    """Give what may be shown of jobs."""
    return tuple(
        StoredJob(id=one.id, label=_name(one, one.ended_at or one.created_at))
        for one in jobs
        if one.state is JobState.DONE and one.kind in KINDS and one.result is not None
    )


def make_view(
    stored: tuple[StoredJob, ...],
    job: JobRecord,
    *,
    first: str = "",
    second: str = "",
    device: str = "",
) -> ComparingView:
    """Make the page's content."""
    from kernelcast.reports.accuracy.judging import (
        compare_validated,
        find_ablation,
        read_comparison,
        read_report,
    )

    models: tuple[str, ...] = ()
    ablation: tuple[AblatedGroup, ...] = ()
    if job.kind is JobKind.COMPARE:
        comparison = read_comparison(job.result)
    else:
        report = read_report(job.result)
        models = tuple(one.model for one in report.rows.models)
        comparison = compare_validated(report, *_choose_models(report, models, first, second))
        ablation = find_ablation(report)
    shown = _choose_device(comparison, device)
    name = "" if shown is None else shown.device
    return ComparingView(
        stored=stored,
        chosen=job.id,
        models=models,
        devices=tuple(one.device for one in comparison.devices),
        comparison=comparison,
        device=shown,
        ablation=tuple(one for one in ablation if one.device == name),
        explained=tuple(one for one in comparison.explained if one.device == name),
    )


def _name(job: JobRecord, when: datetime) -> str:
    moment = f"{when:%Y-%m-%d %H:%M} UTC"
    if job.kind is JobKind.COMPARE:
        return f"{job.options.get('first')} against {job.options.get('second')}, {moment}"
    split = job.options.get("split", "kernel")
    return f"validation by {split}, {moment}"


def _choose_models(
    report: "ValidationReport", models: Sequence[str], first: str, second: str
) -> tuple[str, str]:
    """Give the models that are wanted; else an analytic and a learned one."""
    if len(models) < 2:
        msg = (
            f"this validation, leaving one {report.split} out, has the model {models[0]} alone; "
            "start one of several models, or a comparison"
        )
        raise InputError(msg)
    answered = {
        one.model for one in report.rows.models if any(each is not None for each in one.seconds)
    }
    usual_second = next((one for one in _SECOND if one in answered), models[-1])
    second = second or usual_second
    candidates = (*_FIRST, *models)
    usual = next(one for one in candidates if one in {*models} and one != second)
    usual_first = next((one for one in candidates if one in answered and one != second), usual)
    return first or usual_first, second


def _choose_device(comparison: "Comparison", wanted: str) -> "DeviceComparison | None":
    found = {one.device: one for one in comparison.devices}
    if wanted in found:
        return found[wanted]
    return max(comparison.devices, key=lambda one: one.rows, default=None)
