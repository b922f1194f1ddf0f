"""Keeps the answers of launches in step with samples, observations and models."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.checking import add_estimate
from kernelcast.predictor.answering.composing import (
    Remembered,
    answer_from_history,
    keep_methods,
    widen,
)
from kernelcast.predictor.answering.contention import forget_old_contention
from kernelcast.predictor.answering.doubts import update_doubts
from kernelcast.predictor.answering.identity import stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.predictor.known_launches import KnownLaunch, KnownLaunches
from kernelcast.predictor.shadow import ShadowRecord, ShadowRecords
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import ObservationFlag

_SHIFTED = (
    "recent observations differ from what was answered before: the launch was sampled anew, and "
    "the interval holds both"
)
_SHIFTED_UNSAMPLED = (
    "recent observations differ from what was answered before, and nothing may be sampled: the "
    "interval holds both"
)

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
    """

    def __init__(
        self,
        answerer: Answerer,
        policy: Policy,
        take_driver: Callable[[DeviceDescription], None],
        *,
        remembers: bool = True,
    ) -> None:
        self.launches = KnownLaunches()
        self.shadow = ShadowRecords()
        self._answerer = answerer
        self._policy = policy
        self._take_driver = take_driver
        self._remembers = remembers

    def renew(self) -> None:
        """Have answers made anew, since another version of a model is to be used."""
        for known in self.launches.list_all():
            with known.lock:
                if known.answer is not None and known.answer.tier is Tier.HISTORY:
                    continue
                known.answer = known.sampled = None
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
        known = self._find(identity)
        with known.sampling:
            known = self._make_ready(known, request)
            known.device = request.device
            if composes:
                self.compose_all([(request, known)])
        if self._remembers and not request.is_live:
            files = stamp_files(request.problem)
            self.launches.remember_asked(request.problem, request.device.id, known, files)
        return known

    def recall(self, request: LaunchRequest, beside: Estimate | None = None) -> Estimate | None:
        """Answer from observations of exactly this launch; None without any that are believed.

        An answer `beside` that stands is given back where it now has to say of others observations
        that they are not believed.
        """
        identity = request.identify()
        if identity is None:
            return None
        known = self._find(identity)
        history = self._recall(known, request.policy)
        if known.absence is not None:
            return None
        self._answerer.check(history, request)
        usual = history.answer(request.policy.settings.coverage)
        if usual is not None:
            return answer_from_history(request.device, known.identity, usual, history.describe())
        updated = None if beside is None else update_doubts(beside, history.describe())
        return None if updated is beside else updated

    def _find(self, identity: LaunchIdentity) -> KnownLaunch:
        return self.launches.find(identity) if self._remembers else KnownLaunch(identity=identity)

    def _make_ready(self, known: KnownLaunch, request: LaunchRequest) -> KnownLaunch:
        """Recall what was observed; sample where that does not answer."""
        with known.lock:
            history = self._recall(known, request.policy)
            if known.answer is None and known.sampled is None:
                self._answerer.check(history, request)
            if known.answer is not None or self._has_history(known, request.policy):
                return known
            if known.outcome is not None and known.before_shift is None:
                return known
        if not request.policy.settings.samples:
            return self._model(known, request)
        return self._take_outcome(known, request, self._answerer.sample(request))

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
            known.answer = known.sampled = None
        return known

    def _model(self, known: KnownLaunch, request: LaunchRequest) -> KnownLaunch:
        """Let the analytic model answer alone; after a shift, what was observed since then."""
        with known.lock:
            usual = self._usual(known, request.policy)
            if usual is not None and known.before_shift is not None:
                held = widen(usual, known.before_shift)
                found = self._answer_from_history(known, held, request.policy, request.device)
                known.answer = found and replace(found, warnings=(_SHIFTED_UNSAMPLED,))
                known.before_shift = None
                return known
        remembered = known.absence or Remembered()
        estimate = self._answerer.answer_unsampled(request, remembered)
        with known.lock:
            known.sampled = replace(estimate, identity=known.identity)
            known.device = request.device
            add_estimate(self._recall(known, request.policy), known.sampled)
            known.answer = self._choose(known, request.policy)
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
        settings = policy.settings
        is_allowed = settings.uses_history and policy.methods.uses(Tier.HISTORY)
        return bool(
            is_allowed and not settings.measure and known.history and known.before_shift is None
        )

    def compose_all(self, launches: Sequence[Ask]) -> None:
        """Make the answers of launches that have none; each learned model is asked once."""
        new = [
            (request, known, outcome)
            for request, known in launches
            if known.answer is None
            and known.sampled is None
            and (outcome := known.outcome) is not None
        ]
        learned = self._answerer.learn([(request.policy, outcome) for request, _, outcome in new])
        for (request, known, outcome), found in zip(new, learned, strict=True):
            with known.lock:
                history = self._recall(known, request.policy)
                remembered = self._answerer.remember(known.absence or history, request.policy)
                if known.before_shift is not None:
                    remembered = replace(remembered, absence="its times have shifted")
                answer = self._answerer.compose(request, outcome, found, remembered)
                known.sampled, known.shadow_s = answer.estimate, answer.shadow_s
                add_estimate(history, answer.estimate)
        for request, known in launches:
            with known.lock:
                if known.answer is None:
                    known.answer = self._choose(known, request.policy)

    def _choose(self, known: KnownLaunch, policy: Policy) -> Estimate | None:
        """Give the best answer there is."""
        sampled, usual = known.sampled, self._usual(known, policy)
        if sampled is not None:
            facts = self._recall(known, policy).describe()
            sampled = known.sampled = update_doubts(sampled, facts)
        if usual is None:
            return sampled
        if self._has_history(known, policy):
            return self._answer_from_history(known, usual, policy, known.device)
        if sampled is not None and known.before_shift is not None:
            known.before_shift = None
            held = widen(sampled.interval, usual)
            warnings = (*sampled.warnings, _SHIFTED)
            return replace(sampled, interval=held, warnings=warnings)
        return sampled

    def _answer_from_history(
        self,
        known: KnownLaunch,
        interval: Interval,
        policy: Policy,
        device: DeviceDescription | None,
    ) -> Estimate | None:
        if device is None:  # observed, and never asked for
            return known.sampled
        facts = self._recall(known, policy).describe()
        found = answer_from_history(device, known.identity, interval, facts, beside=known.sampled)
        kept = keep_methods(found.estimates_s, policy.methods.wanted)
        return replace(found, estimates_s=kept)

    def _usual(self, known: KnownLaunch, policy: Policy) -> Interval | None:
        """Give the usual time of a launch, by what was observed."""
        return self._recall(known, policy).answer(policy.settings.coverage)

    def require(self, known: KnownLaunch, request: LaunchRequest) -> Estimate:
        """Give the answer; another thread may have found just now that times have shifted."""
        answer = known.answer
        while answer is None:
            known = self.ask(request)
            answer = known.answer
        return forget_old_contention(answer)

    def take(self, known: KnownLaunch, seen: Seen) -> frozenset[ObservationFlag]:
        """Judge an observation of a launch, and change its answer accordingly."""
        with known.lock:
            policy = self._policy
            history, before = self._recall(known, policy), known.answer
            self._record_shadow(known, seen)
            verdict = history.add(seen)
            if verdict.has_shifted:
                known.before_shift = before.interval if before else self._usual(known, policy)
                known.answer = known.sampled = None
            elif verdict.flags <= _CHANGING and before is not None and known.before_shift is None:
                known.answer = self._choose(known, policy)
            return verdict.flags

    def _record_shadow(self, known: KnownLaunch, seen: Seen) -> None:
        method, answer = self._policy.methods.shadow, known.answer
        if method is None or known.shadow_s is None or answer is None or seen.is_first:
            return
        self.shadow.add(
            ShadowRecord(
                launch_key=known.identity.key,
                device_id=known.identity.device.id,
                kernel=known.identity.kernel.name,
                method=method,
                tier=answer.tier.value,
                shadow_s=known.shadow_s,
                answered_s=answer.seconds,
                measured_s=seen.seconds,
            )
        )
