"""Turns what is known of a launch into one estimate: pieces fused, corrected and surrounded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import combinations
from statistics import median

from kernelcast.models.evidence.built_in import ASSUMED_ERRORS
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import add_deviation, name_situation
from kernelcast.models.evidence.piece import FusedEstimate, Kind, Piece
from kernelcast.predictor.answering.doubts import NO_HISTORY, list_doubts
from kernelcast.predictor.answering.kernel_sizes import Work
from kernelcast.predictor.answering.learned import Correction, Learned
from kernelcast.predictor.answering.policy import MethodChoice
from kernelcast.predictor.answering.trained_models import FoundEvidence
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.explanation import Explanation, HistoryFacts, PieceFacts
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.readable_times import format_seconds

_MOST_WIDENED = 0.5
_TIERS: Mapping[Kind, Tier] = {
    Kind.OBSERVED: Tier.HISTORY,
    Kind.OTHER_SIZES: Tier.SIZES,
    Kind.OTHER_ESTIMATES: Tier.SIZES,
    Kind.SAMPLES: Tier.LINEAR,
    Kind.LEARNED: Tier.LEARNED,
    Kind.ANALYTIC: Tier.ANALYTIC,
}
CORRECTED = frozenset({Kind.SAMPLES, Kind.LEARNED, Kind.ANALYTIC})
"""What the learned correction has seen of a launch beside its features."""
_SAY: Mapping[Kind, str] = {
    Kind.OBSERVED: "observations of the launch say",
    Kind.SAMPLES: "its samples say",
    Kind.OTHER_SIZES: "other sizes of the kernel say",
}
"""Of what has run, in the order in which contradictions name it."""
_CONTRADICT = 2.0
_LEAST_CONTRADICTION = math.log(1.5)
_UNLIKE = (
    "the launch is unlike those that the learned model was trained on: the samples answer, with a "
    "wider interval"
)
_LEARNED_INTERVAL = (
    "errors of the learned model on kernels that its training held out, scaled by what this "
    "launch's samples and features say of its difficulty (conformal)"
)
_CALIBRATED_INTERVAL = (
    "errors of such estimates on kernels that the calibration held out, scaled by how sure the "
    "pieces are and how they agree (conformal)"
)
_NORMAL_INTERVAL = "the variances of the pieces, and how they agree"
_ASSUMED = (
    "the interval is assumed: no errors of the analytic model are known on this device "
    "(`kernelcast train` learns them from what `kernelcast collect` measures)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What earlier observations of the launch say.

    Parameters
    ----------
    piece : Piece or None
        The usual time; None where there are no observations that are believed.
    interval : Interval or None
        The same with what single runs differ by.
    facts : HistoryFacts or None
        How many, and from when.
    absence : str
        Why there is none, or why it does not answer.
    failure : str
        What went wrong, if something did.
    """

    piece: Piece | None = None
    interval: Interval | None = None
    facts: HistoryFacts | None = None
    absence: str = NO_HISTORY
    failure: str = ""


NOTHING = Remembered()
"""Of launches that were not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What is known of a launch beside its own observations.

    Parameters
    ----------
    estimate : Estimate
        The launch, its samples and all methods side by side; what it answers is not fused yet.
    pieces : tuple of Piece
        What is known.
    evidence : FoundEvidence
        What weighs it.
    learned : Learned
        The correction of what samples say.
    missing : mapping of str to str
        Why there is nothing of a tier.
    work : Work or None
        How much it does, to be compared with other sizes; None where that is not known.
    """

    estimate: Estimate
    pieces: tuple[Piece, ...]
    evidence: FoundEvidence
    learned: Learned = field(default_factory=Learned)
    missing: Mapping[str, str] = field(default_factory=dict)
    work: Work | None = None


def describe_launch(
    device: DeviceDescription,
    kernel: str,
    ndrange: NDRange,
    *,
    coverage: float,
    identity: LaunchIdentity | None,
    analytic: AnalyticEstimate | None = None,
    notes: Sequence[str] = (),
) -> Estimate:
    """Describe a launch that nothing was run of; how long it takes is not said yet."""
    limiters = {} if analytic is None else dict(analytic.limiters)
    told = (*notes, *(analytic.notes if analytic else ()))
    return Estimate(
        device=device.name,
        device_id=device.id,
        kernel=kernel,
        ndrange=ndrange,
        compute_units=device.compute_units,
        saturation=None,
        sample_work_groups=(0, 0),
        sampled_work_groups=0,
        interval=_hold_place(coverage),
        tier=Tier.ANALYTIC,
        estimates_s={} if analytic is None else {Tier.ANALYTIC.value: analytic.seconds},
        sampling_seconds=0.0,
        overhead_seconds=0.0,
        limiter=None if analytic is None else analytic.limiter,
        identity=identity,
        explanation=Explanation(tier=Tier.ANALYTIC, limiters=limiters, notes=told),
    )


@lru_cache(maxsize=16)
def _hold_place(coverage: float) -> Interval:
    return Interval(seconds=1.0, low=1.0, high=1.0, coverage=coverage)


def refuse_unsampled(device_id: str, *, is_wanted: bool) -> DeviceError:
    """Say what is missing for an answer without samples.

    Parameters
    ----------
    device_id : str
        The device.
    is_wanted : bool
        Whether the analytic model may answer.
    """
    if not is_wanted:
        return DeviceError(
            f"{device_id}: nothing may be sampled, and the analytic model is not wanted"
        )
    return DeviceError(
        f"{device_id}: no estimate without sampling: the device was not calibrated; "
        f"`kernelcast calibrate --device {device_id}` makes the description that the analytic "
        "model needs, or allow sampling"
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
    basis: Basis, remembered: Remembered, pieces: Sequence[Piece], methods: MethodChoice
) -> Estimate:
    """Fuse what is known of a launch into its estimate.

    Parameters
    ----------
    basis : Basis
        What is known beside its observations.
    remembered : Remembered
        Its observations.
    pieces : sequence of Piece
        What may answer, see `choose_pieces`.
    methods : MethodChoice
        Which may answer.

    Raises
    ------
    InputError
        If nothing is known.
    """
    estimate, evidence = basis.estimate, basis.evidence
    fused = fuse(pieces)
    correction = basis.learned.correction if methods.uses(Tier.HYBRID) else None
    answer = _surround(basis, fused)
    if correction is not None:
        answer = _correct(answer, correction, fused)
    absence = {} if remembered.piece else {Tier.HISTORY.value: remembered.absence}
    missing = {**absence, **basis.missing, **answer.missing}
    missing.pop(answer.tier.value, None)
    methods_s = list_methods(basis, remembered, pieces)
    failures = _list_failures(basis, remembered)
    return replace(
        estimate,
        interval=answer.interval,
        tier=answer.tier,
        in_domain=estimate.in_domain and (correction is None or correction.in_domain),
        estimates_s=keep_methods(methods_s, methods.wanted),
        warnings=(
            *estimate.warnings, *failures, *answer.warnings, *list_contradictions(pieces),
            *list_doubts(remembered.facts),
        ),
        explanation=replace(
            estimate.explanation or Explanation(tier=answer.tier),
            tier=answer.tier,
            interval=answer.origin,
            missing=missing,
            pieces=list_pieces(fused),
            evidence=evidence.origin,
            model=basis.learned.facts,
            influences=basis.learned.influences,
            history=remembered.facts,
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What comes out, and what is to be said of it."""

    interval: Interval
    tier: Tier
    origin: str
    warnings: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def _surround(basis: Basis, fused: FusedEstimate) -> _Answer:
    """Put an interval around what was fused."""
    evidence = basis.evidence
    interval = evidence.model.surround(fused, basis.estimate.coverage)
    tier = _TIERS[fused.leading_kind]
    if name_situation(fused.pieces) in evidence.model.intervals:
        return _Answer(interval=interval, tier=tier, origin=_CALIBRATED_INTERVAL)
    known = evidence.model.plain.get(Kind.ANALYTIC, ASSUMED_ERRORS)
    if tier is Tier.ANALYTIC and known == ASSUMED_ERRORS:
        return _Answer(interval=interval, tier=tier, origin=_ASSUMED, warnings=(_ASSUMED,))
    return _Answer(interval=interval, tier=tier, origin=_NORMAL_INTERVAL)


def _correct(answer: _Answer, correction: Correction, fused: FusedEstimate) -> _Answer:
    """Move an answer by what a learned model has learned of samples, as far as they count."""
    if not correction.in_domain:
        return replace(
            answer,
            interval=widen_outside(answer.interval, correction.interval),
            warnings=(*answer.warnings, _UNLIKE),
            missing={Tier.HYBRID.value: _UNLIKE},
        )
    tier = Tier.HYBRID if answer.tier is Tier.LINEAR else answer.tier
    if _rests_on_samples(fused):
        interval = _widen_beyond(correction.interval, fused)
        return replace(answer, interval=interval, tier=tier, origin=_LEARNED_INTERVAL)
    share = sum(
        weight for one, weight in zip(fused.pieces, fused.weights, strict=True)
        if one.kind in CORRECTED
    )  # fmt: skip
    moved = _move(answer.interval, math.exp(correction.log_factor * share))
    return replace(answer, interval=moved, tier=tier)


def _widen_beyond(one: Interval, fused: FusedEstimate) -> Interval:
    """Add to a learned interval, of samples just taken alone, what time and programs bring."""
    pairs = zip(fused.pieces, fused.weights, strict=True)
    deviation = sum(
        weight * math.sqrt(piece.age_variance + piece.uncalibrated_variance)
        for piece, weight in pairs
    )
    return add_deviation(one, deviation)


def choose_pieces(
    basis: Basis, remembered: Remembered, sizes: Sequence[Piece], methods: MethodChoice
) -> tuple[Piece, ...]:
    """Give what may answer of all that is known; all of it where nothing may."""
    observed = () if remembered.piece is None else (remembered.piece,)
    known = (*observed, *sizes, *basis.pieces)
    if methods.wanted is None:
        return known
    return tuple(one for one in known if _is_wanted(one.kind, methods)) or known


def list_contradictions(pieces: Sequence[Piece]) -> list[str]:
    """Say where observations, samples and other sizes of a launch contradict each other.

    They do if they differ by a factor of more than 1.5, and by more than two of their deviations.
    """
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
        > max(_LEAST_CONTRADICTION, _CONTRADICT * math.sqrt(variance + other_variance))
    ]


def list_pieces(fused: FusedEstimate) -> tuple[PieceFacts, ...]:
    """Describe what was put together, the heaviest first."""
    found = [
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
    return tuple(sorted(found, key=lambda one: -one.weight))


def keep_methods(
    estimates_s: Mapping[str, float], wanted: frozenset[str] | None
) -> dict[str, float]:
    """Leave out methods that were not asked for."""
    known = estimates_s.items()
    return {name: seconds for name, seconds in known if wanted is None or name in wanted}


def widen_outside(own: Interval, learned: Interval) -> Interval:
    """Widen the samples' interval by a learned model's outside its domain, within limits.

    A model far from what it knows may answer anything within a factor of a hundred. On the
    logarithmic scale an end moves out by at most half its distance from the answer.
    """
    low, high = min(own.low, learned.low), max(own.high, learned.high)
    return replace(
        own,
        low=max(low, own.low * (own.low / own.seconds) ** _MOST_WIDENED),
        high=min(high, own.high * (own.high / own.seconds) ** _MOST_WIDENED),
    )


def _is_wanted(kind: Kind, methods: MethodChoice) -> bool:
    tier = _TIERS[kind]
    return methods.uses(tier) or (tier is Tier.LINEAR and methods.uses(Tier.HYBRID))


def _rests_on_samples(fused: FusedEstimate) -> bool:
    kinds = {one.kind for one in fused.pieces}
    return Kind.SAMPLES in kinds and kinds <= CORRECTED


def _move(one: Interval, factor: float) -> Interval:
    return replace(one, seconds=one.seconds * factor, low=one.low * factor, high=one.high * factor)


def _list_failures(basis: Basis, remembered: Remembered) -> list[str]:
    learned = basis.learned
    found = [f"an evidence model was passed over: {one}" for one in basis.evidence.failures]
    if learned.passed_over:
        found.append(f"a learned model was passed over: {learned.passed_over}")
    if learned.failure and learned.correction is None:
        found.append(f"no learned correction: {learned.failure}")
    if remembered.failure:
        found.append(f"no history: {remembered.failure}")
    return found


def list_methods(basis: Basis, remembered: Remembered, pieces: Sequence[Piece]) -> dict[str, float]:
    """Give every method's seconds side by side."""
    found = dict(basis.estimate.estimates_s)
    for one in pieces:
        tier = _TIERS[one.kind]
        if tier in {Tier.SIZES, Tier.LEARNED}:
            found[tier.value] = math.exp(one.log_seconds)
    if basis.learned.seconds is not None:
        found[Tier.HYBRID.value] = basis.learned.seconds
    if remembered.interval is not None:
        found[Tier.HISTORY.value] = remembered.interval.seconds
    return found
