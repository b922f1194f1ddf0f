"""Leave one group out: each is predicted by models that have not seen any of its rows, and scored.

Hyperparameters, gate and intervals are chosen inside each fit, from the rows it is given: what is
held out has no part in them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from kernelcast.models.time_models import FittedModel, check_coverage
from kernelcast.models.validation.report import (
    ClassScore,
    DeviceScore,
    GroupScore,
    ModelRows,
    RankingScore,
    ValidatedRows,
    ValidationReport,
    summarise_errors,
)
from kernelcast.models.versioned_files import list_versions
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

Progress = Callable[[int, int], None]


class Candidate(Protocol):
    """What can be validated: a `TimeModel`, or anything that is fitted alike."""

    @property
    def name(self) -> str: ...

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedModel:
        """Learn from measured launches, whose groups are held out as a whole within."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationPlan:
    split: str = "kernel"
    """What the labels are, for the report: ``kernel``, ``application`` or ``device``."""
    is_per_device: bool = True
    """Whether each device has models of its own; False for models that learn from all devices."""
    coverage: float = DEFAULT_COVERAGE
    folds: int | None = None
    """Groups are held out in so many parts at most; None holds out one at a time."""
    jobs: int | None = 1
    """Processes; None takes what `joblib.parallel_config` says, a Dask cluster for instance."""


_Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _SharedRows:
    table: TrainingTable
    groups: Texts

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + max(self.table.features.nbytes, 10_000)


def validate(
    table: TrainingTable,
    models: Sequence[Candidate],
    labels: Texts,
    plan: ValidationPlan | None = None,
    progress: Progress | None = None,
) -> ValidationReport:
    """Hold each group out once and predict it."""
    plan = plan or ValidationPlan()
    check_coverage(plan.coverage)
    order = np.argsort(table.keys.astype(str), kind="stable")
    rows = order[np.isfinite(table.seconds[order])]
    known, groups = table.take(rows), labels[rows]
    devices = sorted(set(known.devices.tolist()))
    everything = np.ones(len(known), dtype=np.bool_)
    folds: list[tuple[_Rows, _Rows]] = []
    for region in [known.devices == one for one in devices] if plan.is_per_device else [everything]:
        names = sorted(set(groups[region].tolist()))
        count = min(plan.folds or len(names), len(names))
        # A model needs two groups to learn from.
        for part in (names[place::count] for place in range(count if len(names) > 2 else 0)):
            held = np.isin(groups.astype(str), part)
            folds.append((np.flatnonzero(region & ~held), np.flatnonzero(region & held)))
    if not folds or len({one.name for one in models}) < len(models):
        raise InputError(
            f"validation: {len(known)} measured rows of {len(set(groups.tolist()))} groups and "
            f"models {', '.join(one.name for one in models)}; give at least three groups per "
            "device, and each model once"
        )
    answers, refused = _run_folds(_SharedRows(known, groups), folds, models, plan, progress)
    validated = list_rows(known, groups, answers)
    scores, rankings = score_rows(known, validated)
    return ValidationReport(
        split=plan.split,
        coverage=plan.coverage,
        schema_id=known.schema.id,
        data_digest=known.digest,
        versions=list_versions(),
        scores=scores,
        rankings=rankings,
        refused=refused,
        rows=validated,
    )


def _run_folds(
    rows: _SharedRows, folds: Sequence[tuple[_Rows, _Rows]], models: Sequence[Candidate],
    plan: ValidationPlan, progress: Progress | None,
) -> tuple[list[ModelRows], dict[str, str]]:  # fmt: skip
    """Run all fits, and put their predictions into the rows' order."""
    import joblib

    devices = rows.table.devices
    found = np.full((len(models), 4, len(devices)), np.nan)
    refused: dict[str, str] = {}
    parallel = joblib.Parallel(n_jobs=plan.jobs, return_as="generator_unordered")
    calls = (
        joblib.delayed(_run)(rows, model, train, test, plan.coverage)
        for train, test in folds
        for model in models
    )
    places = {model.name: place for place, model in enumerate(models)}
    for done, (name, test, values, refusal) in enumerate(parallel(calls), start=1):
        found[places[name]][:, test] = values
        if refusal:
            refused[f"{name} on {devices[test[0]]}"] = refusal
        if progress is not None:
            progress(done, len(folds) * len(models))
    answers = []
    for model, (*times, in_domain) in zip(models, found, strict=True):
        seconds, low, high = (
            tuple(one if np.isfinite(one) else None for one in column.tolist()) for column in times
        )
        answers.append(
            ModelRows(
                model=model.name, seconds=seconds, low=low, high=high,
                in_domain=tuple((in_domain == 1).tolist()),
            )
        )  # fmt: skip
    return answers, dict(sorted(refused.items()))


def _run(
    rows: _SharedRows, model: Candidate, train: _Rows, test: _Rows, coverage: float
) -> tuple[str, _Rows, Numbers, str]:
    """Return the model's name, the rows that it was to predict, its answers, why it has none."""
    seen, groups = rows.table.take(train), rows.groups[train]
    try:
        # Hold out inside what is held out outside, where there is enough of it: fewer groups of the
        # outer kind cannot show how a model does on unseen ones.
        enough = len(set(groups.tolist())) >= 3
        fitted = model.fit(seen, groups if enough else seen.kernels)
    except InputError as error:
        return model.name, test, np.full((4, len(test)), np.nan), str(error)
    return model.name, test, _predict(fitted, rows.table.take(test), coverage), ""


def _predict(fitted: FittedModel, table: TrainingTable, coverage: float) -> Numbers:
    """Return seconds, ends and domain of rows; one by one where the model refuses some of them."""
    try:
        found = fitted.forecast(table, coverage)
        return np.vstack([found.seconds, found.low, found.high, found.in_domain])
    except InputError:
        if len(table) == 1:
            return np.full((4, 1), np.nan)
    rows = [table.take(np.array([row])) for row in range(len(table))]
    return np.hstack([_predict(fitted, one, coverage) for one in rows])


CLASSES = ((0.0, 0.05), (0.05, 0.1), (0.1, None))
"""The error classes of the paper's Table 3."""

Scores = tuple[tuple[DeviceScore, ...], tuple[RankingScore, ...]]


def list_rows(table: TrainingTable, groups: Texts, models: Sequence[ModelRows]) -> ValidatedRows:
    """Put models' answers beside the launches of a table, and the groups that were held out."""
    return ValidatedRows(
        keys=tuple(table.keys),
        groups=tuple(groups),
        kernels=tuple(table.kernels),
        devices=tuple(table.devices),
        measured_s=tuple(table.seconds.tolist()),
        models=tuple(models),
    )


def score_rows(table: TrainingTable, rows: ValidatedRows) -> Scores:
    """Score every model on every device, and in telling which device is fastest."""
    linear = np.abs(table.linear_s - table.seconds) / table.seconds
    columns = {"linear_error": linear, "noise": table.noise, "problem": table.problems}
    count = len(rows.models)
    frame = rows.to_frame().assign(**{name: np.tile(one, count) for name, one in columns.items()})
    devices = sorted(set(rows.devices))
    own = {one.model: frame[frame["model"] == one.model] for one in rows.models}
    scores = tuple(
        _score_device(name, device, some[some["device"] == device])
        for name, some in own.items()
        for device in devices
    )
    rankings = (_score_ranking(name, some) for name, some in own.items())
    return scores, tuple(one for one in rankings if one is not None)


def _score_device(model: str, device: str, rows: pd.DataFrame) -> DeviceScore:
    known = rows[rows["error"].notna()]
    groups = known.groupby("group").agg(
        rows=("error", "size"), error=("error", "mean"), linear_error=("linear_error", "mean")
    )
    inside = known["measured_s"].between(known["low_s"], known["high_s"])
    width = (known["high_s"] / known["low_s"]) ** 0.5 - 1
    worst_first = groups.sort_values("error", ascending=False, kind="stable").reset_index()
    return DeviceScore(
        model=model,
        device=device,
        errors=summarise_errors(known["error"].to_numpy()),
        unanswered=len(rows) - len(known),
        classes=tuple(
            ClassScore(low=low, high=high, groups=len(some), linear_error=linear, error=error)
            for (low, high), some in split_classes(groups)
            for linear, error in [(mean_of(some["linear_error"]), mean_of(some["error"]))]
        ),
        groups=tuple(
            GroupScore(
                group=one["group"], rows=one["rows"], error=one["error"],
                linear_error=None if np.isnan(one["linear_error"]) else one["linear_error"],
            )
            for one in worst_first.to_dict("records")
        ),
        noise=mean_of(rows["noise"]),
        coverage=mean_of(inside),
        half_width=None if known.empty else float(width.median()),
        in_domain=mean_of(known["in_domain"]),
    )  # fmt: skip


def split_classes(
    groups: pd.DataFrame,
) -> list[tuple[tuple[float, float | None], pd.DataFrame]]:
    error = groups["linear_error"]
    return [
        ((low, high), groups[(error >= low) & (error < (np.inf if high is None else high))])
        for low, high in CLASSES
    ]


def mean_of(values: "pd.Series[float] | pd.Series[bool]") -> float | None:
    """Return the mean of what is known, None where nothing is."""
    known = values.dropna()
    return None if known.empty else float(known.mean())


def _score_ranking(model: str, rows: pd.DataFrame) -> RankingScore | None:
    """Score which device a model would choose; None where no launch ran on several devices."""
    known = rows[(rows["problem"] != "") & rows["error"].notna()]
    known = known[known.groupby("problem")["device"].transform("nunique") > 1]
    if known.empty:
        return None
    launches = known.groupby("problem")
    chosen = known.loc[launches["predicted_s"].idxmin()].set_index("problem")["measured_s"]
    second = known.sort_values("measured_s").groupby("problem")["measured_s"].nth(1)
    by_problem = pd.DataFrame({
        "chosen": chosen,
        "best": launches["measured_s"].min(),
        "second": second.set_axis(known.loc[second.index, "problem"]),
    })  # fmt: skip
    regret = by_problem["chosen"] / by_problem["best"]
    differing = by_problem[by_problem["second"] > 1.1 * by_problem["best"]]
    return RankingScore(
        model=model,
        problems=len(by_problem),
        differing=len(differing),
        top_1=mean_of(differing["chosen"] == differing["best"]),
        mean_regret=float(regret.mean()),
        worst_regret=float(regret.max()),
    )
