"""Keeps the answers of launches in step with samples, observations and models."""

import threading
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
from kernelcast.predictor.answering.doubts import update_doubts
from kernelcast.predictor.answering.identity import stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.known_launches import KnownLaunch, KnownLaunches
from kernelcast.predictor.shadow import ShadowRecord, ShadowRecords
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.explanation import Tier
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import Problem

_SHIFTED = (
    "recent observations differ from what was answered before: the launch was sampled anew, and "
    "the interval holds both"
)
_SHIFTED_UNSAMPLED = (
    "recent observations differ from what was answered before, and nothing may be sampled: the "
    "interval holds both"
)

_CHANGING = frozenset({ObservationFlag.DOUBTED})

Ask = tuple[Problem, DeviceDescription, KnownLaunch]


class LaunchAnswers:
    """The answers of all launches that were asked for or observed; threads share one.

    Parameters
    ----------
    answerer : Answerer
        Samples, recalls and corrects.
    take_driver : callable
        Is told of a device whose driver is another than it was.
    """

    def __init__(
        self, answerer: Answerer, take_driver: Callable[[DeviceDescription], None]
    ) -> None:
        self.launches = KnownLaunches()
        self.shadow = ShadowRecords()
        self._answerer = answerer
        self._take_driver = take_driver
        self._busy: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Have answers made anew, since another version of a model is to be used."""
        for known in self.launches.list_all():
            with known.lock:
                if known.answer is not None and known.answer.tier is Tier.HISTORY:
                    continue
                known.answer = known.sampled = None
                if known.outcome is not None and known.outcome.row is None:
                    known.outcome = None  # there was no model to make features for

    def ask(
        self, problem: Problem, device: DeviceDescription, *, composes: bool = True
    ) -> KnownLaunch:
        """Find the launch and see to it that it can be answered."""
        identity = self._answerer.identify(problem, device)
        if identity is None:
            # Says which file cannot be read.
            self._answerer.sample(problem, device)
            msg = f"{problem.name}: the files of its buffers cannot be read"
            raise InputError(msg)
        known = self.launches.find(identity)
        with known.sampling:
            known = self._make_ready(known, problem, device)
            known.device = device
            if composes:
                self.compose_all([(problem, device, known)])
        self.launches.remember_asked(problem, device.id, known, stamp_files(problem))
        return known

    def _make_ready(
        self, known: KnownLaunch, problem: Problem, device: DeviceDescription
    ) -> KnownLaunch:
        """Recall what was observed; sample where that does not answer."""
        settings = self._answerer.settings
        with known.lock:
            history = self._recall(known)
            if known.answer is None and known.sampled is None:
                self._answerer.check(history, problem, device)
            if known.answer is not None or self._has_history(known):
                return known
            if known.outcome is not None and known.before_shift is None:
                return known
        if not settings.samples:
            return self._model(known, problem, device)
        with self._lock:
            busy = self._busy.setdefault(device.id, threading.RLock())
        with busy:
            outcome = self._answerer.sample(problem, device)
        ran = outcome.recording.device
        if ran.id == device.id and ran.driver != device.driver:
            self._take_driver(ran)
        chosen = replace(problem, ndrange=outcome.estimate.ndrange)
        identity = self._answerer.identify(chosen, ran if ran.id == device.id else device)
        if identity is not None:
            known = self.launches.join(known, identity)
        with known.lock:
            self._recall(known)
            known.keep_outcome(outcome)
            known.answer = known.sampled = None
        return known

    def _model(
        self, known: KnownLaunch, problem: Problem, device: DeviceDescription
    ) -> KnownLaunch:
        """Let the analytic model answer alone; after a shift, what was observed since then."""
        with known.lock:
            usual = self._usual(known)
            if usual is not None and known.before_shift is not None:
                held = widen(usual, known.before_shift)
                found = self._answer_from_history(known, held, device)
                known.answer = found and replace(found, warnings=(_SHIFTED_UNSAMPLED,))
                known.before_shift = None
                return known
        remembered = known.absence or Remembered()
        estimate = self._answerer.answer_unsampled(problem, device, remembered)
        with known.lock:
            known.sampled = replace(estimate, identity=known.identity)
            known.device = device
            add_estimate(self._recall(known), known.sampled)
            known.answer = self._choose(known)
        return known

    def _recall(self, known: KnownLaunch) -> LaunchHistory:
        """Give what was observed of a launch; the store is asked once."""
        if known.history is not None:
            return known.history
        found = self._answerer.recall(known.identity)
        known.absence = found if isinstance(found, Remembered) else None
        known.history = LaunchHistory() if isinstance(found, Remembered) else found
        return known.history

    def _has_history(self, known: KnownLaunch) -> bool:
        """Tell whether observations answer a launch."""
        settings, methods = self._answerer.settings, self._answerer.methods
        is_allowed = settings.uses_history and methods.uses(Tier.HISTORY) and not settings.measure
        return bool(is_allowed and known.history and known.before_shift is None)

    def compose_all(self, launches: Sequence[Ask]) -> None:
        """Make the answers of launches that have none; each learned model is asked once."""
        new = [
            (problem, device, known, outcome)
            for problem, device, known in launches
            if known.answer is None
            and known.sampled is None
            and (outcome := known.outcome) is not None
        ]
        learned = self._answerer.learn([outcome for *_, outcome in new])
        for (problem, device, known, outcome), found in zip(new, learned, strict=True):
            with known.lock:
                remembered = self._answerer.remember(
                    known.identity, known.absence or self._recall(known)
                )
                if known.before_shift is not None:
                    remembered = replace(remembered, absence="its times have shifted")
                answer = self._answerer.compose(problem, device, outcome, found, remembered)
                known.sampled, known.shadow_s = answer.estimate, answer.shadow_s
                add_estimate(self._recall(known), answer.estimate)
        for _, _, known in launches:
            with known.lock:
                if known.answer is None:
                    known.answer = self._choose(known)

    def _choose(self, known: KnownLaunch) -> Estimate | None:
        """Give the best answer there is."""
        sampled, usual = known.sampled, self._usual(known)
        if sampled is not None:
            sampled = known.sampled = update_doubts(sampled, self._recall(known).describe())
        if usual is None:
            return sampled
        if self._has_history(known):
            return self._answer_from_history(known, usual, known.device)
        if sampled is not None and known.before_shift is not None:
            known.before_shift = None
            held = widen(sampled.interval, usual)
            warnings = (*sampled.warnings, _SHIFTED)
            return replace(sampled, interval=held, warnings=warnings)
        return sampled

    def _answer_from_history(
        self, known: KnownLaunch, interval: Interval, device: DeviceDescription | None
    ) -> Estimate | None:
        if device is None:  # observed, and never asked for
            return known.sampled
        facts = self._recall(known).describe()
        found = answer_from_history(device, known.identity, interval, facts, beside=known.sampled)
        kept = keep_methods(found.estimates_s, self._answerer.methods.wanted)
        return replace(found, estimates_s=kept)

    def _usual(self, known: KnownLaunch) -> Interval | None:
        """Give the usual time of a launch, by what was observed."""
        return self._recall(known).answer(self._answerer.settings.coverage)

    def require(self, known: KnownLaunch, problem: Problem, device: DeviceDescription) -> Estimate:
        """Give the answer; another thread may have found just now that times have shifted."""
        answer = known.answer
        while answer is None:
            known = self.ask(problem, device)
            answer = known.answer
        return answer

    def take(self, known: KnownLaunch, seen: Seen) -> frozenset[ObservationFlag]:
        """Judge an observation of a launch, and change its answer accordingly."""
        with known.lock:
            history, before = self._recall(known), known.answer
            self._record_shadow(known, seen)
            verdict = history.add(seen)
            if verdict.has_shifted:
                known.before_shift = before.interval if before else self._usual(known)
                known.answer = known.sampled = None
            elif verdict.flags <= _CHANGING and before is not None and known.before_shift is None:
                known.answer = self._choose(known)
            return verdict.flags

    def _record_shadow(self, known: KnownLaunch, seen: Seen) -> None:
        method, answer = self._answerer.methods.shadow, known.answer
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
