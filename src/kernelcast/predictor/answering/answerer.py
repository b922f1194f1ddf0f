"""Answers launches by the best tier there is: remembers, samples, corrects, or models."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernelcast.launches.machines import machine_path
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.predictor.answering.analytic_tier import (
    Spread,
    answer_analytically,
    find_spread,
)
from kernelcast.predictor.answering.asking import (
    EstimateOutcome,
    EstimateTask,
    LaunchFacts,
    ModelTask,
)
from kernelcast.predictor.answering.checking import check_history
from kernelcast.predictor.answering.composing import (
    Learned,
    Remembered,
    add_history,
    add_learned,
    answer_from_history,
    keep_methods,
    take_outcome,
)
from kernelcast.predictor.answering.devices_at_work import Asker, ChildProcesses, ReportProgress
from kernelcast.predictor.answering.doubts import NOT_BELIEVED
from kernelcast.predictor.answering.facts_store import FactsStore
from kernelcast.predictor.answering.identity import FileStamps, identify_launch, stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.methods import MethodChoice
from kernelcast.predictor.answering.shelf import ModelShelf
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError, InputError, KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.records.feature_vector import FeatureSchema

_FACTS_KEPT = 1000
_NOT_ASKED = "it was not asked for"
_NO_LOCAL_SIZE = "the device chooses the local size; name one, so that repeats can be told"
_NO_SAMPLES = "nothing may be sampled"

FactsKey = tuple[str, str, str, str, FileStamps, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate with what it was made of.

    Parameters
    ----------
    estimate : Estimate
        The answer.
    outcome : EstimateOutcome or None
        The samples, where there are any.
    shadow_s : float or None
        What the method in the shadow says, in seconds.
    """

    estimate: Estimate
    outcome: EstimateOutcome | None = None
    shadow_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Answerer:
    """Makes estimates of launches on devices.

    Parameters
    ----------
    settings : EstimateSettings
        Budget, coverage, what may be used.
    shelf : ModelShelf
        Learned models.
    memory : Memory or None
        What was observed before; None means that nothing is remembered.
    asker : Asker
        Has devices sample.
    methods : MethodChoice
        Which methods answer.
    timeout_s : float
        Time limit of one device, in seconds.
    facts_store : FactsStore or None
        Where facts about launches are kept for other processes; None means nowhere.

    Notes
    -----
    Threads may share one; whoever samples on a device sees to it that nobody else does.
    """

    settings: EstimateSettings
    shelf: ModelShelf
    memory: Memory | None
    asker: Asker = field(default_factory=ChildProcesses)
    methods: MethodChoice = field(default_factory=MethodChoice)
    timeout_s: float = DEFAULT_TIMEOUT_S
    facts_store: FactsStore | None = None
    _facts: OrderedDict[FactsKey, LaunchFacts | str] = field(default_factory=OrderedDict)
    _spreads: dict[tuple[str, int], tuple[Spread, tuple[str, ...]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self,
        problem: Problem,
        device: DeviceDescription,
        *,
        report: ReportProgress = lambda _: None,
    ) -> Answer:
        """Answer one launch on one device.

        Raises
        ------
        KernelcastError
            If no tier has an answer; says what is missing.
        """
        identity = self.identify(problem, device)
        remembered = self.remember(identity, self.recall(identity, problem, device))
        is_allowed = self.methods.uses(Tier.HISTORY) and not self.settings.measure
        if is_allowed and remembered.interval and remembered.facts and identity:
            estimate = answer_from_history(device, identity, remembered.interval, remembered.facts)
            return Answer(estimate=estimate)
        if not self.settings.samples:
            return Answer(
                estimate=self.answer_unsampled(problem, device, remembered, report=report)
            )
        outcome = self.sample(problem, device, report=report)
        learned = self.learn([outcome])[0]
        return self.compose(problem, device, outcome, learned, remembered)

    def identify(self, problem: Problem, device: DeviceDescription) -> LaunchIdentity | None:
        """Say what the launch is remembered under; None if a buffer's file cannot be read."""
        try:
            return identify_launch(problem, device, seed=self.settings.seed)
        except InputError:  # sampling will say so better
            return None

    def recall(
        self,
        identity: LaunchIdentity | None,
        problem: Problem | None = None,
        device: DeviceDescription | None = None,
    ) -> LaunchHistory | Remembered:
        """Give what was observed of a launch, held against physics; or why that is not known."""
        if not (self.settings.uses_history and self.methods.computes(Tier.HISTORY)):
            return Remembered(absence=_NOT_ASKED)
        if self.memory is None or identity is None:
            return Remembered(absence="there is no store of observations")
        if identity.ndrange is None or identity.ndrange.local_size is None:
            return Remembered(absence=_NO_LOCAL_SIZE)
        try:
            history = self.memory.recall(identity)
        except KernelcastError as error:
            failure = f"the store of observations does not answer: {error}"
            return Remembered(absence=failure, failure=failure)
        if problem is not None and device is not None:
            self.check(history, problem, device)
        return history

    def check(self, history: LaunchHistory, problem: Problem, device: DeviceDescription) -> None:
        """Have a history set aside what cannot be; see `check_history`."""
        check_history(history, problem, device, self.asker)

    def remember(
        self, identity: LaunchIdentity | None, history: LaunchHistory | Remembered
    ) -> Remembered:
        """Say what the history of a launch is worth."""
        if isinstance(history, Remembered):
            return history
        interval = None if identity is None else history.answer(self.settings.coverage)
        if interval is None:
            facts = history.describe()
            return (
                Remembered(facts=facts, absence=NOT_BELIEVED) if facts.set_aside else Remembered()
            )
        absence = "whole runs are measured for comparison" if self.settings.measure else ""
        return Remembered(interval=interval, facts=history.describe(), absence=absence)

    def sample(
        self,
        problem: Problem,
        device: DeviceDescription,
        *,
        report: ReportProgress = lambda _: None,
    ) -> EstimateOutcome:
        """Sample a launch, and make its features where a learned model waits for them.

        Raises
        ------
        KernelcastError
            If the launch cannot be sampled.
        """
        key = self._key_of(problem, device)
        known = self._find_facts(key)
        wants_row = self._wants_row(device.id) and not isinstance(known, str)
        task = EstimateTask(
            problem=problem,
            device_id=device.id,
            settings=self.settings,
            wants_row=wants_row,
            facts=known if isinstance(known, LaunchFacts) else None,
        )
        outcome = self.asker.sample(task, timeout_s=self.timeout_s, report=report)
        if isinstance(known, str):
            return replace(outcome, row_failure=known)
        if wants_row and known is None:
            self._keep_facts(key, outcome.facts or outcome.row_failure)
        return outcome

    def learn(self, outcomes: Sequence[EstimateOutcome]) -> list[Learned]:
        """Ask the learned models of some samplings, each model once for all its launches."""
        found: list[Learned] = [self._find_model(one) for one in outcomes]
        from kernelcast.predictor.answering.forecasting import find_influences, forecast_rows

        for model in {id(one.found): one.found for one in found if one.found}.values():
            places = [place for place, one in enumerate(found) if one.found is model]
            rows = [row for place in places if (row := outcomes[place].row) is not None]
            fitted, schema = model.stored.model, model.stored.schema
            answers = forecast_rows(fitted, rows, schema, self.settings.coverage)
            for place, row, answer in zip(places, rows, answers, strict=True):
                found[place] = (
                    replace(found[place], failure=answer)
                    if isinstance(answer, str)
                    else replace(
                        found[place],
                        forecast=answer,
                        influences=find_influences(fitted, row, schema),
                    )
                )
        return found

    def compose(
        self,
        problem: Problem,
        device: DeviceDescription,
        outcome: EstimateOutcome,
        learned: Learned,
        remembered: Remembered,
    ) -> Answer:
        """Make the answer of all that is known."""
        identity = self._identify_sampled(problem, device, outcome)
        estimate = self._add_hybrid(take_outcome(outcome, identity), learned)
        estimate = self._add_models(add_history(estimate, remembered), outcome)
        methods = self.methods
        shadow_s = None if methods.shadow is None else estimate.estimates_s.get(methods.shadow)
        kept = keep_methods(estimate.estimates_s, methods.wanted)
        estimate = replace(estimate, estimates_s=kept)
        self._keep_estimate(estimate)
        return Answer(estimate=estimate, outcome=outcome, shadow_s=shadow_s)

    def answer_unsampled(
        self,
        problem: Problem,
        device: DeviceDescription,
        remembered: Remembered,
        *,
        report: ReportProgress = lambda _: None,
    ) -> Estimate:
        """Answer by the analytic model alone.

        Raises
        ------
        DeviceError
            If the device was not calibrated, or the method is not wanted.
        KernelcastError
            If the model has no answer.
        """
        if not self.methods.uses(Tier.ANALYTIC):
            msg = f"{device.id}: nothing may be sampled, and the analytic model is not wanted"
            raise DeviceError(msg)
        task = ModelTask(problem=problem, device_id=device.id)
        outcome = self.asker.model(task, timeout_s=self.timeout_s, report=report)
        spread, failures = self._find_spread(device.id)
        estimate = answer_analytically(problem, device, outcome, spread, self.settings.coverage)
        known = estimate.explain()
        missing = {Tier.HYBRID.value: _NO_SAMPLES, Tier.LINEAR.value: _NO_SAMPLES}
        estimate = replace(
            estimate,
            identity=self.identify(problem, device),
            warnings=(*estimate.warnings, *failures),
            explanation=replace(known, missing=missing),
        )
        self._keep_estimate(estimate)
        return add_history(estimate, remembered)

    def _keep_estimate(self, estimate: Estimate) -> None:
        if self.memory is not None:
            self.memory.keep_estimate(estimate)

    def _wants_row(self, device_id: str) -> bool:
        """Tell whether features are worth their cost: some model of the device waits for them."""
        if not self.settings.uses_models:
            return False
        names = [None] if self.methods.computes(Tier.HYBRID) else []
        return any(
            self.shelf.has(device_id) if name is None else self.shelf.has(device_id, name)
            for name in [*names, *self.methods.models]
        )

    def _find_model(self, outcome: EstimateOutcome) -> Learned:
        if not (self.settings.uses_models and self.methods.computes(Tier.HYBRID)):
            return Learned(absence=_NOT_ASKED)
        device_id = outcome.estimate.device_id
        if outcome.row is None:
            return Learned(failure=outcome.row_failure)
        lookup = self.shelf.find(device_id, outcome.row.vector.schema)
        failures = "; ".join(lookup.failures)
        if lookup.found is None:
            return Learned(failure=failures)
        return Learned(found=lookup.found, passed_over=failures)

    def _add_hybrid(self, estimate: Estimate, learned: Learned) -> Estimate:
        """Let the learned model answer; in the shadow it only stands beside the answer."""
        if self.methods.uses(Tier.HYBRID):
            return add_learned(estimate, learned)
        found = add_learned(estimate, Learned(absence=_NOT_ASKED))
        if learned.forecast is None:
            return found
        beside = {Tier.HYBRID.value: learned.forecast.interval.seconds}
        return replace(found, estimates_s={**found.estimates_s, **beside})

    def _add_models(self, estimate: Estimate, outcome: EstimateOutcome) -> Estimate:
        """Put other models of the registry side by side."""
        row = outcome.row
        if row is None or not self.methods.models:
            return estimate
        from kernelcast.predictor.answering.forecasting import forecast_methods

        schema = row.vector.schema
        lookups = {
            name: self.shelf.find(estimate.device_id, schema, name) for name in self.methods.models
        }
        models = {name: one.found.stored for name, one in lookups.items() if one.found}
        found_s = forecast_methods(models, row)
        failures = [
            f"{name} does not stand beside the answer: {'; '.join(one.failures)}"
            for name, one in lookups.items()
            if one.failures and not one.found
        ]
        return replace(
            estimate,
            estimates_s={**estimate.estimates_s, **found_s},
            warnings=(*estimate.warnings, *failures),
        )

    def _identify_sampled(
        self, problem: Problem, device: DeviceDescription, outcome: EstimateOutcome
    ) -> LaunchIdentity | None:
        """Say what the launch is remembered under: with the local size that was chosen."""
        chosen = replace(problem, ndrange=outcome.estimate.ndrange)
        ran = outcome.recording.device
        return self.identify(chosen, ran if ran.id == device.id else device)

    def _find_spread(self, device_id: str) -> tuple[Spread, tuple[str, ...]]:
        """Say how far off the analytic model may be, and which models could not be asked that."""
        from kernelcast.features.vector.catalogue import make_schema

        key = (device_id, self.shelf.refresh())
        if key not in self._spreads:
            schema: FeatureSchema = make_schema()
            lookup = self.shelf.find(device_id, schema)
            spread = find_spread(
                device_id,
                self.settings.coverage,
                found=lookup.found,
                memory=self.memory,
                schema=schema,
            )
            failures = tuple(f"a learned model was passed over: {one}" for one in lookup.failures)
            self._spreads[key] = spread, failures
        return self._spreads[key]

    def _key_of(self, problem: Problem, device: DeviceDescription) -> FactsKey:
        """Say what features hold for: kernel, sizes, arguments, device, calibration."""
        try:
            changed_ns = machine_path(device.id).stat().st_mtime_ns
        except (OSError, KernelcastError):
            changed_ns = 0
        sizes = f"{problem.ndrange} {problem.arguments}"
        return (problem.kernel.digest, device.id, device.driver, sizes, stamp_files(problem),
                changed_ns)  # fmt: skip

    def _find_facts(self, key: FactsKey) -> LaunchFacts | str | None:
        with self._lock:
            found = self._facts.get(key)
        if found is None and self.facts_store is not None:
            found = self.facts_store.find((*key, self.settings.seed))
            if found is not None:
                self._remember_facts(key, found)
        return found

    def _keep_facts(self, key: FactsKey, facts: LaunchFacts | str) -> None:
        if not facts:
            return
        if self.facts_store is not None and isinstance(facts, LaunchFacts):
            self.facts_store.keep((*key, self.settings.seed), facts)
        self._remember_facts(key, facts)

    def _remember_facts(self, key: FactsKey, facts: LaunchFacts | str) -> None:
        with self._lock:
            self._facts[key] = facts
            while len(self._facts) > _FACTS_KEPT:
                self._facts.popitem(last=False)
