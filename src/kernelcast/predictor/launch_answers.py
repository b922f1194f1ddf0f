"""Keeps the answers of launches in step with samples, observations and models."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kernelcast.models.evidence.piece import Piece
from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.composing import (
    NOTHING,
    Remembered,
    choose_pieces,
    compose,
    explain_unsampled,
)
from kernelcast.predictor.answering.doubts import update_doubts
from kernelcast.predictor.answering.identity import stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.predictor.answering.time_limit import BUSY, hold
from kernelcast.predictor.known_launches import KnownLaunch, KnownLaunches
from kernelcast.predictor.refining import Refiner
from kernelcast.records.contention import list_contention
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError, InputError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Explanation, Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.readable_times import format_seconds
from kernelcast.sampling.contention_meter import FRESH_S, ContentionMeter

_SPARED = (
    "it was not sampled: other sizes were observed, and samples would cost more than they tell"
)

_COSTLY = "samples would take {}: run it, and tell `observe` what it took"

_CHANGING = frozenset({ObservationFlag.DOUBTED})

Ask = tuple[LaunchRequest, KnownLaunch]


class LaunchAnswers:
    """The one way to an answer: recall, sample, model, compose; threads share one.

    Parameters
    ----------
    answerer : Answerer
        Finds the parts.
    policy : Policy
        What observations are judged by; each launch that is asked for has its own.
    take_driver : callable
        Is told of a device whose driver is another than it was.
    remembers : bool
        Whether a launch that was answered is answered from memory the next time.
    refiner : Refiner or None
        Samples launches again later.
    meter : ContentionMeter or None
        Measures what other programs do when an answer is asked for; None where that is not known.
    """

    def __init__(
        self,
        answerer: Answerer,
        policy: Policy,
        take_driver: Callable[[DeviceDescription], None],
        *,
        remembers: bool = True,
        refiner: Refiner | None = None,
        meter: ContentionMeter | None = None,
    ) -> None:
        self.launches = KnownLaunches()
        self._answerer = answerer
        self._policy = policy
        self._take_driver = take_driver
        self._remembers = remembers
        self._refiner = refiner
        self.meter = meter

    def renew(self) -> None:
        """Have answers made anew, since another version of a model is to be used."""
        self._answerer.corrections.forget()
        for known in self.launches.list_all():
            with known.lock:
                known.answer = known.sampled = known.basis = None
                if known.outcome is not None and known.outcome.row is None:
                    known.outcome = None  # there was no model to make features for

    def ask(self, request: LaunchRequest, *, composes: bool = True) -> KnownLaunch:
        """Find the launch and see to it that it can be answered.

        Raises
        ------
        KernelcastError
            If no tier has an answer; says what is missing.
        """
        identity = request.identify()
        if identity is None:
            # Says which file cannot be read.
            self._answerer.sample(request)
            msg = f"{request.problem.name}: the files of its buffers cannot be read"
            raise InputError(msg)
        if self.meter is not None:
            self.meter.note(request.device)
        known = self._find(identity)
        with hold(known.sampling, request.limit, BUSY):
            known = self._make_ready(known, request)
            known.device = request.device
            if composes:
                self.compose_all([(request, known)])
        if self._remembers and not request.is_live:
            files = stamp_files(request.problem)
            self.launches.remember_asked(request.problem, request.device.id, known, files)
            if self._refiner is not None:
                self._refiner.note(request, known)
        return known

    def foretell(self, request: LaunchRequest) -> tuple[Estimate | None, bool]:
        """Answer by what is known without running anything; tell whether that is the last word.

        Nothing of it is remembered. Without samples it is the last word where a run of the launch
        takes no longer than they would.

        Raises
        ------
        KernelcastError
            If the launch cannot be used.
        """
        identity, settings = request.identify(), request.policy.settings
        if identity is None:
            return None, False
        known = self._find(identity)
        if self._is_answered(known, request):
            self.compose_all([(request, known)])
            return known.answer, known.answer is not None
        guess = KnownLaunch(
            identity=known.identity,
            device=request.device,
            history=known.history,
            absence=known.absence,
        )
        may_spare = settings.samples and (self._remembers or request.policy.spares_samples)
        kept = self._answerer.recall_samples(request) if may_spare else None
        if kept is not None:
            guess.outcome = kept.as_kept(settings.coverage)
        else:
            try:
                guess.basis = self._answerer.model_alone(request, identity)
            except DeviceError:
                guess.basis = self._answerer.describe(request, identity)
        self.compose_all([(request, guess)])
        told = guess.answer
        if told is None or settings.measure or not settings.samples:
            return told, not settings.samples
        cost_s = self._answerer.evidence.expect_cost(identity) + settings.plan.budget * told.seconds
        if settings.least_gain * cost_s <= told.high:
            return told, False
        costs = f"{format_seconds(cost_s)}, a run of it {format_seconds(told.seconds)}"
        return explain_unsampled(told, _COSTLY.format(costs)), True

    def recall(self, request: LaunchRequest, beside: Estimate | None = None) -> Estimate | None:
        """Answer from observations of exactly this launch; None without any that are believed.

        An answer `beside` that stands is given back where it now has to say of others observations
        that they are not believed.
        """
        identity = request.identify(asks=False)
        if identity is None:
            return None
        known = self._find(identity)
        history = self._recall(known, request.policy)
        if known.absence is not None:
            return None
        self._answerer.check(history, request)
        if len(history):
            with known.lock:
                known.device = request.device
                known.basis = self._answerer.describe(request, known.identity)
                return self._choose(known, request.policy)
        updated = None if beside is None else update_doubts(beside, history.describe())
        return None if updated is beside else updated

    def _find(self, identity: LaunchIdentity) -> KnownLaunch:
        return self.launches.find(identity) if self._remembers else KnownLaunch(identity=identity)

    def _make_ready(self, known: KnownLaunch, request: LaunchRequest) -> KnownLaunch:
        """Recall what was observed; sample where that does not answer, as often as that pays."""
        if self._is_answered(known, request):
            return known
        if not request.policy.settings.samples:
            return self._model(known, request)
        may_spare = self._remembers or request.policy.spares_samples
        kept = self._answerer.recall_samples(request) if may_spare else None
        if kept is None:
            moments = self._count_moments(known, request)
            if not moments:
                return known
        else:
            moments = self._answerer.evidence.choose_more(kept, known.identity, request)
            if not moments:
                return self._take_outcome(
                    known, request, kept.as_kept(request.policy.settings.coverage)
                )
        request = request.with_moments(moments)
        return self._take_outcome(known, request, self._answerer.sample(request, kept))

    def _is_answered(self, known: KnownLaunch, request: LaunchRequest) -> bool:
        """Recall what was observed; tell whether nothing has to be sampled or modelled."""
        with known.lock:
            history = self._recall(known, request.policy)
            if known.answer is None and known.basis is None:
                self._answerer.check(history, request)
            if known.answer is not None or known.outcome is not None:
                return True
            if not self._has_history(known, request.policy):
                return False
            if known.basis is None:
                known.basis = self._answerer.describe(request, known.identity)
            return True

    def keep_samples(self, request: LaunchRequest, known: KnownLaunch) -> None:
        """Have the next process find the samples of a launch."""
        if known.outcome is not None:
            self._answerer.keep_samples(request, known.outcome)

    def _count_moments(self, known: KnownLaunch, request: LaunchRequest) -> int:
        """Say how often to sample; not at all where what is known answers well enough."""
        most = request.policy.settings.plan.moments
        if not (self._remembers or request.policy.spares_samples):
            return most
        basis = self._answerer.describe(request, known.identity)
        basis = replace(basis, missing=dict.fromkeys(basis.missing, _SPARED))
        moments = self._answerer.evidence.choose_moments(basis, known.identity, request.policy)
        if not moments:
            with known.lock:
                known.basis = basis
        return moments

    def _take_outcome(
        self, known: KnownLaunch, request: LaunchRequest, outcome: EstimateOutcome
    ) -> KnownLaunch:
        """Keep samples under the launch that really ran."""
        ran = request.as_run(outcome)
        if ran.device.driver != request.device.driver:
            self._take_driver(ran.device)
        identity = ran.identify()
        if identity is not None and self._remembers:
            known = self.launches.join(known, identity)
        elif identity is not None and identity.key != known.identity.key:
            known.identity, known.history = identity, None
        with known.lock:
            self._recall(known, request.policy)
            known.outcome = outcome.without_launches() if self._remembers else outcome
            known.answer = known.sampled = known.basis = None
        return known

    def _model(self, known: KnownLaunch, request: LaunchRequest) -> KnownLaunch:
        """Find what is known without running anything."""
        basis = self._answerer.model_alone(request, known.identity)
        with known.lock:
            known.basis = basis
        return known

    def _recall(self, known: KnownLaunch, policy: Policy) -> LaunchHistory:
        """Give what was observed of a launch; the store is asked once."""
        if known.history is not None:
            return known.history
        found = self._answerer.recall(known.identity, policy)
        known.absence = found if isinstance(found, Remembered) else None
        known.history = LaunchHistory() if isinstance(found, Remembered) else found
        return known.history

    def _has_history(self, known: KnownLaunch, policy: Policy) -> bool:
        """Tell whether observations answer a launch."""
        is_allowed = self._counts_history(policy) and not policy.settings.measure
        return bool(is_allowed and known.history)

    @staticmethod
    def _counts_history(policy: Policy) -> bool:
        return policy.settings.uses_history and policy.methods.uses(Tier.HISTORY)

    def compose_all(self, launches: Sequence[Ask]) -> None:
        """Make the answers of launches that have none; each learned model is asked once."""
        new = [
            (request, known, outcome)
            for request, known in launches
            if known.answer is None
            and known.basis is None
            and (outcome := known.outcome) is not None
        ]
        found = self._answerer.learn([(request, outcome) for request, _, outcome in new])
        for (_, known, _), basis in zip(new, found, strict=True):
            with known.lock:
                known.basis = basis
        for request, known in launches:
            with known.lock:
                known.device = request.device
                if known.answer is None:
                    known.answer = self._choose(known, request.policy)

    def _choose(self, known: KnownLaunch, policy: Policy) -> Estimate | None:
        """Fuse all that is known; None where the launch was observed and never asked for."""
        basis, device = known.basis, known.device
        if basis is None or device is None:
            return None
        history = self._recall(known, policy)
        identity = basis.estimate.identity or known.identity
        sizes = self._answerer.evidence.ask_sizes(basis, identity, policy)
        made: Estimate | None = None
        pieces: tuple[Piece, ...] = ()
        if known.sampled is None and (basis.pieces or sizes):
            pieces = choose_pieces(basis, NOTHING, sizes, policy.methods)
            made = known.sampled = compose(basis, NOTHING, pieces, policy.methods)
            by_clock = known.outcome is not None and known.outcome.by_clock
            self._answerer.keep_estimate(made, history, by_clock=by_clock)
        is_told = known.absence is None or (len(history) and self._counts_history(policy))
        told = history if is_told else known.absence or NOTHING
        remembered = self._answerer.remember(told, policy, device)
        if remembered.piece is None and not sizes and not basis.pieces:
            return None
        if made is None or remembered is not NOTHING:
            pieces = choose_pieces(basis, remembered, sizes, policy.methods)
            made = compose(basis, remembered, pieces, policy.methods)
        known.pieces = pieces
        return made

    def require(self, known: KnownLaunch, request: LaunchRequest) -> Estimate:
        """Give the answer; another thread may have found just now that it has to be made anew."""
        answer = known.answer
        while answer is None:
            known = self.ask(request)
            answer = known.answer
        return self.as_now(answer)

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
        return replace(
            answer,
            warnings=(*list_contention(seen), *kept),
            explanation=replace(known, contention=seen),
        )

    def take(self, known: KnownLaunch, seen: Seen) -> frozenset[ObservationFlag]:
        """Judge an observation of a launch, and change its answer accordingly."""
        with known.lock:
            policy = self._policy
            history = self._recall(known, policy)
            verdict = history.add(seen)
            if verdict.flags <= _CHANGING and known.answer is not None:
                known.answer = self._choose(known, policy)
            work = known.basis.work if known.basis else None
            is_new = self._answerer.evidence.observe(known.identity, work, history)
        if is_new:
            self.launches.renew_sizes(known.identity)
        return verdict.flags
