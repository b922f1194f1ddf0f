"""What the page *Accuracy* shows: predictions from one source, of one method, on one device."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kernelcast.service.pages.accuracy.reasons import tell_reasons
from kernelcast.service.pages.accuracy.scores import (
    DriftBin,
    Judged,
    KernelScore,
    MethodScore,
    MethodScores,
    bin_by_time,
    list_errors,
    mean_errors,
    score_kernels,
    score_methods,
)
from kernelcast.service_state import AnswerRecord

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.held_launches import HeldLaunch, HeldLaunches
    from kernelcast.reports.accuracy.judging import ExplainedError, ValidationReport
    from kernelcast.reports.accuracy.model_answers import ModelAnswer, OpenModel

LINEAR: Final = "linear"
HISTORY: Final = "history"
_PREFERRED: Final = ("hybrid", "hybrid_pooled", LINEAR, HISTORY)
_MOST_WORST: Final = 12


class Source(StrEnum):
    """Where predictions and measured times come from."""

    OBSERVATIONS = "observations"
    """What the store holds."""
    VALIDATION = "validation"
    """What models in use were found to be worth on kernels that they had not seen."""
    ANSWERS = "answers"
    """What was answered, and what was observed then."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccuracyState:
    """Everything that the page may show."""

    held: "HeldLaunches"
    models: tuple["OpenModel", ...] = ()
    """Models in use that could be loaded."""
    answers: Mapping[str, Mapping[str, "ModelAnswer"]] = field(default_factory=dict)
    """Answers, by the models' kind and the launches' keys."""
    reports: tuple["ValidationReport", ...] = ()
    """Of the models in use, or the one that was asked for."""
    compared: tuple[AnswerRecord, ...] = ()
    """Answers that were observed since, newest first."""
    shifts: Mapping[str, datetime] = field(default_factory=dict)
    """When it became certain of a launch that it takes another time, by its key."""
    explanations: tuple["ExplainedError", ...] = ()
    """Of stored comparisons, newest first."""
    failures: tuple[str, ...] = ()
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstKernel:
    """A kernel and why it is predicted badly."""

    score: KernelScore
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyView:
    """The page's content."""

    source: Source
    devices: tuple[str, ...]
    methods: tuple[str, ...]
    device: str
    method: str
    """What was chosen; empty where there is nothing to choose of."""
    scores: MethodScores
    rows: tuple[Judged, ...]
    """Predictions of the method on the device, of other launches than the other methods' too."""
    kernels: tuple[KernelScore, ...]
    """Worst first."""
    worst: tuple[WorstKernel, ...]
    drift: tuple[DriftBin, ...]
    """Oldest first."""
    noise: float | None
    errors: Mapping[str, Sequence[float]]
    """By method, on the launches that all have predicted."""
    noises: Sequence[float]
    """Of these launches, least first."""

    @property
    def score(self) -> MethodScore | None:
        """How good the chosen method was, on all of its launches."""
        return score_methods(self.rows).methods[0] if self.rows else None


def make_view(
    state: AccuracyState, source: Source, device: str = "", method: str = ""
) -> AccuracyView:
    """Choose what is shown."""
    every = list(_LISTS[source](state))
    counts = Counter(one.device_id for one in every)
    devices = tuple(sorted(counts))
    shown = device if device in counts else next((one for one, _ in counts.most_common(1)), "")
    here = [one for one in every if one.device_id == shown]
    scores = score_methods(here)
    methods = tuple(one.method for one in scores.methods)
    chosen = method if method in methods else _prefer(methods)
    rows = tuple(one for one in here if one.method == chosen)
    linear = _find_linear(state, source, shown, here, rows)
    kernels = score_kernels(rows, linear)
    noise = [one.noise for one in rows if one.noise is not None]
    errors, noises = list_errors(here)
    return AccuracyView(
        source=source,
        devices=devices,
        methods=methods,
        device=shown,
        method=chosen,
        scores=scores,
        rows=rows,
        kernels=kernels,
        worst=tuple(
            WorstKernel(
                score=one,
                reasons=tell_reasons(one, chosen, _find_explanations(state, shown, chosen, one)),
            )
            for one in kernels[:_MOST_WORST]
        ),
        drift=bin_by_time(rows),
        noise=sum(noise) / len(noise) if noise else None,
        errors=errors,
        noises=noises,
    )


def _prefer(methods: Sequence[str]) -> str:
    return next((one for one in _PREFERRED if one in methods), methods[0] if methods else "")


def list_observed(state: AccuracyState) -> Iterator[Judged]:
    """Give predictions of launches of the store, by every method."""
    launches = state.held.launches
    for kind, answers in state.answers.items():
        for one in launches:
            known = answers.get(one.key)
            if known is not None:
                yield replace(
                    _judge(kind, one, known.seconds), low=known.low, high=known.high,
                    in_domain=known.in_domain,
                )  # fmt: skip
    for one in launches:
        if one.linear_s is not None:
            yield _judge(LINEAR, one, one.linear_s)
    for one in launches:
        if one.remembered is not None:
            # An answer before the newest observation: the median holds those it was made of.
            answer = one.remembered.answer
            yield replace(
                _judge(HISTORY, one, answer.seconds), measured_s=one.remembered.measured_s,
                low=answer.low, high=answer.high,
            )  # fmt: skip


def _judge(method: str, one: "HeldLaunch", seconds: float) -> Judged:
    return Judged(
        method=method, launch=one.key, kernel=one.kernel, device_id=one.device_id,
        measured_s=one.seconds, seconds=seconds, observations=one.observations, noise=one.noise,
        when=one.when, shifted_at=one.shifted_at,
    )  # fmt: skip


def _list_validated(state: AccuracyState) -> Iterator[Judged]:
    launches = {one.sampled_key: one for one in state.held.launches if one.sampled_key}
    for report in state.reports:
        rows = report.rows
        for model in rows.models:
            columns = zip(
                rows.keys, rows.kernels, rows.devices, rows.measured_s, model.seconds, model.low,
                model.high, model.in_domain, strict=True,
            )  # fmt: skip
            for key, kernel, device, measured_s, seconds, low, high, known in columns:
                if seconds is None:
                    continue
                held = launches.get(key)
                yield Judged(
                    method=model.model, launch=key, kernel=kernel, device_id=device,
                    measured_s=measured_s, seconds=seconds, low=low, high=high, in_domain=known,
                    noise=None if held is None else held.noise,
                    when=None if held is None else held.when,
                )  # fmt: skip


def _list_answered(state: AccuracyState) -> Iterator[Judged]:
    """Give the last answer of each tier to each launch."""
    last = {(one.launch_key, one.tier): one for one in reversed(state.compared)}
    for one in last.values():
        if one.measured_s is None:
            continue
        yield Judged(
            method=one.tier, launch=one.launch_key, kernel=one.kernel, device_id=one.device_id,
            measured_s=one.measured_s, seconds=one.seconds * one.slowdown,
            low=one.low * one.slowdown, high=one.high * one.slowdown, when=one.observed_at,
            shifted_at=state.shifts.get(one.launch_key),
        )  # fmt: skip


_LISTS: Final = {
    Source.OBSERVATIONS: list_observed,
    Source.VALIDATION: _list_validated,
    Source.ANSWERS: _list_answered,
}


def _find_linear(
    state: AccuracyState,
    source: Source,
    device: str,
    here: Sequence[Judged],
    rows: Sequence[Judged],
) -> dict[str, float]:
    """Give the linear model's errors by kernel; a model's own report has them by group."""
    found = mean_errors((one for one in here if one.method == LINEAR), rows)
    if found or source is not Source.VALIDATION:
        return found
    return {
        group.group: group.linear_error
        for report in state.reports
        for score in report.scores
        if score.device == device
        for group in score.groups
        if group.linear_error is not None
    }


def _find_explanations(
    state: AccuracyState, device: str, method: str, score: KernelScore
) -> list["ExplainedError"]:
    return [
        one
        for one in state.explanations
        if (one.device, one.kernel, one.attribution.model) == (device, score.kernel, method)
    ]
