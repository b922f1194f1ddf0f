"""The learned model: a reference time, and a gated correction with a calibrated interval.

``log t = log t_reference + g(x) c(x)`` with the regressor's correction c and the gate g. Settings,
gate and intervals rest on predictions of groups that the regressor did not see, within the
training's own rows: a kernel that is held out from `fit` has no part in any of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import (
    FIGURES,
    ColumnPlan,
    Variant,
    gather_base,
    join_base,
    plan_columns,
)
from kernelcast.models.conformal import SPREAD, Calibration, calibrate, list_signs, take_logs
from kernelcast.models.gate import Choice, Evidence, Gate, choose
from kernelcast.models.grouping import (
    divide_groups,
    list_names,
    number_groups,
    refine_groups,
)
from kernelcast.models.learned.learner import FittedLearner, Learner, Part, Rows, State
from kernelcast.models.protocol import COVERAGE, Forecast, check_coverage, check_schema
from kernelcast.models.references import LINEAR, FittedReference, Reference, require_seconds
from kernelcast.models.space import FittedSpace, Space, fit_space
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureGroup, FeatureSchema
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

EVIDENCE_ROWS = 5000
"""Beyond so many rows, a random choice of them serves to choose settings, gate and intervals."""
# Rows at a time: what lies between stays in the cache, 2.7 times as fast as 1000 at once.
BLOCK_ROWS = 250
ALL_GROUPS = tuple(str(one) for one in FeatureGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionModel:
    """A regressor that corrects a reference."""

    name: str
    """What reports call it."""
    learner: Learner
    """The regressor."""
    feature_groups: tuple[str, ...] = ALL_GROUPS
    """What it sees."""
    variant: Variant = Variant.DEVICE
    """Features with units for one device, or ratios for devices never seen."""
    reference: Reference = field(default=LINEAR)
    """What is corrected."""
    is_gated: bool = True
    """Whether to shrink corrections that do not help unseen groups."""

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> "FittedCorrection":
        """Learn; see `kernelcast.models.protocol.TimeModel.fit`."""
        known, numbers = self._select(table, table.kernels if groups is None else groups)
        with np.errstate(invalid="ignore"):
            parts = divide_groups(numbers, self.learner.inner_folds)
            targets = np.log(known.seconds / self.reference.cross_seconds(known, parts))
        plan = plan_columns(known.schema, self.feature_groups, self.variant)
        fitted = fit_space(plan.names, plan.compute(gather_base(known)), numbers)
        picks = _choose_evidence(len(known))
        evidence, parts = self._gather_evidence(fitted, targets, numbers, picks)
        choice = choose(evidence, is_gated=self.is_gated)
        corrections = self._cross_gate(evidence, parts)
        some = known.take(picks)
        setting = self.learner.settings[choice.setting]
        return FittedCorrection(
            model=self,
            schema_id=known.schema.id,
            reference=self.reference.fit(known),
            space=fitted.space,
            learned=self.learner.fit(fitted.rows, targets, setting),
            gate=choice.gate,
            calibration=calibrate(
                evidence.targets - corrections,
                list_signs(some, corrections, evidence.domain_distance),
                evidence.domain_distance,
                refine_groups(evidence.groups, some.kernels),
            ),
            facts=_describe_training(choice, dict(setting), known, numbers),
        )

    def _gather_evidence(
        self,
        fitted: FittedSpace,
        targets: Numbers,
        groups: npt.NDArray[np.intp],
        picks: npt.NDArray[np.intp],
    ) -> tuple[Evidence, list[Part]]:
        """Predict rows out of fold, by every setting."""
        rows = fitted.rows if len(picks) == len(targets) else fitted.rows.take(picks)
        parts = divide_groups(groups[picks], self.learner.inner_folds)
        evidence = Evidence(
            corrections=self.learner.cross_predict(rows, targets[picks], parts),
            targets=targets[picks],
            domain_distance=fitted.domain_distance[picks],
            groups=groups[picks],
        )
        return evidence, parts

    def _select(
        self, table: TrainingTable, labels: Texts
    ) -> tuple[TrainingTable, npt.NDArray[np.intp]]:
        """Give rows that can be learned from, by key, and the numbers of their groups."""
        order = np.argsort(table.keys.astype(str), kind="stable")
        measured = order[np.isfinite(table.seconds[order])]
        usable = measured[self.reference.knows(table.take(measured))]
        return table.take(usable), number_groups(labels[usable])

    def _cross_gate(self, evidence: Evidence, parts: Sequence[Part]) -> Numbers:
        """Give gated corrections of each part by the setting and the gate of the others."""
        found = np.zeros_like(evidence.targets)
        for part in parts:
            is_test = np.zeros(len(found), dtype=np.bool_)
            is_test[part.test] = True
            choice = choose(evidence.take(~is_test), is_gated=self.is_gated)
            found[part.test] = choice.gate.apply(
                evidence.corrections[choice.setting, part.test], evidence.domain_distance[part.test]
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCorrection:
    """A correction that was learned; made by `CorrectionModel.fit`."""

    model: CorrectionModel
    schema_id: str
    reference: FittedReference
    space: Space
    learned: FittedLearner
    gate: Gate
    calibration: Calibration
    facts: dict[str, object]

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.model.name

    def predict(self, table: TrainingTable) -> Numbers:
        """Give the time of every launch, in seconds."""
        reference_s = self._refer(table)
        corrections, _ = self.correct(gather_base(table), self._plan(table.schema))
        found: Numbers = reference_s * np.exp(corrections)
        return found

    def forecast(self, table: TrainingTable, coverage: float = COVERAGE) -> Forecast:
        """Give times with intervals."""
        check_coverage(coverage)
        return self._surround(self._refer(table), table.schema, gather_base(table), coverage)

    def forecast_arrays(
        self,
        schema: FeatureSchema,
        features: Numbers,
        figures: Numbers,
        coverage: float = COVERAGE,
    ) -> Forecast:
        """Give the same without a table, whose library takes 0.25 s to load.

        Parameters
        ----------
        schema : FeatureSchema
            Of the features.
        features : ndarray, shape (n, features)
            NaN where one is absent.
        figures : ndarray, shape (n, figures)
            In the order of `kernelcast.models.columns.FIGURES`; the linear model's time, which is
            corrected, is the first.
        coverage : float
            Share of true times that intervals shall hold.
        """
        check_coverage(coverage)
        check_schema(self.schema_id, schema)
        linear_s = figures[:, 0]
        is_known = (linear_s > 0) & (linear_s < np.inf)
        if not is_known.all():
            msg = (
                f"model {self.name}: a linear time of {linear_s[int(np.argmin(is_known))]} s to "
                "start from; sample the launch, or take a model that needs no samples"
            )
            raise InputError(msg)
        return self._surround(linear_s, schema, join_base(features, figures), coverage)

    def _surround(
        self, reference_s: Numbers, schema: FeatureSchema, base: Numbers, coverage: float
    ) -> Forecast:
        """Correct times, and put intervals around them."""
        corrections, domain_distance = self.correct(base, self._plan(schema))
        nothing = np.full(len(base), np.nan)
        spread = base[:, schema.names.index(SPREAD)] if SPREAD in schema.names else nothing
        error = base[:, len(schema.names) + FIGURES.index("linear_error")]
        signs = take_logs(error, spread, corrections, domain_distance)
        factor = np.exp(self.calibration.half_width(signs, domain_distance, coverage))
        seconds = reference_s * np.exp(corrections)
        return Forecast.around(seconds, factor, coverage, domain_distance <= 1.0)

    def place(self, table: TrainingTable) -> Rows:
        """Give the coordinates of launches."""
        check_schema(self.schema_id, table.schema)
        return self.space.place(self._plan(table.schema).compute(gather_base(table)))

    def describe(self) -> dict[str, object]:
        """Say what was learned."""
        return {
            "name": self.name,
            "learner": self.model.learner.name,
            "reference": self.model.reference.name,
            "feature_groups": list(self.model.feature_groups),
            "variant": str(self.model.variant),
            "gate": {"share": self.gate.share, "threshold": self.gate.threshold,
                     "fade": self.gate.fade},
            "points": len(self.space.points),
            "dimensions": self.space.points.shape[1],
            **self.facts,
        }  # fmt: skip

    def state(self) -> State:
        """Give everything as plain values and arrays."""
        preparation = self.space.preparation
        return {
            "schema_id": self.schema_id,
            "reference": {},  # versions before 0.3 ask for it
            "preparation": {
                name: list(preparation.names) if name == "names" else getattr(preparation, name)
                for name in preparation.__slots__
            },
            "points": self.space.points,
            "reach": self.space.reach,
            "learned": self.learned.state(),
            "gate": [self.gate.share, self.gate.threshold, self.gate.fade],
            "calibration": self.calibration.state(),
            "facts": self.facts,
        }

    def _refer(self, table: TrainingTable) -> Numbers:
        check_schema(self.schema_id, table.schema)
        return require_seconds(self.name, self.reference, table)

    def correct(self, base: Numbers, plan: ColumnPlan) -> tuple[Numbers, Numbers]:
        """Give gated corrections and the distance to the domain of launches.

        Parameters
        ----------
        base : ndarray, shape (n, features + figures + 1)
            See `kernelcast.models.columns.gather_base`.
        plan : ColumnPlan
            Of the model's columns.
        """
        corrections, domain_distance = np.empty(len(base)), np.empty(len(base))
        for begin in range(0, len(base), BLOCK_ROWS):
            block = slice(begin, begin + BLOCK_ROWS)
            rows = self.space.place(plan.compute(base[block]))
            domain_distance[block] = self.space.measure_domain_distance(rows)
            corrections[block] = self.learned.predict(rows)
        return self.gate.apply(corrections, domain_distance), domain_distance

    def _plan(self, schema: FeatureSchema) -> ColumnPlan:
        return plan_columns(schema, self.model.feature_groups, self.model.variant)


def _choose_evidence(count: int) -> npt.NDArray[np.intp]:
    """Give the rows on which settings, gate and intervals are chosen: all, or some of very many."""
    if count <= EVIDENCE_ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, EVIDENCE_ROWS, replace=False))


def _describe_training(
    choice: Choice, setting: dict[str, float], table: TrainingTable, groups: npt.NDArray[np.intp]
) -> dict[str, object]:
    return {
        "setting": setting,
        "inner_error": choice.error,
        "rows": len(table),
        "groups": len(np.unique(groups)),
        "devices": list_names(table.devices),
        "kernels": list_names(table.kernels),
        "data_digest": table.digest,
    }
