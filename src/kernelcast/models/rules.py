"""Rivals that learn nothing but how far they are off: a reference with an interval."""

from dataclasses import dataclass, field

import numpy as np

from kernelcast.models.conformal import Calibration, calibrate, list_signs
from kernelcast.models.grouping import list_names, number_groups, refine_groups
from kernelcast.models.learned.learner import State
from kernelcast.models.protocol import COVERAGE, Forecast, check_coverage, check_schema
from kernelcast.models.references import LINEAR, ColumnReference, require_seconds
from kernelcast.records.training_table import Numbers, Texts, TrainingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleModel:
    """A reference alone."""

    name: str
    reference: ColumnReference = field(default=LINEAR)

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> "FittedRule":
        """Learn the size of its errors; see `kernelcast.models.protocol.TimeModel.fit`."""
        labels = table.kernels if groups is None else groups
        order = np.argsort(table.keys.astype(str), kind="stable")
        reference_s = self.reference.seconds(table)
        usable = order[np.isfinite(table.seconds * reference_s)[order]]
        numbers, known = number_groups(labels[usable]), table.take(usable)
        residuals = np.log(known.seconds / reference_s[usable])
        none = np.zeros(len(known))
        signs = list_signs(known, none, none)
        units = refine_groups(numbers, known.kernels)
        return FittedRule(
            model=self,
            schema_id=table.schema.id,
            calibration=calibrate(residuals, signs, none, units),
            facts={
                "rows": len(known),
                "devices": list_names(known.devices),
                "kernels": list_names(known.kernels),
                "data_digest": known.digest,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedRule:
    """A reference and its errors; made by `RuleModel.fit`."""

    model: RuleModel
    schema_id: str
    calibration: Calibration
    facts: dict[str, object]

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.model.name

    def predict(self, table: TrainingTable) -> Numbers:
        """Give the reference's times, in seconds."""
        check_schema(self.schema_id, table.schema)
        return require_seconds(self.name, self.model.reference, table)

    def forecast(self, table: TrainingTable, coverage: float = COVERAGE) -> Forecast:
        """Give times with intervals; a rule knows no domain."""
        check_coverage(coverage)
        seconds = self.predict(table)
        none = np.zeros(len(table))
        signs = list_signs(table, none, none)
        factor = np.exp(self.calibration.half_width(signs, none, coverage))
        return Forecast.around(seconds, factor, coverage)

    def describe(self) -> dict[str, object]:
        """Say what was learned."""
        return {"name": self.name, "reference": self.model.reference.name, **self.facts}

    def state(self) -> State:
        """Give everything as plain values and arrays."""
        return {
            "schema_id": self.schema_id,
            "calibration": self.calibration.state(),
            "facts": self.facts,
        }
