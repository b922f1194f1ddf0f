"""Turns what is known of a launch into one estimate: pieces fused, corrected and surrounded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import combinations
from statistics import median

from kernelcast.models.evidence.fusion import FusedEstimate, Kind, Piece, fuse
from kernelcast.models.evidence.model import ASSUMED_ERRORS, move, name_situation
from kernelcast.predictor.answering.kernel_sizes import Work
from kernelcast.predictor.answering.launch_history import NO_HISTORY, list_doubts
from kernelcast.predictor.answering.learned import Learned
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
_CONTRADICT = 2.0
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
    """What went wrong, if something did."""


NOTHING = Remembered()
"""Of launches that were not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What is known of a launch beside its own observations."""

    estimate: Estimate
    """The launch, its samples and all methods side by side; what it answers is not fused yet."""
    pieces: tuple[Piece, ...]
    """What is known."""
    evidence: FoundEvidence
    """What weighs it."""
    learned: Learned = field(default_factory=Learned)
    """The correction of what samples say."""
    learned_s: float | None = None
    """What samples say, corrected, in seconds."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing of a tier."""
    work: Work | None = None
    """How much it does, to be compared with other sizes; None where that is not known."""


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


def refuse_unsampled(device_id: str, notes: Sequence[str] = (), *, is_wanted: bool) -> DeviceError:
    """Say what is missing for an answer without samples."""
    if not is_wanted:
        return DeviceError(
            f"{device_id}: nothing may be sampled, and the analytic model is not wanted"
        )
    told = "".join(f"{one}; " for one in notes)
    return DeviceError(
        f"{device_id}: no estimate without sampling: {told}the device was not calibrated; "
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
    estimate, evidence, learned = basis.estimate, basis.evidence, basis.learned
    fused = fuse(pieces)
    warnings: list[str] = []
    tier = _TIERS[fused.leading_kind]
    missing = {} if remembered.piece else {Tier.HISTORY.value: remembered.absence}
    missing |= basis.missing
    if learned.log_factor is not None and methods.uses(Tier.HYBRID):
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
    methods_s = list_methods(basis, remembered, pieces).items()
    return replace(
        estimate,
        interval=evidence.model.surround(fused, estimate.coverage),
        tier=tier,
        in_domain=estimate.in_domain and (learned.log_factor is None or learned.in_domain),
        estimates_s={name: seconds for name, seconds in methods_s if methods.uses(name)},
        warnings=(
            *estimate.warnings, *_list_failures(basis, remembered), *warnings,
            *list_contradictions(pieces), *list_doubts(remembered.facts),
        ),
        explanation=replace(
            estimate.explanation or Explanation(tier=tier),
            tier=tier,
            interval=origin,
            missing=missing,
            pieces=list_pieces(fused),
            evidence=evidence.origin,
            model=learned.facts,
            influences=learned.influences,
            history=remembered.facts,
        ),
    )  # fmt: skip


def choose_pieces(
    basis: Basis, remembered: Remembered, sizes: Sequence[Piece], methods: MethodChoice
) -> tuple[Piece, ...]:
    """Give what may answer of all that is known; all of it where nothing may."""
    observed = () if remembered.piece is None else (remembered.piece,)
    known = (*observed, *sizes, *basis.pieces)
    if methods.wanted is None:
        return known
    wanted = {Tier.LINEAR} if methods.uses(Tier.HYBRID) else set()
    wanted |= {tier for tier in Tier if methods.uses(tier)}
    return tuple(one for one in known if _TIERS[one.kind] in wanted) or known


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
        > max(_LEAST_CONTRADICTION, _CONTRADICT * math.sqrt(variance + other_variance))
    ]


def list_pieces(fused: FusedEstimate) -> tuple[PieceFacts, ...]:
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


def _list_failures(basis: Basis, remembered: Remembered) -> list[str]:
    found = [f"an evidence model was passed over: {one}" for one in basis.evidence.failures]
    if basis.learned.failure:
        found.append(f"no learned correction: {basis.learned.failure}")
    if remembered.failure:
        found.append(f"no history: {remembered.failure}")
    return found


def list_methods(basis: Basis, remembered: Remembered, pieces: Sequence[Piece]) -> dict[str, float]:
    found = dict(basis.estimate.estimates_s)
    for one in pieces:
        tier = _TIERS[one.kind]
        if tier in {Tier.SIZES, Tier.LEARNED}:
            found[tier.value] = math.exp(one.log_seconds)
    if basis.learned_s is not None:
        found[Tier.HYBRID.value] = basis.learned_s
    if remembered.interval is not None:
        found[Tier.HISTORY.value] = remembered.interval.seconds
    return found
