"""Models of run time on tables of launches: what validations compare, and `train` makes.

A model is a frozen description; `fit` gives a fitted one, which predicts. Each starts from a
reference, a time that needs no learning; a learned one corrects it. The interval of both is
conformal.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.models.regression import (
    ALL_GROUPS,
    FIGURES,
    Calibration,
    FittedRegression,
    calibrate,
    fit_regression,
    make_columns,
    number_groups,
)
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

SPREAD: Final = "sampled.spread_ratio"
_NOISE_TO_DEVIATION = 1.0 / 1.2815515655446004  # half the 10-90 % spread of normal noise

REFERENCES: Final[Mapping[str, Callable[[TrainingTable], Numbers]]] = {
    "linear": lambda table: table.linear_s,
    "two_point": lambda table: np.where(
        np.isnan(table.two_point_s), table.linear_s, table.two_point_s
    ),
    "pooled": lambda table: (
        table.column("sampled.total_s") / table.column("sampled.work_groups_count")
    ) * table.work_groups,
    "analytic": lambda table: table.column("analytic.estimate_s"),
    "mwp_cwp": lambda table: table.column("analytic.mwp_cwp_s"),
    "work": lambda table: _count_work(table),
}  # fmt: skip
"""The line through the samples, the paper's formula on two points, the pooled rate, the analytic
model, Hong and Kim's, and a unit of time per unit of work."""


_ADVICE: Final = {
    "analytic": "`kernelcast calibrate` the device and `kernelcast data remodel` the rows, or give "
    "a column analytic.estimate_s",
    "work": "give work-items, or a number for every size",
}


def _count_work(table: TrainingTable) -> Numbers:
    """Return a nanosecond per unit of work; what a unit really takes is learned."""
    items = table.column("static.work_items_count")
    issued = table.column("counters.issued_instructions_per_work_item")
    found: Numbers = 1e-9 * items * np.where(np.isfinite(issued), issued, 1.0)
    sizes = [one for one in table.schema.names if one.startswith("static.size_")]
    product = np.prod([table.column(one) for one in sizes], axis=0) if sizes else np.nan
    return np.where(np.isfinite(found), found, 1e-9 * product)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeModel:
    name: str
    reference: str = "linear"
    learner: str = ""
    """Of `kernelcast.models.regression.LEARNERS`; empty: nothing corrects the reference."""
    feature_groups: tuple[str, ...] = ALL_GROUPS
    is_gated: bool = True
    """Whether corrections are shrunk that do not help unseen groups."""
    is_pooled: bool = False
    """Whether it learns from all devices at once, to serve those that were never seen."""
    remembers: bool = False
    """Whether it answers launches that were measured by what they took."""

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> "FittedModel":
        """Learn from measured launches; the order of the rows does not matter."""
        labels = table.kernels if groups is None else groups
        order = np.argsort(table.keys.astype(str), kind="stable")
        reference_s = self.refer(table)
        usable = order[np.isfinite(table.seconds * reference_s)[order]]
        if not usable.size:
            raise InputError(
                f"none of {len(table)} rows has a measured time and one that {self.name} starts "
                f"from; {self.advice}"
            )
        known, numbers = table.take(usable), number_groups(labels[usable])
        targets = np.log(known.seconds / reference_s[usable])
        rows, corrections = np.arange(len(known)), np.zeros(len(known))
        distances, correction = corrections, None
        facts: dict[str, Any] = {
            "rows": len(known),
            "groups": len(np.unique(numbers)),
            "devices": sorted({*known.devices.tolist()}),
            "kernels": sorted({*known.kernels.tolist()}),
            "data_digest": known.digest,
        }
        if self.learner:
            columns = self.make_columns(known, reference_s[usable])
            correction, rows, corrections, distances = fit_regression(
                columns, targets, numbers, self.learner, is_gated=self.is_gated
            )
        judged, parts = known.take(rows), numbers[rows]
        if len(np.unique(parts)) < 20:
            # Few groups are split by kernel: of K, the unseen one weighs 1 / (K + 1).
            names = [f"{one}/{name}" for one, name in zip(parts, judged.kernels, strict=True)]
            parts = np.unique(names, return_inverse=True)[1].astype(np.intp)
        return FittedModel(
            model=self,
            schema=known.schema,
            correction=correction,
            calibration=calibrate(
                targets[rows] - corrections,
                _list_signs(judged, corrections, distances),
                distances,
                parts,
            ),
            facts=facts,
            launches=_remember(table) if self.remembers else {},
        )

    @property
    def advice(self) -> str:
        return _ADVICE.get(self.reference, "sample them by `kernelcast collect`")

    def refer(self, table: TrainingTable) -> Numbers:
        """Return the reference's times, in seconds; NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = REFERENCES[self.reference](table)
        return np.where((found > 0) & np.isfinite(found), found, np.nan)

    def make_columns(self, table: TrainingTable, reference_s: Numbers) -> dict[str, Numbers]:
        """Return the columns that the learner sees; times are told over the reference's."""
        values = dict(zip(table.schema.names, table.features.T, strict=True))
        values |= {name: getattr(table, name) for name in FIGURES} | {"linear_s": reference_s}
        return make_columns(values, self.feature_groups)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedModel:
    model: TimeModel
    schema: FeatureSchema
    correction: FittedRegression | None
    calibration: Calibration
    facts: Mapping[str, Any]
    launches: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Median and noise of those that it remembers, by problem and device."""

    def __post_init__(self) -> None:
        if not all(s > 0 and math.isfinite(noise) for s, noise in self.launches.values()):
            raise ValueError("launches without a time")

    @property
    def name(self) -> str:
        return self.model.name

    def forecast(
        self, table: TrainingTable, coverage: float = DEFAULT_COVERAGE
    ) -> tuple[Numbers, Numbers, Numbers, npt.NDArray[np.bool_]]:
        """Predict times of whole launches, in seconds: the middle, the ends of an interval, and
        which launches are like those of the training; NaN of those without a time to start from."""
        check_coverage(coverage)
        if (table.schema.version, table.schema.names) != (self.schema.version, self.schema.names):
            raise InputError(
                f"the model was trained on features of schema {self.schema.id}, these are of "
                f"{table.schema.id}; train anew, or take a model of that schema"
            )
        reference_s = self.model.refer(table)
        corrections, distances = np.zeros(len(table)), np.zeros(len(table))
        if self.correction is not None:
            columns = self.model.make_columns(table, reference_s)
            corrections, distances = self.correction.predict(columns)
        signs = _list_signs(table, corrections, distances)
        width = self.calibration.half_width(signs, distances, coverage)
        # Launches that it remembers take what they took, with the noise that they had.
        names = zip(table.problems.tolist(), table.devices.tolist(), strict=True)
        recalled = [self.launches.get("@".join(one), (np.nan, np.nan)) for one in names]
        told, noises = np.array(recalled).reshape(-1, 2).T
        deviations = NormalDist().inv_cdf((1.0 + coverage) / 2.0) * noises * _NOISE_TO_DEVIATION
        seconds = np.where(np.isnan(told), reference_s * np.exp(corrections), told)
        factor = np.exp(np.where(np.isnan(noises), width, deviations))
        return seconds, seconds / factor, seconds * factor, (distances <= 1.0) & (seconds > 0)

    def describe(self) -> dict[str, object]:
        found: dict[str, object] = {"name": self.name, "reference": self.model.reference}
        if self.correction is not None:
            found |= {
                "learner": self.model.learner,
                "feature_groups": list(self.model.feature_groups),
                "gate": {"share": self.correction.share, "threshold": self.correction.threshold},
                "setting": dict(self.correction.setting),
                "inner_error": self.correction.inner_error,
                "columns": len(self.correction.names),
            }
        if self.launches:
            found["launches"] = len(self.launches)
        return {**found, **self.facts}


def _remember(table: TrainingTable) -> dict[str, tuple[float, float]]:
    """Return medians of launches, and the larger of the noise within runs and between repeats."""
    measured = np.isfinite(table.seconds) & (table.problems != "")
    found = {}
    for launch, some in table.frame[measured].groupby(["problems", "devices"]):
        within = float(some["noise"].median())
        between = float(np.log(some["seconds"]).std(ddof=0)) / _NOISE_TO_DEVIATION
        # Repeats of a launch on another day differ by at least so much.
        noise = max(within if np.isfinite(within) else 0.0, between, 0.02)
        found["@".join(launch)] = float(some["seconds"].median()), noise
    return found


def _list_signs(table: TrainingTable, corrections: Numbers, distances: Numbers) -> Numbers:
    """Return what an error's size may depend on, as logarithms of shape (n, signs)."""
    # Corrections and distances smaller than these make no launch easier.
    found = np.column_stack([
        table.linear_error, table.column(SPREAD), np.abs(corrections) + 0.01,
        np.maximum(distances, 0.1),
    ])  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        signs: Numbers = np.log(found)
    return signs


def check_coverage(coverage: float) -> None:
    if not 0 < coverage < 1:
        msg = f"coverage {coverage}: give a share between 0 and 1, such as {DEFAULT_COVERAGE}"
        raise InputError(msg)


HYBRID: Final = "hybrid"
_WITHOUT: Final = ("static", "compiler", "sampled", "counters", "analytic")
_HYBRID = TimeModel(name=HYBRID, learner="svr")
_MODELS: Final[Mapping[str, TimeModel]] = {
    one.name: one
    for one in (
        TimeModel(name="two_point", reference="two_point"),
        TimeModel(name="linear"),
        TimeModel(name="pooled_rate", reference="pooled"),
        TimeModel(name="analytic", reference="analytic"),
        TimeModel(name="mwp_cwp", reference="mwp_cwp"),
        TimeModel(name="history", remembers=True),
        TimeModel(name="ridge", learner="ridge"),
        TimeModel(name="gradient_boosting", learner="gradient_boosting"),
        TimeModel(name="svr", learner="svr", is_gated=False),
        *(
            replace(
                _HYBRID,
                name=f"hybrid_without_{group}",
                feature_groups=tuple(one for one in ALL_GROUPS if one != group),
            )
            for group in _WITHOUT
        ),
        _HYBRID,
        replace(_HYBRID, name="hybrid_pooled", is_pooled=True),
        TimeModel(
            name="static",
            reference="work",
            learner="svr",
            feature_groups=("static", "compiler", "counters", "analytic"),
        ),
    )
}
RIVALS: Final = (
    "two_point", "linear", "pooled_rate", "analytic", "mwp_cwp", "history", "ridge",
    "gradient_boosting", "svr", "hybrid_without_analytic", "hybrid_without_counters",
    HYBRID,
)  # fmt: skip
"""Models that a validation compares unless others are named."""
ABLATION: Final = (HYBRID, *(f"hybrid_without_{one}" for one in _WITHOUT))


def list_models() -> tuple[str, ...]:
    return tuple(_MODELS)


def make_model(name: str) -> TimeModel:
    if name not in _MODELS:
        raise InputError(f"no model is called {name!r}; choose of {', '.join(_MODELS)}")
    return _MODELS[name]
