"""Leave one group out: each is predicted by models that have not seen any of its rows.

Hyperparameters, gate and intervals are chosen inside each fit, from the rows it is given: what is
held out has no part in them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.models.time_models import Forecast, check_coverage
from kernelcast.models.validation.report import ModelRows, ValidationReport
from kernelcast.models.versioned_files import list_versions
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

Progress = Callable[[int, int], None]
"""Is called with the fits done and all fits."""
# Fewer groups of the outer kind than this cannot show how a model does on unseen ones.
_LEAST_INNER_GROUPS = 3


class Fitted(Protocol):
    """What has learned."""

    def forecast(self, table: TrainingTable, coverage: float) -> Forecast:
        """Give times with intervals; an `InputError` where a row has none."""
        ...


class Candidate(Protocol):
    """What can be validated: a `TimeModel`, or anything that is fitted alike."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> Fitted:
        """Learn from measured launches, whose groups are held out as a whole within."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationPlan:
    """How to validate."""

    split: str = "kernel"
    """What the labels are, for the report: ``kernel``, ``application`` or ``device``."""
    is_per_device: bool = True
    """Whether each device has models of its own; False for models that learn from all devices."""
    coverage: float = DEFAULT_COVERAGE
    """Share of rows that intervals shall hold."""
    folds: int | None = None
    """Groups are held out in so many parts at most; None holds out one at a time."""
    jobs: int | None = 1
    """Processes; None takes what `joblib.parallel_config` says, a Dask cluster for instance."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """One fit: a model, and the rows it learns from and those it predicts."""

    model: Candidate
    place: int
    train: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _SharedRows:
    """What all fits are given.

    joblib maps the features into its processes, and has a Dask cluster hold once what can be
    referred to weakly and says that it is large.
    """

    table: TrainingTable
    groups: Texts

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + max(self.table.features.nbytes, 10_000)


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    place: int
    test: npt.NDArray[np.intp]
    values: Numbers
    refusal: str


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
    tasks = list(_list_tasks(known, models, groups, plan))
    if not tasks or len({one.name for one in models}) < len(models):
        msg = (
            f"validation: {len(known)} measured rows of {len(set(groups.tolist()))} groups and "
            f"models {', '.join(one.name for one in models)}; give at least three groups per "
            "device, and each model once"
        )
        raise InputError(msg)
    return _report(known, groups, plan, _run_tasks((known, groups, tasks), models, plan, progress))


def _list_tasks(
    table: TrainingTable, models: Sequence[Candidate], groups: Texts, plan: ValidationPlan
) -> Iterator[_Task]:
    everything = np.ones(len(table), dtype=np.bool_)
    devices = sorted(set(table.devices.tolist()))
    regions = [table.devices == one for one in devices] if plan.is_per_device else [everything]
    for region in regions:
        names = sorted(set(groups[region].tolist()))
        if len(names) <= 2:  # a model needs two groups to learn from
            continue
        count = min(plan.folds or len(names), len(names))
        for part in (names[place::count] for place in range(count)):
            held = np.isin(groups.astype(str), part)
            train, test = np.flatnonzero(region & ~held), np.flatnonzero(region & held)
            for place, model in enumerate(models):
                yield _Task(model, place, train, test)


_Work = tuple[TrainingTable, Texts, list[_Task]]


def _run_tasks(
    work: _Work, models: Sequence[Candidate], plan: ValidationPlan, progress: Progress | None
) -> tuple[list[ModelRows], dict[str, str]]:
    """Run all fits, and put their predictions into the rows' order."""
    import joblib

    table, groups, tasks = work
    found = np.full((len(models), 4, len(table)), np.nan)
    refused: dict[str, str] = {}
    parallel = joblib.Parallel(n_jobs=plan.jobs, return_as="generator_unordered")
    rows = _SharedRows(table, groups)
    calls = (joblib.delayed(_run)(rows, task, plan.coverage) for task in tasks)
    for done, outcome in enumerate(parallel(calls), start=1):
        found[outcome.place][:, outcome.test] = outcome.values
        if outcome.refusal:
            device = table.devices[outcome.test[0]]
            refused[f"{models[outcome.place].name} on {device}"] = outcome.refusal
        if progress is not None:
            progress(done, len(tasks))
    answers = [_list_rows(model.name, *values) for model, values in zip(models, found, strict=True)]
    return answers, dict(sorted(refused.items()))


def _run(rows: _SharedRows, task: _Task, coverage: float) -> _Outcome:
    table, groups = rows.table, rows.groups
    nothing = np.full((4, len(task.test)), np.nan)
    train = table.take(task.train)
    try:
        fitted = task.model.fit(train, _choose_inner(train, groups[task.train]))
    except InputError as error:
        return _Outcome(task.place, task.test, nothing, str(error))
    values = _predict(fitted, table.take(task.test), coverage)
    return _Outcome(task.place, task.test, values, "")


def _choose_inner(table: TrainingTable, groups: Texts) -> Texts:
    """Hold out inside what is held out outside, where there is enough of it."""
    enough = len(set(groups.tolist())) >= _LEAST_INNER_GROUPS
    return groups if enough else table.kernels


def _predict(fitted: Fitted, table: TrainingTable, coverage: float) -> Numbers:
    """Give seconds, ends and domain of rows; one by one where the model refuses some of them."""
    try:
        return _stack(fitted.forecast(table, coverage))
    except InputError:
        if len(table) == 1:
            return np.full((4, 1), np.nan)
    rows = [table.take(np.array([row])) for row in range(len(table))]
    return np.hstack([_predict(fitted, one, coverage) for one in rows])


def _stack(forecast: Forecast) -> Numbers:
    return np.vstack([forecast.seconds, forecast.low, forecast.high, forecast.in_domain])


def _report(
    table: TrainingTable,
    groups: Texts,
    plan: ValidationPlan,
    found: tuple[list[ModelRows], dict[str, str]],
) -> ValidationReport:
    from kernelcast.models.validation.scoring import list_rows, score_rows

    answers, refused = found
    rows = list_rows(table, groups, answers)
    scores, rankings = score_rows(table, rows)
    return ValidationReport(
        split=plan.split,
        coverage=plan.coverage,
        schema_id=table.schema.id,
        data_digest=table.digest,
        versions=list_versions(),
        scores=scores,
        rankings=rankings,
        refused=refused,
        rows=rows,
    )


def _list_rows(
    model: str, seconds: Numbers, low: Numbers, high: Numbers, in_domain: Numbers
) -> ModelRows:
    times = (
        tuple(one if np.isfinite(one) else None for one in column.tolist())
        for column in (seconds, low, high)
    )
    seconds_s, low_s, high_s = times
    return ModelRows(
        model=model, seconds=seconds_s, low=low_s, high=high_s,
        in_domain=tuple((in_domain == 1).tolist()),
    )  # fmt: skip
