"""Turns what is known of a launch into one estimate: pieces fused, corrected and surrounded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from kernelcast.models.columns import FIGURES, make_columns
from kernelcast.models.evidence.fusion import FusedEstimate, Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    ASSUMED_ERRORS,
    EvidenceModel,
    list_answer_values,
    move,
    name_situation,
)
from kernelcast.predictor.answering.kernel_sizes import Work
from kernelcast.predictor.answering.launch_history import NO_HISTORY, list_doubts
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.tasks import LaunchRow
from kernelcast.predictor.answering.trained_models import FoundEvidence
from kernelcast.records.estimates import Estimate, Interval, Tier, format_seconds
from kernelcast.records.explanation import (
    Explanation,
    HistoryFacts,
    Influence,
    ModelFacts,
    PieceFacts,
)

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
_LEAST_CONTRADICTION = math.log(1.5)
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
class Remembered:
    """What earlier observations of the launch say."""

    piece: Piece | None = None
    """The usual time; None where there are no observations that are believed."""
    interval: Interval | None = None
    """The same with what single runs differ by."""
    facts: HistoryFacts | None = None
    """How many, and from when."""
    absence: str = NO_HISTORY
    """Why there is none, or why it does not answer."""
    failure: str = ""


NOTHING = Remembered()
"""Of launches that were not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a learned correction says of a launch."""

    log_factor: float | None = None
    """Natural logarithm of the factor on what fused samples say; None where nothing was asked."""
    distance: float = 0.0
    """Of the launch to those that were learned from; above 1 is unlike them."""
    facts: ModelFacts | None = None
    influences: tuple[Influence, ...] = ()
    failure: str = ""
    absence: str = _NO_MODEL
    """Why there is no correction although nothing went wrong."""

    @property
    def in_domain(self) -> bool:
        return self.distance <= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What is known of a launch beside its own observations."""

    estimate: Estimate
    """The launch, its samples and all methods side by side; what it answers is not fused yet."""
    pieces: tuple[Piece, ...]
    evidence: FoundEvidence
    learned: Learned = field(default_factory=Learned)
    learned_s: float | None = None
    """What samples say, corrected, in seconds."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing of a tier."""
    work: Work | None = None
    """How much it does, to be compared with other sizes; None where that is not known."""


def correct(
    model: EvidenceModel, facts: ModelFacts, row: LaunchRow, said: FusedEstimate
) -> Learned:
    values = row.vector.as_dict() | {name: row.columns[name] for name in FIGURES}
    try:
        log_factor, distance = model.find_correction(said, values)
    except (ValueError, ArithmeticError, IndexError) as error:
        return Learned(facts=facts, failure=f"the model failed on this launch: {error!r}")
    return Learned(
        log_factor=log_factor,
        distance=distance,
        facts=facts,
        influences=_find_influences(model, values, said),
    )


def _find_influences(
    model: EvidenceModel, values: Mapping[str, float], said: FusedEstimate, most: int = 5
) -> tuple[Influence, ...]:
    """Find the features without which the correction would differ most: each in turn is absent."""
    if model.correction is None:
        return ()
    told = list_answer_values(said, values)
    names = [name for name in values if name not in FIGURES]
    repeated: dict[str, Any] = {name: np.full(len(names) + 1, one) for name, one in told.items()}
    for place, name in enumerate(names, start=1):
        repeated[name][place] = np.nan
    corrections, _ = model.correction.predict(make_columns(repeated))
    effects = corrections[0] - corrections[1:]
    order = np.argsort(-np.abs(effects), kind="stable")[:most]
    # Smaller changes are rounding, or a gate that lets nothing through.
    return tuple(
        Influence(feature=names[place], factor=math.exp(effects[place]))
        for place in order
        if abs(effects[place]) > 1e-4
    )


def explain_unsampled(estimate: Estimate, why: str) -> Estimate:
    """Say in an answer why the launch was not sampled, and that asking again may be better."""
    note = f"not sampled: {why}"
    known = estimate.explain()
    missing = {**known.missing, **dict.fromkeys((Tier.HYBRID.value, Tier.LINEAR.value), why)}
    return replace(
        estimate,
        warnings=(note, *estimate.warnings),
        explanation=replace(known, missing=missing),
    )


def compose(
    basis: Basis, remembered: Remembered, sizes: Sequence[Piece], policy: Policy
) -> tuple[Estimate, tuple[Piece, ...]]:
    """Fuse what may answer of all that is known of a launch, or all of it where nothing may."""
    estimate, evidence, learned = basis.estimate, basis.evidence, basis.learned
    observed = () if remembered.piece is None else (remembered.piece,)
    pieces = (*observed, *sizes, *basis.pieces)
    if policy.methods is not None:
        wanted = {Tier.LINEAR} if policy.uses(Tier.HYBRID) else set()
        wanted |= {tier for tier in Tier if policy.uses(tier)}
        pieces = tuple(one for one in pieces if _TIERS[one.kind] in wanted) or pieces
    fused = fuse(pieces)
    warnings: list[str] = []
    tier = _TIERS[fused.leading_kind]
    missing = {} if remembered.piece else {Tier.HISTORY.value: remembered.absence}
    missing |= basis.missing
    if learned.log_factor is not None and policy.uses(Tier.HYBRID):
        fused = move(fused, learned.log_factor, learned.distance)
        if learned.in_domain:
            tier = Tier.HYBRID if tier is Tier.LINEAR else tier
        else:
            warnings.append(_UNLIKE)
            missing[Tier.HYBRID.value] = _UNLIKE
    origin = _NORMAL_INTERVAL
    if name_situation(fused.pieces) in evidence.model.intervals:
        origin = _CALIBRATED_INTERVAL
    elif tier is Tier.LEARNED and learned.facts is not None:
        origin = _MODEL_INTERVAL
    elif tier is Tier.ANALYTIC and evidence.model.plain.get(Kind.ANALYTIC) in {
        None, ASSUMED_ERRORS,
    }:  # fmt: skip
        origin = _ASSUMED
        warnings.append(_ASSUMED)
    missing.pop(tier.value, None)
    methods_s = dict(estimate.estimates_s)
    for one in pieces:
        if _TIERS[one.kind] in {Tier.SIZES, Tier.LEARNED}:
            methods_s[_TIERS[one.kind].value] = math.exp(one.log_seconds)
    if basis.learned_s is not None:
        methods_s[Tier.HYBRID.value] = basis.learned_s
    if remembered.interval is not None:
        methods_s[Tier.HISTORY.value] = remembered.interval.seconds
    failures = [f"an evidence model was passed over: {one}" for one in evidence.failures]
    failures += [f"no learned correction: {learned.failure}"] if learned.failure else []
    failures += [f"no history: {remembered.failure}"] if remembered.failure else []
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
        interval=evidence.model.surround(fused, estimate.coverage),
        tier=tier,
        in_domain=estimate.in_domain and (learned.log_factor is None or learned.in_domain),
        estimates_s={name: seconds for name, seconds in methods_s.items() if policy.uses(name)},
        warnings=(
            *estimate.warnings, *failures, *warnings,
            *list_contradictions(pieces), *list_doubts(remembered.facts),
        ),
        explanation=replace(
            estimate.explanation or Explanation(tier=tier),
            tier=tier,
            interval=origin,
            missing=missing,
            pieces=tuple(sorted(facts, key=lambda one: -one.weight)),
            evidence=evidence.origin,
            model=learned.facts,
            influences=learned.influences,
            history=remembered.facts,
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
        if abs(log_s - other_log_s)
        > max(_LEAST_CONTRADICTION, 2 * math.sqrt(variance + other_variance))
    ]
