"""Models of the registry that stand beside an answer."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernelcast.predictor.answering.policy import MethodChoice
from kernelcast.predictor.answering.tasks import EstimateOutcome, LaunchRow
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table

_PEAKS = ("cache_bytes", "bandwidth_bytes_per_s", "flops_per_s")
_PLAIN = ("linear_s", "linear_error", "two_point_s", "sampling_s", "work_groups", "compute_units")


def add_models(
    trained_models: TrainedModels,
    estimate: Estimate,
    outcome: EstimateOutcome,
    methods: MethodChoice,
) -> Estimate:
    """Put other models of the registry side by side; those without an answer are left out."""
    row = outcome.row
    if row is None or not methods.models:
        return estimate
    estimates_s, failures = dict(estimate.estimates_s), []
    for name in methods.models:
        lookup = trained_models.find(estimate.device_id, row.vector.schema, name)
        if lookup.stored is None:
            why = "; ".join(lookup.failures)
            failures += [f"{name} does not stand beside the answer: {why}"] if why else []
            continue
        try:
            table = tabulate([row], lookup.stored.schema)
            seconds = float(lookup.stored.model.predict(table)[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            estimates_s[name] = seconds
    return replace(estimate, estimates_s=estimates_s, warnings=(*estimate.warnings, *failures))


def tabulate(rows: Sequence[LaunchRow], schema: FeatureSchema) -> TrainingTable:
    """Make the table that models take, one row per launch."""
    known = [one.vector.as_dict() for one in rows]
    features = [[one.get(name, np.nan) for name in schema.names] for one in known]
    columns = {name: [_number(getattr(one, name)) for one in rows] for name in _PLAIN}
    columns |= {name: [_number(getattr(one.peaks, name)) for one in rows] for name in _PEAKS}
    return make_table(schema, np.reshape(features, (len(rows), len(schema.names))), columns)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
