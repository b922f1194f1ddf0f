"""Models of the registry that stand beside an answer, or answer where nothing may run."""

import math
from collections.abc import Mapping
from dataclasses import replace

from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.models.evidence.model import find_normal_quantile
from kernelcast.predictor.answering.composing import Basis
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
            table = tabulate(row, stored.schema)
            seconds = float(stored.model.predict(table)[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            estimates_s[name] = seconds
    return replace(estimate, estimates_s=estimates_s, warnings=(*estimate.warnings, *failures))


def answer_statically(
    trained_models: TrainedModels, basis: Basis, values: Mapping[str, float]
) -> Basis:
    """Have the user's model of rows without samples answer, whose interval is calibrated."""
    estimate, failure = basis.estimate, ""
    stored, reasons = trained_models.find(estimate.device_id, None, STATIC_MODEL)
    if stored is None:
        failure = "; ".join(reasons)
    else:
        row = [values.get(name, math.nan) for name in stored.schema.names]
        groups = {"work_groups": [values.get("static.work_groups_count", math.nan)]}
        try:
            table = make_table(stored.schema, [row], groups)
            found = stored.model.forecast(table, estimate.coverage)
        except KernelcastError as error:
            failure = str(error)
    if stored is None or failure:
        told = f"the model {STATIC_MODEL} does not answer: {failure}"
        return replace(basis, estimate=replace(estimate, warnings=(*estimate.warnings, told)))
    width = math.log(found.high[0] / found.seconds[0])
    piece = Piece(
        kind=Kind.LEARNED,
        log_seconds=math.log(found.seconds[0]),
        variance=(width / find_normal_quantile(estimate.coverage)) ** 2,
        note="a model of rows without samples",
    )
    facts = ModelFacts(
        name=name_model(STATIC_MODEL, estimate.device_id),
        version="",
        place="",
        schema_id=stored.schema.id,
        data_digest=str(stored.model.facts.get("data_digest", "")),
        rows=int(str(stored.model.facts["rows"])),
    )
    return replace(
        basis,
        estimate=replace(estimate, in_domain=bool(found.in_domain[0])),
        pieces=(piece,),
        learned=replace(basis.learned, facts=facts),
    )


def tabulate(row: LaunchRow, schema: FeatureSchema) -> TrainingTable:
    """Make the table of one launch that models take."""
    known = row.vector.as_dict()
    features = [[known.get(name, math.nan) for name in schema.names]]
    columns = {name: [_number(getattr(row, name))] for name in _PLAIN}
    columns |= {name: [_number(getattr(row.peaks, name))] for name in _PEAKS}
    return make_table(schema, features, columns)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
