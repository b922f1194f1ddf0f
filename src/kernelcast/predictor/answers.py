"""The one way to an answer: recall, sample, model, compose; kept in step with what changes."""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.machines import find_stand_in
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import CORRECTED
from kernelcast.predictor.answering.composing import (
    NOT_ASKED,
    Basis,
    add_models,
    answer_statically,
    compose,
    correct,
    counts_history,
    explain_unsampled,
    tell_evidence,
    weigh_models,
)
from kernelcast.predictor.answering.launch_history import (
    DOUBTED,
    NO_HISTORY,
    LaunchHistory,
    Seen,
    check_history,
    expect,
)
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS, LaunchRequest
from kernelcast.predictor.answering.memory import (
    USUAL_OVERHEAD_S,
    Answer,
    KnownLaunch,
    Memory,
    SamplesStore,
    choose_by_sizes,
    choose_more,
    count_items,
    measure_launch,
    name_size,
)
from kernelcast.predictor.answering.policy import BUSY, Policy, hold
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    EstimateTask,
    ModelTask,
    annotate,
    append_moments,
    put_analytic,
)
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.contention import list_contention
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError, KernelcastError
from kernelcast.records.estimates import Estimate, Interval, format_seconds
from kernelcast.records.explanation import AnalyticEstimate, Explanation, Tier
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import LaunchIdentity, Problem
from kernelcast.sampling.host import FRESH_S, ContentionMeter
from kernelcast.training.settings import STATIC_MODEL

Foretell = Callable[[Problem, DeviceDescription], float | None]
"""Gives the seconds of a launch by a model that needs no samples; None where it has no answer."""
_NO_SAMPLES: Final = "nothing may be sampled"


@dataclass(slots=True, kw_only=True)
class Answers:
    """Makes answers; threads share one, and one sampling at a time runs on a device."""

    policy: Policy
    """What observations are judged by; each launch that is asked for has its own."""
    trained_models: TrainedModels
    memory: Memory
    samples_store: SamplesStore | None = None
    """Where samples of launches are kept for other processes; None means nowhere."""
    foretell: Foretell = lambda *_: None
    meter: ContentionMeter | None = None
    """Measures what other programs do when an answer is asked for; None where that is not known."""
    take_driver: Callable[[DeviceDescription], None] = lambda _: None
    note_asked: Callable[[LaunchRequest, KnownLaunch], None] = lambda *_: None
    new_s: dict[str, float] = field(default_factory=dict)
    """Host time that the sampling of the last new kernel of a device took beside its samples."""
    busy: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )

    def ask(self, request: LaunchRequest) -> tuple[KnownLaunch, Estimate]:
        """Find the launch, and its answer; make it where none stands."""
        if self.meter is not None:
            self.meter.note(request.device)
        answer = None
        while answer is None:  # another thread may have found just now that it has to be made anew
            known = self._find(request)
            with hold(known.sampling, request.limit, BUSY):
                self._refresh(known)
                if not self._is_answered(known, request):
                    known = self._make_ready(known, request)
                answer = self._compose(request, known)
        if request.remembers:
            self.note_asked(request, known)
        return known, answer

    def foretell_launch(self, request: LaunchRequest) -> tuple[Estimate | None, bool]:
        """Answer by what is known without running anything; tell whether that is the last word."""
        settings, known = request.policy.settings, self._find(request)
        self._refresh(known)
        if self._is_answered(known, request):
            told = self._compose(request, known)
            return told, told is not None
        guess = KnownLaunch(identity=known.identity, history=known.history)
        kept = self._recall_samples(request) if settings.samples else None
        if kept is not None:
            guess.outcome = kept.as_kept(settings.coverage)
        else:
            try:
                guess.basis = self._model_alone(request, known.identity)
            except DeviceError:
                guess.basis = self._describe(request, known.identity)
        told = self._compose(request, guess)
        if told is None or settings.measure or not settings.samples:
            return told, not settings.samples
        # What a sampling may take, its builds included.
        usual_s = self.new_s.get(request.device.id, USUAL_OVERHEAD_S)
        cost_s = self.memory.kernel_of(known.identity).find_overhead(usual_s)
        cost_s += settings.plan.budget * told.seconds
        if settings.least_gain * cost_s <= told.high:
            return told, False
        why = (
            f"samples would take {format_seconds(cost_s)}, a run of it "
            f"{format_seconds(told.seconds)}: run it, and tell `observe` what it took"
        )
        return explain_unsampled(told, why), True

    def recall_history(self, request: LaunchRequest) -> LaunchHistory:
        """Give what was observed of a launch, held against all that is known of it."""
        known = self._find(request)
        history = self._recall(known, request.policy)
        if history.absence != NO_HISTORY:
            raise DeviceError(history.absence)
        check_history(history, request.problem, request.device, request.executor)
        return history

    def make_answer(self, known: KnownLaunch, request: LaunchRequest, estimate: Estimate) -> Answer:
        """Give an answer, its samples, and what makes a better one of it where there is any."""
        outcome = known.outcome
        settings = request.policy.settings
        can_refine = settings.samples and not settings.measure and not request.is_live
        if outcome is None or not can_refine or not known.is_open:
            return Answer(estimate=estimate, recording=known.record())
        before = outcome.without_launches()  # it is kept for as long as the answer

        def refine() -> Answer:
            more = KnownLaunch(identity=known.identity)
            more.take_samples(self.sample_once(request, before))
            better = self._compose(request, more)
            assert better is not None  # samples answer
            return self.make_answer(more, request, self.as_now(better))

        return Answer(estimate=estimate, recording=known.record(), refine=refine)

    def sample_once(self, request: LaunchRequest, outcome: EstimateOutcome) -> EstimateOutcome:
        """Add a moment, at other places, for one moment's share of the budget; keep the samples."""
        quiet = replace(request, progress=lambda _: None, limit=None)
        found = self._sample(quiet, 1, outcome, wants_row=False)
        before, more = outcome.estimate, found.estimate
        outcome = replace(
            outcome,
            moments=append_moments(outcome.moments, found.moments),
            estimate=replace(
                before,
                sampling_seconds=before.sampling_seconds + more.sampling_seconds,
                sampled_work_groups=before.sampled_work_groups + more.sampled_work_groups,
            ),
        )
        if self.samples_store is not None:
            self.samples_store.keep(request, outcome)
        return outcome

    def as_now(self, answer: Estimate) -> Estimate:
        """Have an answer say what other programs do now; its time alone stands."""
        if self.meter is None:
            return answer
        known = answer.explanation or Explanation(tier=answer.tier)
        told = known.contention
        if told is not None and (datetime.now(UTC) - told.measured_at).total_seconds() < FRESH_S:
            return answer
        seen = self.meter.measure(answer.device_id)
        if seen == told:
            return answer
        old = list_contention(told)
        kept = [one for one in answer.warnings if one not in old]
        warnings = (*list_contention(seen), *kept)
        return replace(answer, warnings=warnings, explanation=replace(known, contention=seen))

    def take(self, identity: LaunchIdentity, seen: Seen) -> frozenset[ObservationFlag]:
        """Judge an observation of a launch, and change its answer accordingly."""
        known = self.memory.find(identity)
        with known.lock:
            history = self._recall(known, self.policy)
            flags = history.add(seen)
            if flags <= DOUBTED and known.answer is not None:
                known.answer = self._choose(known, self.policy)
            before = self._stamp(known.identity)
            ndrange = known.identity.ndrange
            if ndrange is not None and ndrange.local_size is not None:
                told = known.identity.parameters.get(INSTRUCTIONS)
                size = known.basis.size if known.basis else count_items(ndrange, told)
                kernel = self.memory.kernel_of(known.identity)
                kernel.observe(name_size(known.identity), size, history)
            if known.stamp == before:  # other sizes' answers have to be made anew, not its own
                known.stamp = self._stamp(known.identity)
        return flags

    def _stamp(self, identity: LaunchIdentity) -> tuple[int, int]:
        return self.trained_models.generation, self.memory.kernel_of(identity).version

    def _find(self, request: LaunchRequest) -> KnownLaunch:
        identity = request.identify()
        return self.memory.find(identity) if request.remembers else KnownLaunch(identity=identity)

    def _refresh(self, known: KnownLaunch) -> None:
        if (history := known.history) is not None and time.monotonic() > known.recalled_s + 5.0:
            known.recalled_s = time.monotonic()  # other processes observe too
            with suppress(KernelcastError):
                for seen in history.list_missing(self.memory.recall(known.identity)):
                    self.take(known.identity, seen)
        stamp = self._stamp(known.identity)
        with known.lock:
            before, known.stamp = known.stamp, stamp
            if before == stamp:
                return
            known.answer = None
            if known.outcome is not None:  # other sizes tell of the sampler's errors, too
                known.basis = None
            if before[0] != stamp[0]:
                known.basis, known.is_compared = None, False
                if known.outcome is not None and known.outcome.row is None:
                    known.outcome = None  # there was no model to make features for

    def _is_answered(self, known: KnownLaunch, request: LaunchRequest) -> bool:
        """Recall what was observed; tell whether nothing has to be sampled or modelled."""
        with known.lock:
            policy = request.policy
            history = self._recall(known, policy)
            if known.answer is None and known.basis is None:
                check_history(history, request.problem, request.device, request.executor)
            if known.answer is not None or known.outcome is not None:
                return True
            if policy.settings.measure or not (counts_history(policy) and history):
                return False
            if known.basis is None:
                known.basis = self._describe(request, known.identity)
            return True

    def _make_ready(self, known: KnownLaunch, request: LaunchRequest) -> KnownLaunch:
        """Sample a launch as often as that pays, or have models tell of it."""
        policy, identity = request.policy, known.identity
        if not policy.settings.samples:
            known.basis = self._model_alone(request, identity)
            return known
        moments, kept = policy.settings.plan.moments, None
        if request.remembers or policy.spares_samples:
            kept, kernel = self._recall_samples(request), self.memory.kernel_of(identity)
            if kept is None:
                basis = self._describe(request, identity)
                moments = choose_by_sizes(kernel, identity, basis, policy)
                if not moments:
                    spared = (
                        "it was not sampled: other sizes were observed, and samples would cost "
                        "more than they tell"
                    )
                    missing = dict.fromkeys(basis.missing, spared)
                    known.basis = replace(basis, missing=missing)
                    return known
            else:
                model = self.trained_models.find_evidence(request.device).model
                moments = choose_more(kept, identity, policy.settings, kernel, model)
                if not moments:
                    free = kept.as_kept(policy.settings.coverage)
                    return self._take_outcome(known, request, free)
        limit, wants_row = request.limit, self._wants_row(request)
        if not (kept and kept.recording.facts) and limit is not None and not limit.goes_on:
            # Callers who wait no longer have samples without the features that learned models need.
            wants_row = wants_row and limit.left_s > 1.0
        with hold(self.busy[request.device.id], limit, BUSY):
            outcome = self._sample(request, moments, kept, wants_row=wants_row)
        # Keep what it took beside its samples, less what another size need not pay.
        one, device_id = outcome.estimate, request.device.id
        kernel = self.memory.kernel_of(request.as_run(outcome).identify())
        beside_s = one.overhead_seconds - MOMENTS_APART_S * (len(outcome.moments) - 1)
        # The first sampling opens the device, and tries it out.
        most_s = math.inf if device_id in self.new_s else USUAL_OVERHEAD_S
        if kernel.overhead_s is None:
            self.new_s[device_id] = min(max(beside_s, 0.0), most_s + one.build_seconds)
        kernel.overhead_s = min(max(beside_s - one.build_seconds, 0.0), most_s)
        if kept is not None:
            outcome = replace(outcome, moments=append_moments(kept.moments, outcome.moments))
        if self.samples_store is not None:
            self.samples_store.keep(request, outcome)
        return self._take_outcome(known, request, outcome)

    def _sample(
        self,
        request: LaunchRequest,
        moments: int,
        kept: EstimateOutcome | None,
        *,
        wants_row: bool,
    ) -> EstimateOutcome:
        """Have the device sample at so many moments more than those that are kept."""
        policy, limit, settings = request.policy, request.limit, request.policy.settings
        # Each moment has its share of the budget, at other places than those taken before.
        taken, share = len(kept.moments) if kept else 0, moments / settings.plan.moments
        plan = replace(
            settings.plan, moments=moments, seed=settings.plan.seed + taken,
            budget=settings.plan.budget * share,
        )  # fmt: skip
        task = EstimateTask(
            problem=request.problem,
            device_id=request.device.id,
            settings=replace(settings, plan=plan),
            wants_row=wants_row,
            wants_counts=wants_row and self.trained_models.takes_counters(request.device),
            facts=kept.recording.facts if kept else None,
            ends_s=None if limit is None or limit.goes_on else limit.ends_s,
            waits_for_device=limit is not None,
            runs_end_s=time.monotonic() + policy.timeout_s,
        )
        return request.executor.sample(task, timeout_s=policy.timeout_s, report=request.report)

    def _compose(self, request: LaunchRequest, known: KnownLaunch) -> Estimate | None:
        with known.lock:
            if known.answer is None:
                if known.basis is None and known.outcome is not None:
                    known.basis = self._weigh_samples(request, known.outcome)
                known.answer = self._choose(known, request.policy)
            return known.answer

    def _take_outcome(
        self, known: KnownLaunch, request: LaunchRequest, outcome: EstimateOutcome
    ) -> KnownLaunch:
        """Keep samples under the launch that really ran."""
        ran = request.as_run(outcome)
        if ran.device.driver != request.device.driver:
            self.take_driver(ran.device)
            self.memory.forget_device(ran.device.id)
        identity = ran.identify()
        if request.remembers:
            known = self.memory.join(known, identity)
        elif identity.key != known.identity.key:
            known.identity, known.history = identity, None
        with known.lock:
            self._recall(known, request.policy)
            known.take_samples(outcome.without_launches() if request.remembers else outcome)
            known.stamp = self._stamp(known.identity)
        return known

    def _recall(self, known: KnownLaunch, policy: Policy) -> LaunchHistory:
        """Give what was observed of a launch; the store is asked once."""
        if known.history is None:
            ndrange = known.identity.ndrange
            if not counts_history(policy):
                known.history = LaunchHistory(absence=NOT_ASKED)
            elif ndrange is None or ndrange.local_size is None:
                absence = "the device chooses the local size; name one, so that repeats can be told"
                known.history = LaunchHistory(absence=absence)
            else:
                try:
                    known.history = self.memory.recall(known.identity)
                    known.recalled_s = time.monotonic()
                except KernelcastError as error:
                    failure = f"the store of observations does not answer: {error}"
                    known.history = LaunchHistory(absence=failure, failure=failure)
        return known.history

    def _recall_samples(self, request: LaunchRequest) -> EstimateOutcome | None:
        """Find earlier samples of exactly this launch, whichever process took them."""
        settings = request.policy.settings
        may_spare = request.remembers or request.policy.spares_samples
        is_wanted = may_spare and settings.uses_history and not settings.measure
        if self.samples_store is None or not is_wanted:
            return None
        found = self.samples_store.find(request)
        if found is None or found.row is not None or found.row_failure:
            return found
        return None if self._wants_row(request) else found  # there was no model to make one for

    def _wants_row(self, request: LaunchRequest) -> bool:
        """Tell whether features are worth their cost: some model of the device waits for them."""
        policy, device = request.policy, request.device
        if not policy.settings.uses_models:
            return False
        corrects = self.trained_models.find_evidence(device).model.correction is not None
        return (policy.uses(Tier.HYBRID) and corrects) or any(
            self.trained_models.has(device.id, name) for name in policy.models
        )

    def _weigh_samples(self, request: LaunchRequest, outcome: EstimateOutcome) -> Basis:
        """Weigh samples, and correct what they say by what was learned of such launches."""
        estimate, facts, policy = outcome.estimate, outcome.recording.facts, request.policy
        identity = request.as_run(outcome).identify()
        evidence = self.trained_models.find_evidence(request.device)
        kernel = self.memory.kernel_of(identity)
        pieces = [*outcome.recording.pieces]
        if not pieces:
            foretold_s = self.foretell(request.problem, request.device)
            pieces = kernel.weigh_samples(outcome.moments, name_size(identity), evidence.model)
            pieces += weigh_models(evidence.model, estimate, foretold_s)
        fused = fuse([one for one in pieces if one.kind in CORRECTED] or pieces)
        notes = (*estimate.explain().notes, *(facts.notes if facts else ()))
        estimate = annotate(replace(estimate, identity=identity), notes=notes)
        estimate = add_models(self.trained_models, estimate, outcome, policy)
        basis = Basis(
            estimate=tell_evidence(estimate, evidence),
            pieces=tuple(pieces),
            model=evidence.model,
            size=measure_launch(request.problem, identity, estimate.ndrange, facts),
        )
        basis = correct(basis, evidence.facts, outcome, fused, policy)
        if outcome.depends_on_contents is not None:
            kernel.depends_on_contents = outcome.depends_on_contents
        if outcome.moments:
            log_seconds = fused.log_seconds + (basis.log_factor or 0.0)
            size = replace(basis.size, at_s=time.time())
            known = basis.model.know_estimate(size, replace(fused, log_seconds=log_seconds))
            with kernel.lock:
                kernel.estimated[name_size(identity)] = known, outcome.moments
        return basis

    def _model_alone(self, request: LaunchRequest, identity: LaunchIdentity) -> Basis:
        device, policy = request.device, request.policy
        basis, kernel = self._describe(request, identity), self.memory.kernel_of(identity)

        def is_told_by_sizes() -> bool:
            """Tell whether other sizes answer, some of them observed."""
            is_any_observed = kernel.count_observed(identity, policy) > 0
            return is_any_observed and bool(kernel.ask(identity, basis, policy))

        if is_told_by_sizes():
            return basis
        asks_static = (
            policy.settings.uses_models
            and policy.uses(Tier.LEARNED)
            and self.trained_models.has(device.id, STATIC_MODEL)
        )
        stand_in = find_stand_in(device)
        task = ModelTask(
            problem=request.problem,
            device_id=device.id,
            stand_in=stand_in.id if stand_in else "",
            wants_values=asks_static,
        )
        outcome = request.executor.model(task, timeout_s=policy.timeout_s, report=request.report)
        if outcome.depends_on_contents is not None:
            kernel.depends_on_contents = outcome.depends_on_contents
        is_wanted = policy.uses(Tier.ANALYTIC)
        found = outcome.analytic if is_wanted else None
        basis = self._describe(request, identity, found, outcome.notes)
        if asks_static:
            basis = answer_statically(self.trained_models, basis, outcome.values)
        if not (basis.pieces or is_told_by_sizes()):
            told = "".join(f"{one}; " for one in basis.estimate.warnings)
            msg = (
                f"{device.id}: no estimate without sampling: {told}the device was not calibrated; "
                f"`kernelcast calibrate --device {device.id}` makes the description that the "
                "analytic model needs, or allow sampling"
                if is_wanted
                else f"{device.id}: nothing may be sampled, and the analytic model is not wanted"
            )
            raise DeviceError(msg)
        return replace(basis, estimate=replace(basis.estimate, ndrange=outcome.ndrange))

    def _describe(
        self,
        request: LaunchRequest,
        identity: LaunchIdentity,
        analytic: AnalyticEstimate | None = None,
        notes: Sequence[str] = (),
    ) -> Basis:
        problem, device = request.problem, request.device
        coverage = request.policy.settings.coverage
        ndrange = identity.ndrange or problem.ndrange
        estimate = Estimate(
            device=device.name,
            device_id=device.id,
            kernel=problem.kernel.name,
            ndrange=ndrange,
            compute_units=device.compute_units,
            # How long it takes is not said yet.
            interval=Interval(seconds=1.0, low=1.0, high=1.0, coverage=coverage),
            tier=Tier.ANALYTIC,
            identity=identity,
            explanation=Explanation(
                tier=Tier.ANALYTIC, notes=(*notes, *(analytic.notes if analytic else ()))
            ),
        )
        evidence = self.trained_models.find_evidence(device)
        estimate, doubt = put_analytic(estimate, analytic), analytic.doubt if analytic else 0.0
        pieces = weigh_models(evidence.model, estimate, self.foretell(problem, device), doubt)
        return Basis(
            estimate=tell_evidence(estimate, evidence),
            pieces=tuple(pieces),
            model=evidence.model,
            missing={Tier.HYBRID.value: _NO_SAMPLES, Tier.LINEAR.value: _NO_SAMPLES},
            size=measure_launch(problem, identity, ndrange, None),
        )

    def _choose(self, known: KnownLaunch, policy: Policy) -> Estimate | None:
        """Fuse all that is known; None where the launch was observed and never asked for."""
        basis = known.basis
        if basis is None:
            return None
        history = self._recall(known, policy)
        identity = basis.estimate.identity or known.identity
        sizes = self.memory.kernel_of(identity).ask(identity, basis, policy)
        if not known.is_compared and (basis.pieces or sizes):
            alone, _ = compose(basis, LaunchHistory(), sizes, policy)
            assert alone is not None  # of the pieces that there are
            known.expected = expect(alone, by_clock=bool(known.outcome and known.outcome.by_clock))
            known.is_compared = True
            self.memory.find(identity).expected = known.expected
            history.expect(known.expected)
        made, known.pieces = compose(basis, history, sizes, policy)
        return made
