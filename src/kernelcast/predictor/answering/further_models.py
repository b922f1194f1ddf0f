"""Models of the registry that stand beside an answer, or answer where nothing may run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.models.evidence.model import find_normal_quantile
from kernelcast.predictor.answering.policy import MethodChoice
from kernelcast.predictor.answering.tasks import EstimateOutcome, LaunchRow
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import ModelFacts
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table
from kernelcast.training.registry import name_model
from kernelcast.training.settings import STATIC_MODEL

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
        stored, reasons = trained_models.find(estimate.device_id, row.vector.schema, name)
        if stored is None:
            why = "; ".join(reasons)
            failures += [f"{name} does not stand beside the answer: {why}"] if why else []
            continue
        try:
            table = tabulate([row], stored.schema)
            seconds = float(stored.model.predict(table)[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            estimates_s[name] = seconds
    return replace(estimate, estimates_s=estimates_s, warnings=(*estimate.warnings, *failures))


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticAnswer:
    """What a model says of a launch that needs no samples."""

    piece: Piece | None = None
    """Its time, with the interval that it promises; None where it has no answer."""
    in_domain: bool = True
    """Whether the launch resembles those that it has learned from."""
    facts: ModelFacts | None = None
    """Whose time it is."""
    failure: str = ""
    """Why there is none."""


def ask_static(
    trained_models: TrainedModels, device_id: str, values: Mapping[str, float], coverage: float
) -> StaticAnswer:
    """Ask the model that `kernelcast train` makes of rows without samples."""
    stored, reasons = trained_models.find(device_id, None, STATIC_MODEL)
    if stored is None:
        return StaticAnswer(failure="; ".join(reasons))
    row = [values.get(name, math.nan) for name in stored.schema.names]
    groups = {"work_groups": [values.get("static.work_groups_count", math.nan)]}
    try:
        found = stored.model.forecast(make_table(stored.schema, [row], groups), coverage)
    except KernelcastError as error:
        return StaticAnswer(failure=str(error))
    width = math.log(found.high[0] / found.seconds[0])
    return StaticAnswer(
        piece=Piece(
            kind=Kind.LEARNED,
            log_seconds=math.log(found.seconds[0]),
            variance=(width / find_normal_quantile(coverage)) ** 2,
            note="a model of rows without samples",
        ),
        in_domain=bool(found.in_domain[0]),
        facts=ModelFacts(
            name=name_model(STATIC_MODEL, device_id),
            version="",
            place="",
            schema_id=stored.schema.id,
            data_digest=str(stored.model.facts.get("data_digest", "")),
            rows=int(str(stored.model.facts["rows"])),
        ),
    )


def tabulate(rows: Sequence[LaunchRow], schema: FeatureSchema) -> TrainingTable:
    """Make the table that models take, one row per launch."""
    known = [one.vector.as_dict() for one in rows]
    features = [[one.get(name, np.nan) for name in schema.names] for one in known]
    columns = {name: [_number(getattr(one, name)) for one in rows] for name in _PLAIN}
    columns |= {name: [_number(getattr(one.peaks, name)) for one in rows] for name in _PEAKS}
    return make_table(schema, np.reshape(features, (len(rows), len(schema.names))), columns)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
