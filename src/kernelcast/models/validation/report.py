"""Leave one group out: each is predicted by models that have not seen any of its rows, and scored.

Hyperparameters, gate and intervals are chosen inside each fit, from the rows it is given: what is
held out has no part in them. What is found are records that survive JSON, and so do trained models
with their reports: numbers and texts only, so that nothing in a file is executed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.models.time_models import FittedModel, TimeModel, check_coverage, make_model
from kernelcast.models.versioned_files import CONVERTER, Document, ModelFileError, list_versions
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.plain import pick
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

if TYPE_CHECKING:  # slow to load
    import pandas as pd

Rows: TypeAlias = tuple[Mapping[str, Any], ...]
"""A table, a mapping by columns for each row."""
Errors: TypeAlias = Mapping[str, Any]
"""Number of ``rows``, the arithmetic ``mean``, as in the paper, and quantiles of their errors:
``median``, ``p90`` and ``worst``."""


def summarise_errors(errors: npt.NDArray[np.float64]) -> Errors | None:
    """Summarise errors |predicted - measured| / measured over rows; None where there are none."""
    if not errors.size:
        return None
    return {
        "rows": len(errors), "mean": float(errors.mean()), "median": float(np.median(errors)),
        "p90": float(np.quantile(errors, 0.9)), "worst": float(errors.max()),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceScore:
    model: str
    device: str
    errors: Errors | None
    unanswered: int
    classes: Rows
    """Groups that the linear model predicts about equally well (the paper's Table 3): ``low`` and
    ``high`` of its mean error (None: no end), number of ``groups``, and the means of their mean
    errors, ``linear_error`` and ``error``, None without groups."""
    groups: Rows
    """Every ``group``, worst first: ``rows``, ``error`` and ``linear_error``."""
    noise: float | None
    """Mean noise of the measurements: half the 10-90 % spread over the median."""
    coverage: float | None
    half_width: float | None
    """Median of the factor between the middle and the ends of intervals, less 1."""
    in_domain: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedRows:
    """What was predicted, row by row, for plots and comparisons."""

    keys: tuple[str, ...]
    groups: tuple[str, ...]
    kernels: tuple[str, ...]
    devices: tuple[str, ...]
    """Labels; groups are those held out."""
    measured_s: tuple[float, ...]
    models: Rows
    """Answers of each ``model``, in the order of the rows: lists of ``seconds``, ``low`` and
    ``high``, None where it had no answer, and ``in_domain``."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        launches = pd.DataFrame({
            "key": self.keys, "group": self.groups, "kernel": self.kernels, "device": self.devices,
            "measured_s": np.array(self.measured_s, dtype=np.float64),
        })  # fmt: skip
        parts = [
            launches.assign(
                model=one["model"],
                predicted_s=np.array(one["seconds"], dtype=np.float64),
                low_s=np.array(one["low"], dtype=np.float64),
                high_s=np.array(one["high"], dtype=np.float64),
                in_domain=np.array(one["in_domain"], dtype=np.bool_),
            )
            for one in self.models
        ]
        found = pd.concat(parts, ignore_index=True)
        error = (found["predicted_s"] - found["measured_s"]).abs() / found["measured_s"]
        return found.assign(error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    split: str
    coverage: float
    schema_id: str
    data_digest: str
    versions: Mapping[str, str]
    scores: tuple[DeviceScore, ...]
    rankings: Rows
    """How well each ``model`` tells which device is fastest: ``problems``, launches measured on
    several devices; ``differing``, those in which the fastest leads by more than 10 %; ``top_1``,
    the share of these in which the model names it; ``mean_regret`` and ``worst_regret``, time on
    the device that the model names over that on the fastest, over all problems."""
    refused: Mapping[str, str]
    """Why a model could not be trained, by its name and device."""
    rows: ValidatedRows

    @property
    def devices(self) -> list[str]:
        return sorted({one.device for one in self.scores})

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(one["model"] for one in self.rows.models)

    def score(self, model: str, device: str) -> DeviceScore:
        for one in self.scores:
            if (one.model, one.device) == (model, device):
                return one
        known = ", ".join(sorted({f"{one.model} on {one.device}" for one in self.scores}))
        raise InputError(f"report: no score of {model} on {device}; there are {known}")


def summarise_report(report: ValidationReport) -> list[dict[str, Any]]:
    """Return an object per model and device of a report, without its rows."""
    return [
        {
            **pick(report, "split", coverage_wanted="coverage"),
            **pick(one, "model", "device", "unanswered", "noise", "coverage", "half_width"),
            **(one.errors or {"rows": 0, **dict.fromkeys(("mean", "median", "p90", "worst"))}),
        }
        for one in report.scores
    ]


_DOCUMENT = Document(kind=ValidationReport, what="report", header={"format": 1})
report_to_json, report_from_json = _DOCUMENT.write, _DOCUMENT.read


# A model of the catalogue is its name.
CONVERTER.register_unstructure_hook(TimeModel, lambda model: model.name)
CONVERTER.register_structure_hook(TimeModel, lambda name, _: make_model(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model as `train` makes it and a file holds it; its facts say what it has learned from."""

    name: str
    """What it is published under: ``model/device``, or the model alone where it serves all."""
    model: FittedModel
    report: ValidationReport | None = None
    samplers: tuple[int, ...] = ()
    """Revisions of the samplers that its rows are of; none where they are not known."""
    versions: Mapping[str, str] = field(default_factory=list_versions)

    def require(self, schema: FeatureSchema | None, sampler: int) -> None:
        """Refuse features that it does not know, and samples of another sampler."""
        found = self.model.schema
        if schema is not None and not (
            schema.version == found.version and {*found.names} <= {*schema.names}
        ):
            raise ModelFileError(
                f"{self.name}: the model takes features of schema {found.id}, not {schema.id}; "
                "train it anew on data of that schema"
            )
        if self.samplers and self.samplers != (sampler,):
            raise ModelFileError(
                f"{self.name}: the model has learned from samples of revision "
                f"{', '.join(map(str, self.samplers))} of the sampler, not {sampler}; train it "
                "anew on rows collected with that"
            )

    def describe(self) -> dict[str, Any]:
        return {
            "schema": self.model.schema.id,
            "features": list(self.model.schema.names),
            "learned": self.model.describe(),
            "trained_with": dict(self.versions),
            "validation": None if self.report is None else json.loads(report_to_json(self.report)),
        }


_MODELS = Document(
    kind=StoredModel, what="model", header={"format": "kernelcast model 3"},
    advice="train the model anew",
)  # fmt: skip


def write_model(stored: StoredModel) -> str:
    model = stored.model
    if make_model(model.name) != model.model:
        msg = f"model {model.name}: differs from the catalogue's of that name; it cannot be stored"
        raise InputError(msg)
    return _MODELS.write(stored)


read_model = _MODELS.read


Report = Callable[[int, int], None]
_Rows = npt.NDArray[np.intp]


def validate(  # noqa: PLR0913 - what is validated, how it is divided, and who does it
    table: TrainingTable,
    models: Sequence[TimeModel],
    labels: Texts,
    *,
    split: str = "kernel",
    is_per_device: bool = True,
    coverage: float = DEFAULT_COVERAGE,
    folds: int | None = None,
    jobs: int | None = 1,
    report: Report = lambda _, __: None,
) -> ValidationReport:
    """Hold each group out once, or in so many parts at most, and predict it.

    Parameters
    ----------
    table : TrainingTable
        Rows without a measured time are left out.
    labels : ndarray of shape (n,)
        Group of each row; `split` names for the report what they are, such as ``kernel``.
    is_per_device : bool
        Whether each device has models of its own; False for models that learn from all devices.
    jobs : int, optional
        Processes; None takes what `joblib.parallel_config` says, a Dask cluster for instance.
    """
    check_coverage(coverage)
    order = np.argsort(table.keys.astype(str), kind="stable")
    rows = order[np.isfinite(table.seconds[order])]
    known, groups = table.take(rows), labels[rows]
    devices = sorted(set(known.devices.tolist()))
    everything = np.ones(len(known), dtype=np.bool_)
    parts: list[tuple[_Rows, _Rows]] = []
    for region in [known.devices == one for one in devices] if is_per_device else [everything]:
        names = sorted(set(groups[region].tolist()))
        count = min(folds or len(names), len(names))
        # A model needs two groups to learn from.
        for some in (names[place::count] for place in range(count if len(names) > 2 else 0)):
            held = np.isin(groups.astype(str), some)
            parts.append((np.flatnonzero(region & ~held), np.flatnonzero(region & held)))
    if not parts or len({one.name for one in models}) < len(models):
        raise InputError(
            f"validation: {len(known)} measured rows of {len(set(groups.tolist()))} groups and "
            f"models {', '.join(one.name for one in models)}; give at least three groups per "
            "device, and each model once"
        )
    import joblib

    # Run all fits, and put their predictions into the rows' order.
    found = np.full((len(models), 4, len(known)), np.nan)
    refused: dict[str, str] = {}
    places = {one.name: n for n, one in enumerate(models)}
    calls = [
        joblib.delayed(_run)(known, groups, model, train, test, coverage)
        for train, test in parts
        for model in models
    ]
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    for done, (name, test, values, refusal) in enumerate(parallel(calls), start=1):
        found[places[name]][:, test] = values
        if refusal:
            refused[f"{name} on {known.devices[test[0]]}"] = refusal
        report(done, len(calls))
    answers = []
    for model, (*times, in_domain) in zip(models, found, strict=True):
        seconds, low, high = (
            [one if np.isfinite(one) else None for one in column.tolist()] for column in times
        )
        answers.append({
            "model": model.name, "seconds": seconds, "low": low, "high": high,
            "in_domain": (in_domain == 1).tolist(),
        })  # fmt: skip
    validated = ValidatedRows(
        keys=tuple(known.keys), groups=tuple(groups), kernels=tuple(known.kernels),
        devices=tuple(known.devices), measured_s=tuple(known.seconds.tolist()),
        models=tuple(answers),
    )  # fmt: skip
    scores, rankings = score_rows(known, validated)
    return ValidationReport(
        split=split,
        coverage=coverage,
        schema_id=known.schema.id,
        data_digest=known.digest,
        versions=list_versions(),
        scores=scores,
        rankings=rankings,
        refused=dict(sorted(refused.items())),
        rows=validated,
    )


def _run(
    table: TrainingTable,
    labels: Texts,
    model: TimeModel,
    train: _Rows,
    test: _Rows,
    coverage: float,
) -> tuple[str, _Rows, Numbers, str]:
    """Return the model's name, the rows that it was to predict, its answers, why it has none."""
    seen, groups = table.take(train), labels[train]
    try:
        # Hold out inside what is held out outside, where there is enough of it: fewer groups of the
        # outer kind cannot show how a model does on unseen ones.
        enough = len(set(groups.tolist())) >= 3
        fitted = model.fit(seen, groups if enough else seen.kernels)
    except InputError as error:
        return model.name, test, np.full((4, len(test)), np.nan), str(error)
    return model.name, test, np.vstack(fitted.forecast(table.take(test), coverage)), ""


CLASSES = ((0.0, 0.05), (0.05, 0.1), (0.1, None))
"""The error classes of the paper's Table 3."""


def score_rows(table: TrainingTable, rows: ValidatedRows) -> tuple[tuple[DeviceScore, ...], Rows]:
    linear = np.abs(table.linear_s - table.seconds) / table.seconds
    columns = {"linear_error": linear, "noise": table.noise, "problem": table.problems}
    count = len(rows.models)
    frame = rows.to_frame().assign(**{name: np.tile(one, count) for name, one in columns.items()})
    scores: list[DeviceScore] = []
    rankings = []
    for model in (one["model"] for one in rows.models):
        of_model = frame[frame["model"] == model]
        for device in sorted(set(rows.devices)):
            own = of_model[of_model["device"] == device]
            known = own[own["error"].notna()]
            groups = known.groupby("group").agg(
                rows=("error", "size"), error=("error", "mean"),
                linear_error=("linear_error", "mean"),
            )  # fmt: skip
            inside = known["measured_s"].between(known["low_s"], known["high_s"])
            width = (known["high_s"] / known["low_s"]) ** 0.5 - 1
            worst_first = groups.sort_values("error", ascending=False, kind="stable")
            scores.append(DeviceScore(
                model=model,
                device=device,
                errors=summarise_errors(known["error"].to_numpy()),
                unanswered=len(own) - len(known),
                classes=average_classes(groups, "linear_error", "error"),
                groups=tuple(list_known(worst_first.reset_index())),
                noise=mean_of(own["noise"]),
                coverage=mean_of(inside),
                half_width=None if known.empty else float(width.median()),
                in_domain=mean_of(known["in_domain"]),
            ))  # fmt: skip
        # Score which device the model would choose, where launches ran on several.
        known = of_model[(of_model["problem"] != "") & of_model["error"].notna()]
        known = known[known.groupby("problem")["device"].transform("nunique") > 1]
        if known.empty:
            continue
        launches = known.groupby("problem")
        chosen = known.loc[launches["predicted_s"].idxmin()].set_index("problem")["measured_s"]
        best = launches["measured_s"].min()
        second = known.sort_values("measured_s").groupby("problem")["measured_s"].nth(1)
        second = second.set_axis(known.loc[second.index, "problem"]).reindex(best.index)
        is_differing = (second > 1.1 * best).to_numpy()
        regret: pd.Series[float] = chosen / best
        rankings.append({
            "model": model, "problems": len(regret), "differing": int(is_differing.sum()),
            "top_1": mean_of(regret[is_differing] == 1.0), "mean_regret": float(regret.mean()),
            "worst_regret": float(regret.max()),
        })  # fmt: skip
    return tuple(scores), tuple(rankings)


def average_classes(groups: "pd.DataFrame", *columns: str) -> Rows:
    """Average columns over the groups of each class."""
    error = groups["linear_error"]
    found = []
    for low, high in CLASSES:
        some = groups[(error >= low) & (error < (np.inf if high is None else high))]
        means = {name: mean_of(some[name]) for name in columns}
        found.append({"low": low, "high": high, "groups": len(some), **means})
    return tuple(found)


def list_known(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """List the rows of a table by its columns; None stands for what is not known."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def mean_of(values: "pd.Series[float] | pd.Series[bool]") -> float | None:
    """Return the mean of what is known, None where nothing is."""
    known = values.dropna()
    return None if known.empty else float(known.mean())
