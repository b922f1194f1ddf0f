"""Turns what was sampled, remembered and forecast into one estimate of the best tier there is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelcast.predictor.answering.doubts import NO_HISTORY, list_doubts
from kernelcast.predictor.answering.forecasting import RowForecast
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.predictor.answering.trained_models import FoundModel
from kernelcast.records.device import DeviceDescription
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.explanation import Explanation, HistoryFacts, Influence
from kernelcast.records.launch_identity import LaunchIdentity

_NO_MODEL = "no learned model of this device is installed (`kernelcast train` makes one)"
_MOST_WIDENED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a learned model has led to.

    Parameters
    ----------
    found : FoundModel or None
        The model, where there is one.
    forecast : RowForecast or None
        Its answer.
    influences : tuple of Influence
        Features that matter most to it.
    failure : str
        What went wrong, if something did.
    absence : str
        Why there is no answer although nothing went wrong.
    passed_over : str
        Why models that would have been better cannot be used.
    """

    found: FoundModel | None = None
    forecast: RowForecast | None = None
    influences: tuple[Influence, ...] = ()
    failure: str = ""
    absence: str = _NO_MODEL
    passed_over: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What earlier observations of the launch say.

    Parameters
    ----------
    interval : Interval or None
        The usual time; None where there are no observations.
    facts : HistoryFacts or None
        How many, and from when.
    absence : str
        Why there is none, or why it does not answer.
    failure : str
        What went wrong, if something did.
    """

    interval: Interval | None = None
    facts: HistoryFacts | None = None
    absence: str = NO_HISTORY
    failure: str = ""


def add_learned(estimate: Estimate, learned: Learned) -> Estimate:
    """Let a learned model answer in the place of the linear one, where it can.

    Outside the model's domain the linear answer stands, its interval widened to hold the learned
    one, as far as that makes sense (see `widen_outside`).
    """
    known = estimate.explain()
    facts = learned.found.facts if learned.found else None
    known = replace(known, model=facts, influences=learned.influences)
    if learned.passed_over:
        told = f"a learned model was passed over: {learned.passed_over}"
        estimate = replace(estimate, warnings=(*estimate.warnings, told))
    forecast = learned.forecast
    if forecast is None:
        missing = {**known.missing, Tier.HYBRID.value: learned.failure or learned.absence}
        warning = (f"no learned correction: {learned.failure}",) if learned.failure else ()
        return replace(
            estimate,
            warnings=(*estimate.warnings, *warning),
            explanation=replace(known, missing=missing),
        )
    interval = forecast.interval
    estimates_s = {**estimate.estimates_s, Tier.HYBRID.value: interval.seconds}
    if forecast.in_domain:
        origin = (
            "errors of the learned model on kernels that its training held out, scaled by what "
            "this launch's samples and features say of its difficulty (conformal)"
        )
        return replace(
            estimate,
            interval=interval,
            tier=Tier.HYBRID,
            estimates_s=estimates_s,
            explanation=replace(known, interval=origin),
        )
    why = (
        "the launch is unlike those that the learned model was trained on: the linear model "
        "answers, with a wider interval"
    )
    return replace(
        estimate,
        interval=widen_outside(estimate.interval, interval),
        estimates_s=estimates_s,
        in_domain=False,
        warnings=(*estimate.warnings, why),
        explanation=replace(
            known,
            missing={**known.missing, Tier.HYBRID.value: why},
            interval="the samples, and as much of the learned model's interval as half of theirs",
        ),
    )


def add_history(estimate: Estimate, remembered: Remembered) -> Estimate:
    """Put what was observed beside the sampled answer."""
    known = replace(estimate.explain(), history=remembered.facts)
    known = replace(known, missing={Tier.HISTORY.value: remembered.absence, **known.missing})
    estimates_s = dict(estimate.estimates_s)
    if remembered.interval is not None:
        estimates_s[Tier.HISTORY.value] = remembered.interval.seconds
    failure = (f"no history: {remembered.failure}",) if remembered.failure else ()
    warnings = (*estimate.warnings, *failure, *list_doubts(remembered.facts))
    return replace(estimate, estimates_s=estimates_s, warnings=warnings, explanation=known)


def answer_from_history(
    device: DeviceDescription,
    identity: LaunchIdentity,
    interval: Interval,
    facts: HistoryFacts,
    *,
    beside: Estimate | None = None,
) -> Estimate:
    """Answer a launch that was observed before.

    Parameters
    ----------
    device : DeviceDescription
        The device.
    identity : LaunchIdentity
        The launch.
    interval : Interval
        Its usual time.
    facts : HistoryFacts
        How many observations.
    beside : Estimate, optional
        An answer by samples: its methods stay side by side with history.
    """
    if identity.ndrange is None:  # never stored so by estimates
        msg = "history needs an index space"
        raise AssertionError(msg)
    methods = beside.estimates_s if beside else {}
    told = beside.explain() if beside else Explanation(tier=Tier.HISTORY)
    return Estimate(
        device=device.name,
        device_id=device.id,
        kernel=beside.kernel if beside else identity.kernel.name,
        ndrange=identity.ndrange,
        compute_units=device.compute_units,
        saturation=beside.saturation if beside else None,
        sample_work_groups=beside.sample_work_groups if beside else (0, 0),
        sampled_work_groups=beside.sampled_work_groups if beside else 0,
        interval=interval,
        tier=Tier.HISTORY,
        estimates_s={**methods, Tier.HISTORY.value: interval.seconds},
        sampling_seconds=beside.sampling_seconds if beside else 0.0,
        overhead_seconds=beside.overhead_seconds if beside else 0.0,
        limiter=beside.limiter if beside else None,
        compile_seconds=beside.compile_seconds if beside else None,
        launch_seconds=beside.launch_seconds if beside else None,
        identity=identity,
        warnings=list_doubts(facts),
        explanation=replace(
            told,
            tier=Tier.HISTORY,
            missing={},
            interval=_describe_history(facts),
            history=facts,
        ),
    )


def take_outcome(outcome: EstimateOutcome, identity: LaunchIdentity | None) -> Estimate:
    """Give the sampled answer with its identity and the notes of what was found beside it."""
    estimate = outcome.estimate
    notes = outcome.facts.notes if outcome.facts else ()
    known = estimate.explain()
    return replace(
        estimate,
        identity=identity,
        explanation=replace(known, notes=(*known.notes, *notes)),
    )


def keep_methods(
    estimates_s: Mapping[str, float], wanted: frozenset[str] | None
) -> dict[str, float]:
    """Leave out methods that were not asked for."""
    known = estimates_s.items()
    return {name: seconds for name, seconds in known if wanted is None or name in wanted}


def widen(one: Interval, other: Interval) -> Interval:
    """Give the first answer with ends that hold both intervals."""
    return replace(one, low=min(one.low, other.low), high=max(one.high, other.high))


def widen_outside(own: Interval, learned: Interval) -> Interval:
    """Widen the samples' interval by a learned model's outside its domain, within limits.

    A model far from what it knows may answer anything within a factor of a hundred. On the
    logarithmic scale an end moves out by at most half its distance from the answer.
    """
    held = widen(own, learned)
    return replace(
        held,
        low=max(held.low, own.low * (own.low / own.seconds) ** _MOST_WIDENED),
        high=min(held.high, own.high * (own.high / own.seconds) ** _MOST_WIDENED),
    )


def _describe_history(facts: HistoryFacts) -> str:
    return (
        f"what {facts.observations} observations of this very launch differ by"
        if facts.observations > 1
        else "one observation of this very launch, and what single runs usually differ by"
    )
