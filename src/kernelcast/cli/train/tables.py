"""Tables and JSON of trained models and of validations."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from kernelcast.cli.terminal import make_table
from kernelcast.models.validation import (
    ClassScore,
    DeviceScore,
    ErrorSummary,
    RankingScore,
    ValidationReport,
    summarise_report,
)
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.reports.numbers import NOTHING, format_error, format_factor, format_share
from kernelcast.training.evidence_models import CalibratedEvidence
from kernelcast.training.training import TrainedModel

WORST_GROUPS = 10
"""How many of the worst groups are shown."""


def make_training_table(models: Sequence[TrainedModel]) -> Table:
    """Lay trained models out, one row per model and device."""
    table = _make_table(
        "model", "device", "rows", "kernels", "mean\nerror", "median", "90th\npercentile",
        "covered", "half\nwidth",
    )  # fmt: skip
    for one in models:
        scores = () if one.report is None else one.report.scores
        facts = (f"{one.rows:,}", str(len(one.kernels)))
        for device in one.devices:
            score = next((found for found in scores if found.device == device), None)
            table.add_row(one.name, device, *facts, *_describe_quality(score))
    return table


def trained_to_json(one: TrainedModel, place: str) -> dict[str, Any]:
    """Give what `--json` prints of a trained model."""
    return {
        "name": one.name,
        "model": one.model.name,
        "place": place,
        "devices": list(one.devices),
        "kernels": list(one.kernels),
        "rows": one.rows,
        "data_digest": one.data_digest,
        "schema": one.schema.id,
        "validation": None if one.report is None else summarise_report(one.report),
    }


def describe_evidence(one: CalibratedEvidence) -> str:
    """Say what an evidence model was calibrated with."""
    facts = one.model.facts
    return f"calibrated with {facts['rows']:,} launches of {facts['kernels']} kernels"


def evidence_to_json(one: CalibratedEvidence, place: str) -> dict[str, Any]:
    """Give what `--json` prints of an evidence model."""
    return {
        "name": one.name,
        "place": place,
        "devices": list(one.devices),
        "rows": one.model.facts["rows"],
        "calibrated": dict(one.model.facts),
    }


def list_errors(errors: ErrorSummary | None) -> list[str]:
    """Give mean, median, 90th percentile and worst."""
    if errors is None:
        return [NOTHING] * 4
    return [
        format_error(errors.mean), format_error(errors.median), format_share(errors.p90),
        format_share(errors.worst),
    ]  # fmt: skip


SCORE_COLUMNS = (
    "model", "mean\nerror", "median", "90th\npercentile", "worst", "covered", "half\nwidth",
    "in domain", "unanswered",
)  # fmt: skip


def list_score(one: DeviceScore) -> list[str]:
    """Give what tables say of a model on a device, see `SCORE_COLUMNS`."""
    shares = (one.coverage, one.half_width, one.in_domain)
    return [
        one.model, *list_errors(one.errors), *map(format_share, shares), str(one.unanswered)
    ]  # fmt: skip


def make_score_table(report: ValidationReport, device: str) -> Table:
    """Lay out every model's errors on a device, in the order the models were named."""
    scores = _scores_of(report, device)
    noise = next((one.noise for one in scores if one.noise is not None), None)
    table = make_table(
        *SCORE_COLUMNS, right=SCORE_COLUMNS[1:], caption=f"noise floor: {format_error(noise)}"
    )
    for one in scores:
        table.add_row(*list_score(one))
    return table


def make_class_table(report: ValidationReport, device: str) -> Table:
    """Lay out how each model changes what the linear model does well or badly (Table 3)."""
    scores = list(_scores_of(report, device))
    headings = [_name_class(one) for one in scores[0].classes] if scores else []
    table = _make_table("model", *headings)
    for one in scores:
        table.add_row(one.model, *map(_describe_class, one.classes))
    return table


RANKING_COLUMNS = (
    "model",
    "launches",
    "differing by\nover 10 %",
    "fastest\nnamed",
    "mean\nregret",
    "worst\nregret",
)


def list_ranking(one: RankingScore) -> list[str]:
    """Give what tables say of how well a model ranks devices, see `RANKING_COLUMNS`."""
    return [
        one.model, str(one.problems), str(one.differing), format_share(one.top_1),
        format_factor(one.mean_regret), format_factor(one.worst_regret),
    ]  # fmt: skip


def make_ranking_table(rankings: Iterable[RankingScore]) -> Table:
    """Lay out how well models tell which device is fastest."""
    table = make_table(*RANKING_COLUMNS, right=RANKING_COLUMNS[1:])
    for one in rankings:
        table.add_row(*list_ranking(one))
    return table


def make_worst_table(score: DeviceScore, split: str) -> Table:
    """Lay out the groups with the largest mean errors."""
    table = _make_table(split, "rows", "mean\nerror", "linear\nmodel")
    for one in score.groups[:WORST_GROUPS]:
        table.add_row(
            one.group, str(one.rows), format_share(one.error), format_share(one.linear_error)
        )
    return table


def make_point_table(points: Sequence[SamplingPointScore]) -> Table:
    """Lay out the linear model's errors over sampling points (Fig. 15)."""
    table = _make_table(
        "device", "sampling\npoints", "mean\nerror", "median", "90th\npercentile", "cost", "rows"
    )
    for one in points:
        numbers = (one.mean, one.median, one.p90, one.cost)
        table.add_row(one.device, one.label, *map(format_share, numbers), str(one.rows))
    return table


def point_to_json(one: SamplingPointScore) -> dict[str, Any]:
    """Give what files hold of a choice of sampling points."""
    return {name: getattr(one, name) for name in one.__slots__}


def _make_table(first: str, *headings: str) -> Table:
    texts = {"device", "sampling\npoints"}
    return make_table(first, *headings, right=set(headings) - texts)


def _scores_of(report: ValidationReport, device: str) -> list[DeviceScore]:
    return [one for one in report.scores if one.device == device]


def _describe_quality(score: DeviceScore | None) -> list[str]:
    if score is None:
        return [NOTHING] * 5
    mean, median, p90, _ = list_errors(score.errors)
    return [mean, median, p90, format_share(score.coverage), format_share(score.half_width)]


def _name_class(one: ClassScore) -> str:
    """Name the range of the linear model's errors."""
    if one.high is None:
        return f"linear over\n{one.low * 100:.0f} %"
    return f"linear\n{one.low * 100:.0f}-{one.high * 100:.0f} %"


def _describe_class(one: ClassScore) -> str:
    if one.linear_error is None or one.error is None:
        return NOTHING
    return f"{one.linear_error * 100:.1f} -> {one.error * 100:.1f} % ({one.groups})"
