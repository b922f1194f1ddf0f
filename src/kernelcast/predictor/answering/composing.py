"""Turns what is known of a launch into one estimate: pieces weighed, fused and corrected."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from kernelcast.models.evidence.fusion import FusedEstimate, Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    ASSUMED_ERRORS,
    BUILT_IN,
    EvidenceModel,
    find_normal_quantile,
    list_answer_values,
    move,
    name_situation,
)
from kernelcast.models.evidence.sizes import KnownSize
from kernelcast.models.regression import FIGURES, make_columns
from kernelcast.predictor.answering.launch_history import (
    NOT_BELIEVED,
    LaunchHistory,
    list_doubts,
)
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import EstimateOutcome, annotate
from kernelcast.predictor.answering.trained_models import FoundEvidence, TrainedModels
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate, Tier, format_seconds
from kernelcast.records.explanation import (
    HistoryFacts,
    Influence,
    ModelFacts,
    PieceFacts,
)
from kernelcast.records.training_table import make_table
from kernelcast.training.registry import name_model
from kernelcast.training.settings import STATIC_MODEL

NOT_ASKED = "it was not asked for"
_TIERS: Mapping[Kind, Tier] = {
    Kind.OBSERVED: Tier.HISTORY,
    Kind.OTHER_SIZES: Tier.SIZES,
    Kind.OTHER_ESTIMATES: Tier.SIZES,
    Kind.SAMPLES: Tier.LINEAR,
    Kind.LEARNED: Tier.LEARNED,
    Kind.ANALYTIC: Tier.ANALYTIC,
}
_SAY: Mapping[Kind, str] = {
    Kind.OBSERVED: "observations of the launch say",
    Kind.SAMPLES: "its samples say",
    Kind.OTHER_SIZES: "other sizes of the kernel say",
}
"""Of what has run, in the order in which contradictions name it."""
_UNLIKE = (
    "the launch is unlike those that the correction has learned from: it counts less, and the "
    "interval is wider"
)
_CALIBRATED_INTERVAL = (
    "errors of such estimates on kernels that the calibration held out, scaled by how sure the "
    "pieces are, how they agree, and how far they were corrected (conformal)"
)
_MODEL_INTERVAL = (
    "errors of the model on kernels that its training held out, scaled by how far the launch is "
    "from those that it has learned from (conformal)"
)
_NORMAL_INTERVAL = "the variances of the pieces, and how they agree"
_ASSUMED = (
    "the interval is assumed: no errors of the analytic model are known on this device "
    "(`kernelcast train` learns them from what `kernelcast collect` measures)"
)
_NO_MODEL = (
    "no correction of this device's samples is known to gain (`kernelcast train` looks for one)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What is known of a launch beside its own observations."""

    estimate: Estimate
    """The launch, its samples and all methods side by side; what it answers is not fused yet."""
    pieces: tuple[Piece, ...]
    model: EvidenceModel
    log_factor: float | None = None
    """Natural logarithm of the factor on what fused samples say; None where nothing was asked."""
    distance: float = 0.0
    """Of the launch to those that the factor was learned from; above 1 is unlike them."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing of a tier."""
    size: KnownSize


def counts_history(policy: Policy) -> bool:
    return policy.settings.uses_history and policy.uses(Tier.HISTORY)


def weigh_history(history: LaunchHistory, policy: Policy, model: EvidenceModel) -> Piece | str:
    """Weigh what was observed of a launch, or say why it does not answer."""
    facts = history.describe()
    if not counts_history(policy):
        return NOT_ASKED
    if not facts.observations:
        return NOT_BELIEVED if facts.set_aside else history.absence
    if policy.settings.measure:
        return "whole runs are measured for comparison"
    age_s = math.inf
    if facts.first is not None and facts.last is not None:
        # What has held for so long is trusted for as long again.
        held_s = (facts.last - facts.first).total_seconds()
        age_s = max(max(time.time() - facts.last.timestamp(), 0.0) - held_s, 0.0)
    return model.weigh_observation(
        math.log(history.middle_s),
        history.noise,
        age_s,
        moments=history.moments,
        repeats=facts.observations,
    )


def weigh_models(
    model: EvidenceModel, estimate: Estimate, learned_s: float | None, doubt: float = 0.0
) -> list[Piece]:
    analytic_s = estimate.estimates_s.get(Tier.ANALYTIC.value)
    told = ((Kind.ANALYTIC, analytic_s, doubt), (Kind.LEARNED, learned_s, 0.0))
    made = (
        model.weigh_plain(kind, math.log(one), more)
        or BUILT_IN.weigh_plain(kind, math.log(one), more)
        for kind, one, more in told
        if one
    )
    return [one for one in made if one is not None]


def add_models(
    trained_models: TrainedModels,
    estimate: Estimate,
    outcome: EstimateOutcome,
    policy: Policy,
) -> Estimate:
    row = outcome.row
    if row is None or not policy.models:
        return estimate
    estimates_s, failures = dict(estimate.estimates_s), []
    for name in policy.models:
        stored, reasons = trained_models.find(estimate.device_id, row.vector.schema, name)
        if stored is None:
            why = "; ".join(reasons)
            failures += [f"{name} does not stand beside the answer: {why}"] if why else []
            continue
        try:
            schema = stored.model.schema
            values = [row.vector.as_dict().get(name, math.nan) for name in schema.names]
            columns = {name: [one] for name, one in row.columns.items()}
            table = make_table(schema, [values], columns)
            seconds = float(stored.model.forecast(table)[0][0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            estimates_s[name] = seconds
    return annotate(replace(estimate, estimates_s=estimates_s), *failures)


def answer_statically(
    trained_models: TrainedModels, basis: Basis, values: Mapping[str, float]
) -> Basis:
    """Have the user's model of rows without samples answer, whose interval is calibrated."""
    estimate, failure = basis.estimate, ""
    stored, reasons = trained_models.find(estimate.device_id, None, STATIC_MODEL)
    if stored is None:
        failure = "; ".join(reasons)
    else:
        row = [values.get(name, math.nan) for name in stored.model.schema.names]
        groups = {"work_groups": [values.get("static.work_groups_count", math.nan)]}
        try:
            table = make_table(stored.model.schema, [row], groups)
            (seconds,), _, (high,), (in_domain,) = stored.model.forecast(table, estimate.coverage)
            failure = "" if seconds > 0 else stored.model.model.advice
        except KernelcastError as error:
            failure = str(error)
    if stored is None or failure:
        told = f"the model {STATIC_MODEL} does not answer: {failure}"
        return replace(basis, estimate=annotate(estimate, told))
    width = math.log(high / seconds)
    piece = Piece(
        kind=Kind.LEARNED,
        log_seconds=math.log(seconds),
        variance=(width / find_normal_quantile(estimate.coverage)) ** 2,
        note="a model of rows without samples",
    )
    facts = ModelFacts(
        name=name_model(STATIC_MODEL, estimate.device_id),
        schema_id=stored.model.schema.id,
        data_digest=str(stored.model.facts.get("data_digest", "")),
        rows=int(str(stored.model.facts["rows"])),
    )
    estimate = annotate(replace(estimate, in_domain=bool(in_domain)), model=facts)
    return replace(basis, estimate=estimate, pieces=(piece,))


def tell_evidence(estimate: Estimate, evidence: FoundEvidence) -> Estimate:
    """Say whose the weights of evidence are, and which were passed over."""
    failures = [f"an evidence model was passed over: {one}" for one in evidence.failures]
    return annotate(estimate, *failures, evidence=evidence.origin)


def correct(
    basis: Basis, facts: ModelFacts, outcome: EstimateOutcome, said: FusedEstimate, policy: Policy
) -> Basis:
    """Ask what was learned of samples how far off those of the launch are."""
    correction, row, estimate = basis.model.correction, outcome.row, basis.estimate
    failure, absence = "", _NO_MODEL
    if not (policy.settings.uses_models and policy.uses(Tier.HYBRID)):
        absence = NOT_ASKED
    elif correction is not None and row is None:
        failure = outcome.row_failure
    elif correction is not None and row is not None:
        estimate = annotate(estimate, model=facts)
        figures = {name: one for name, one in row.columns.items() if name in FIGURES}
        values = row.vector.as_dict() | figures
        try:
            log_factor, distance = basis.model.find_correction(said, values)
        except (ValueError, ArithmeticError, IndexError) as error:
            failure = f"the model failed on this launch: {error!r}"
        else:
            # Find the features without which it would differ most: each in turn is absent.
            told = list_answer_values(said, values)
            names = [name for name in values if name not in FIGURES]
            columns: dict[str, Any] = {name: np.full(len(names) + 1, told[name]) for name in told}
            for place, name in enumerate(names, start=1):
                columns[name][place] = np.nan
            corrections, _ = correction.predict(make_columns(columns))
            effects = corrections[0] - corrections[1:]
            influences = tuple(
                Influence(feature=names[place], factor=math.exp(effects[place]))
                for place in np.argsort(-np.abs(effects), kind="stable")[:5]
                # Smaller changes are rounding, or a gate that lets nothing through.
                if abs(effects[place]) > 1e-4
            )
            hybrid_s = math.exp(said.log_seconds + log_factor)
            methods_s = {**estimate.estimates_s, Tier.HYBRID.value: hybrid_s}
            estimate = annotate(replace(estimate, estimates_s=methods_s), influences=influences)
            return replace(basis, estimate=estimate, log_factor=log_factor, distance=distance)
    if failure:
        estimate = annotate(estimate, f"no learned correction: {failure}")
    return replace(basis, estimate=estimate, missing={Tier.HYBRID.value: failure or absence})


def explain_unsampled(estimate: Estimate, why: str) -> Estimate:
    """Say in an answer why the launch was not sampled, and that asking again may be better."""
    missing = dict.fromkeys((Tier.HYBRID.value, Tier.LINEAR.value), why)
    warnings = (f"not sampled: {why}", *estimate.warnings)
    known = estimate.explain().missing
    return annotate(replace(estimate, warnings=warnings), missing={**known, **missing})


def compose(
    basis: Basis, history: LaunchHistory, sizes: Sequence[Piece], policy: Policy
) -> tuple[Estimate | None, tuple[Piece, ...]]:
    """Fuse what may answer of all that is known of a launch, or all of it where nothing may."""
    estimate, model, explained = basis.estimate, basis.model, basis.estimate.explain()
    observed = weigh_history(history, policy, model)
    absence = observed if isinstance(observed, str) else ""
    pieces = (*([] if isinstance(observed, str) else [observed]), *sizes, *basis.pieces)
    if not pieces:
        return None, ()
    if policy.methods is not None:
        wanted = {Tier.LINEAR} if policy.uses(Tier.HYBRID) else set()
        wanted |= {tier for tier in Tier if policy.uses(tier)}
        pieces = tuple(one for one in pieces if _TIERS[one.kind] in wanted) or pieces
    fused = fuse(pieces)
    warnings: list[str] = []
    tier = _TIERS[fused.leading_kind]
    missing = {Tier.HISTORY.value: absence} if absence else {}
    missing |= basis.missing
    is_like_known = basis.log_factor is None or basis.distance <= 1.0
    if basis.log_factor is not None and policy.uses(Tier.HYBRID):
        fused = move(fused, basis.log_factor, basis.distance)
        if is_like_known:
            tier = Tier.HYBRID if tier is Tier.LINEAR else tier
        else:
            warnings.append(_UNLIKE)
            missing[Tier.HYBRID.value] = _UNLIKE
    origin = _NORMAL_INTERVAL
    if name_situation(fused.pieces) in model.intervals:
        origin = _CALIBRATED_INTERVAL
    elif tier is Tier.LEARNED and explained.model is not None:
        origin = _MODEL_INTERVAL
    elif tier is Tier.ANALYTIC and model.plain.get(Kind.ANALYTIC) in {
        None, ASSUMED_ERRORS,
    }:  # fmt: skip
        origin = _ASSUMED
        warnings.append(_ASSUMED)
    missing.pop(tier.value, None)
    methods_s = dict(estimate.estimates_s)
    for one in pieces:
        if _TIERS[one.kind] in {Tier.SIZES, Tier.LEARNED}:
            methods_s[_TIERS[one.kind].value] = math.exp(one.log_seconds)
    told = history.describe() if counts_history(policy) else HistoryFacts(observations=0)
    if told.observations:
        methods_s[Tier.HISTORY.value] = history.middle_s
    failures = [f"no history: {history.failure}"] if history.failure else []
    facts = [
        PieceFacts(
            kind=one.kind.value,
            seconds=math.exp(one.log_seconds),
            deviation=math.sqrt(one.variance),
            weight=weight,
            moment=one.moment,
            note="" if one.kind is Kind.SAMPLES else one.note,
            measured_at=None if one.at_s is None else datetime.fromtimestamp(one.at_s, UTC),
        )
        for one, weight in zip(fused.pieces, fused.weights, strict=True)
    ]
    made = replace(
        estimate,
        interval=model.surround(fused, estimate.coverage),
        tier=tier,
        in_domain=estimate.in_domain and is_like_known,
        estimates_s={name: seconds for name, seconds in methods_s.items() if policy.uses(name)},
        warnings=(
            *estimate.warnings, *failures, *warnings,
            *list_contradictions(pieces), *list_doubts(told),
        ),
        explanation=replace(
            explained,
            tier=tier,
            interval=origin,
            missing=missing,
            pieces=tuple(sorted(facts, key=lambda one: -one.weight)),
            history=told if told.observations or told.set_aside else None,
        ),
    )  # fmt: skip
    return made, pieces


def list_contradictions(pieces: Sequence[Piece]) -> list[str]:
    """Say where observations, samples and other sizes contradict each other."""
    told = []
    for kind, says in _SAY.items():
        of_kind = [one for one in pieces if one.kind is kind]
        if of_kind:
            log_s = median(one.log_seconds for one in of_kind)
            variance = min(one.variance for one in of_kind)
            told.append((log_s, variance, f"{says} {format_seconds(math.exp(log_s))}"))
    return [
        f"{text}, but {other}"
        for (log_s, variance, text), (other_log_s, other_variance, other) in combinations(told, 2)
        if abs(log_s - other_log_s) > max(math.log(1.5), 2 * math.sqrt(variance + other_variance))
    ]
