"""The parts of an answer: what is remembered, sampled, learned and modelled of one launch."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from kernelcast.launches.machines import machine_path
from kernelcast.predictor.answering.analytic_tier import (
    Spread,
    answer_analytically,
    find_spread,
)
from kernelcast.predictor.answering.checking import check_history
from kernelcast.predictor.answering.composing import (
    Learned,
    Remembered,
    add_history,
    add_learned,
    keep_methods,
    take_outcome,
)
from kernelcast.predictor.answering.doubts import NOT_BELIEVED
from kernelcast.predictor.answering.facts_store import FactsStore, write_facts
from kernelcast.predictor.answering.identity import FileStamps, stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.policy import MethodChoice, Policy
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    LaunchFacts,
    ModelTask,
)
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.errors import DeviceError, KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity

if TYPE_CHECKING:
    from kernelcast.records.feature_vector import FeatureSchema

_FACTS_KEPT = 1000
_SPREADS_KEPT = 256
_NOT_ASKED = "it was not asked for"
_NO_LOCAL_SIZE = "the device chooses the local size; name one, so that repeats can be told"
_NO_SAMPLES = "nothing may be sampled"

FactsKey = tuple[str, str, str, str, FileStamps, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A sampled estimate with all that stands beside it.

    Parameters
    ----------
    estimate : Estimate
        The answer.
    shadow_s : float or None
        What the method in the shadow says, in seconds.
    """

    estimate: Estimate
    shadow_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Answerer:
    """Finds what an answer is made of.

    Parameters
    ----------
    trained_models : TrainedModels
        Learned models.
    memory : Memory or None
        What was observed before; None means that nothing is remembered.
    facts_store : FactsStore or None
        Where facts about launches are kept for other processes; None means nowhere.

    Notes
    -----
    Threads may share one; one sampling at a time runs on a device.
    """

    trained_models: TrainedModels
    memory: Memory | None
    facts_store: FactsStore | None = None
    _facts: LRUCache[FactsKey, LaunchFacts | str] = field(
        default_factory=lambda: LRUCache(_FACTS_KEPT)
    )
    _spreads: LRUCache[tuple[str, int, float], tuple[Spread, tuple[str, ...]]] = field(
        default_factory=lambda: LRUCache(_SPREADS_KEPT)
    )
    _busy: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def recall(self, identity: LaunchIdentity, policy: Policy) -> LaunchHistory | Remembered:
        """Give what was observed of a launch; or why that is not known."""
        if not (policy.settings.uses_history and policy.methods.computes(Tier.HISTORY)):
            return Remembered(absence=_NOT_ASKED)
        if self.memory is None:
            return Remembered(absence="there is no store of observations")
        if identity.ndrange is None or identity.ndrange.local_size is None:
            return Remembered(absence=_NO_LOCAL_SIZE)
        try:
            return self.memory.recall(identity)
        except KernelcastError as error:
            failure = f"the store of observations does not answer: {error}"
            return Remembered(absence=failure, failure=failure)

    def check(self, history: LaunchHistory, request: LaunchRequest) -> None:
        """Have a history set aside what cannot be; see `check_history`."""
        check_history(history, request.problem, request.device, request.executor)

    def remember(self, history: LaunchHistory | Remembered, policy: Policy) -> Remembered:
        """Say what the history of a launch is worth."""
        if isinstance(history, Remembered):
            return history
        interval = history.answer(policy.settings.coverage)
        if interval is None:
            facts = history.describe()
            return (
                Remembered(facts=facts, absence=NOT_BELIEVED) if facts.set_aside else Remembered()
            )
        absence = "whole runs are measured for comparison" if policy.settings.measure else ""
        return Remembered(interval=interval, facts=history.describe(), absence=absence)

    def sample(self, request: LaunchRequest) -> EstimateOutcome:
        """Sample a launch, and make its features where a learned model waits for them.

        Raises
        ------
        KernelcastError
            If the launch cannot be sampled.
        """
        policy = request.policy
        key = self._key_of(request)
        wants_row = self._wants_row(request)
        known = self._find_facts(key) if wants_row else None
        wants_row = wants_row and not isinstance(known, str)
        task = EstimateTask(
            problem=request.problem,
            device_id=request.device.id,
            settings=policy.settings,
            wants_row=wants_row,
            facts=known if isinstance(known, LaunchFacts) else None,
        )
        with self._lock:
            busy = self._busy.setdefault(request.device.id, threading.Lock())
        with busy:
            outcome = request.executor.sample(
                task, timeout_s=policy.timeout_s, report=request.report
            )
        if isinstance(known, str):
            return replace(outcome, row_failure=known)
        if wants_row and known is None:
            self._keep_facts(key, outcome.facts or outcome.row_failure)
        facts = outcome.facts
        return outcome if facts is None else outcome.with_facts(write_facts(facts))

    def learn(self, sampled: Sequence[tuple[Policy, EstimateOutcome]]) -> list[Learned]:
        """Ask the learned models of some samplings, each model once for all its launches."""
        found: list[Learned] = [self._find_model(*one) for one in sampled]
        from kernelcast.predictor.answering.forecasting import find_influences, forecast_rows

        for model in {id(one.found): one.found for one in found if one.found}.values():
            places = [place for place, one in enumerate(found) if one.found is model]
            rows = [row for place in places if (row := sampled[place][1].row) is not None]
            fitted, schema = model.stored.model, model.stored.schema
            coverage = sampled[places[0]][0].settings.coverage
            answers = forecast_rows(fitted, rows, schema, coverage)
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
        request: LaunchRequest,
        outcome: EstimateOutcome,
        learned: Learned,
        remembered: Remembered,
    ) -> Composed:
        """Make the answer of all that is known of a sampled launch."""
        methods = request.policy.methods
        estimate = take_outcome(outcome, request.as_run(outcome).identify())
        estimate = add_history(_add_hybrid(estimate, learned, methods), remembered)
        estimate = self._add_models(estimate, outcome, methods)
        shadow_s = None if methods.shadow is None else estimate.estimates_s.get(methods.shadow)
        kept = keep_methods(estimate.estimates_s, methods.wanted)
        estimate = replace(estimate, estimates_s=kept)
        self._keep_estimate(estimate)
        return Composed(estimate=estimate, shadow_s=shadow_s)

    def answer_unsampled(self, request: LaunchRequest, remembered: Remembered) -> Estimate:
        """Answer by the analytic model alone.

        Raises
        ------
        DeviceError
            If the device was not calibrated, or the method is not wanted.
        KernelcastError
            If the model has no answer.
        """
        problem, device, policy = request.problem, request.device, request.policy
        if not policy.methods.uses(Tier.ANALYTIC):
            msg = f"{device.id}: nothing may be sampled, and the analytic model is not wanted"
            raise DeviceError(msg)
        task = ModelTask(problem=problem, device_id=device.id)
        outcome = request.executor.model(task, timeout_s=policy.timeout_s, report=request.report)
        coverage = policy.settings.coverage
        spread, failures = self._find_spread(device.id, coverage)
        estimate = answer_analytically(problem, device, outcome, spread, coverage)
        known = estimate.explain()
        missing = {Tier.HYBRID.value: _NO_SAMPLES, Tier.LINEAR.value: _NO_SAMPLES}
        estimate = replace(
            estimate,
            identity=request.identify(),
            warnings=(*estimate.warnings, *failures),
            explanation=replace(known, missing=missing),
        )
        self._keep_estimate(estimate)
        return add_history(estimate, remembered)

    def _keep_estimate(self, estimate: Estimate) -> None:
        if self.memory is not None:
            self.memory.keep_estimate(estimate)

    def _wants_row(self, request: LaunchRequest) -> bool:
        """Tell whether features are worth their cost: some model of the device waits for them."""
        policy, device_id = request.policy, request.device.id
        if not policy.settings.uses_models:
            return False
        is_hybrid = policy.methods.computes(Tier.HYBRID) and self.trained_models.has(device_id)
        return is_hybrid or any(
            self.trained_models.has(device_id, name) for name in policy.methods.models
        )

    def _find_model(self, policy: Policy, outcome: EstimateOutcome) -> Learned:
        if not (policy.settings.uses_models and policy.methods.computes(Tier.HYBRID)):
            return Learned(absence=_NOT_ASKED)
        device_id = outcome.estimate.device_id
        if outcome.row is None:
            return Learned(failure=outcome.row_failure)
        lookup = self.trained_models.find(device_id, outcome.row.vector.schema)
        failures = "; ".join(lookup.failures)
        if lookup.found is None:
            return Learned(failure=failures)
        return Learned(found=lookup.found, passed_over=failures)

    def _add_models(
        self, estimate: Estimate, outcome: EstimateOutcome, methods: MethodChoice
    ) -> Estimate:
        """Put other models of the registry side by side."""
        row = outcome.row
        if row is None or not methods.models:
            return estimate
        from kernelcast.predictor.answering.forecasting import forecast_methods

        schema = row.vector.schema
        lookups = {
            name: self.trained_models.find(estimate.device_id, schema, name)
            for name in methods.models
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

    def _find_spread(self, device_id: str, coverage: float) -> tuple[Spread, tuple[str, ...]]:
        """Say how far off the analytic model may be, and which models could not be asked that."""
        from kernelcast.features.vector.catalogue import make_schema

        key = (device_id, self.trained_models.refresh(), coverage)
        with self._lock:
            known = self._spreads.get(key)
        if known is None:
            schema: FeatureSchema = make_schema()
            lookup = self.trained_models.find(device_id, schema)
            spread = find_spread(
                device_id,
                coverage,
                found=lookup.found,
                memory=self.memory,
                schema=schema,
            )
            failures = tuple(f"a learned model was passed over: {one}" for one in lookup.failures)
            known = spread, failures
            with self._lock:
                self._spreads[key] = known
        return known

    @staticmethod
    def _key_of(request: LaunchRequest) -> FactsKey:
        """Say what features hold for: kernel, sizes, arguments, device, calibration."""
        problem, device = request.problem, request.device
        try:
            changed_ns = machine_path(device.id).stat().st_mtime_ns
        except (OSError, KernelcastError):
            changed_ns = 0
        sizes = f"{problem.ndrange} {problem.arguments}"
        return (problem.kernel.digest, device.id, device.driver, sizes, stamp_files(problem),
                changed_ns, request.policy.settings.seed)  # fmt: skip

    def _find_facts(self, key: FactsKey) -> LaunchFacts | str | None:
        with self._lock:
            found = self._facts.get(key)
        if found is None and self.facts_store is not None:
            found = self.facts_store.find(key)
            if found is not None:
                self._remember_facts(key, found)
        return found

    def _keep_facts(self, key: FactsKey, facts: LaunchFacts | str) -> None:
        if not facts:
            return
        if self.facts_store is not None and isinstance(facts, LaunchFacts):
            self.facts_store.keep(key, facts)
        self._remember_facts(key, facts)

    def _remember_facts(self, key: FactsKey, facts: LaunchFacts | str) -> None:
        with self._lock:
            self._facts[key] = facts


def _add_hybrid(estimate: Estimate, learned: Learned, methods: MethodChoice) -> Estimate:
    """Let the learned model answer; in the shadow it only stands beside the answer."""
    if methods.uses(Tier.HYBRID):
        return add_learned(estimate, learned)
    found = add_learned(estimate, Learned(absence=_NOT_ASKED))
    if learned.forecast is None:
        return found
    beside = {Tier.HYBRID.value: learned.forecast.interval.seconds}
    return replace(found, estimates_s={**found.estimates_s, **beside})
