"""The parts of an answer: what is remembered, sampled, learned and modelled of one launch."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import CORRECTED
from kernelcast.models.evidence.piece import FusedEstimate, Piece
from kernelcast.predictor.answering.checking import add_expected, check_history
from kernelcast.predictor.answering.composing import (
    Basis,
    Remembered,
    describe_launch,
    refuse_unsampled,
)
from kernelcast.predictor.answering.evidence import EvidenceMaker, Foretell, measure_launch
from kernelcast.predictor.answering.further_models import add_models, ask_static
from kernelcast.predictor.answering.kernel_sizes import KernelSizes, SizeKey
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.learned import KnownCorrections, Learned, ask
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.moments import append_moments
from kernelcast.predictor.answering.plausibility import expect
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.samples_store import SamplesStore
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.predictor.answering.time_limit import BUSY, hold
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.training.settings import STATIC_MODEL

_NOT_ASKED = "it was not asked for"
_NO_LOCAL_SIZE = "the device chooses the local size; name one, so that repeats can be told"
_NO_SAMPLES = "nothing may be sampled"
_FEATURES_S = 1.0
"""Who waits no longer has samples without the features that learned models need."""


@dataclass(slots=True, kw_only=True)
class Answerer:
    """Finds what an answer is made of.

    Parameters
    ----------
    trained_models : TrainedModels
        Learned models.
    memory : Memory or None
        What was observed before; None means that nothing is remembered.
    samples_store : SamplesStore or None
        Where samples of launches are kept for other processes; None means nowhere.
    foretell : callable or None
        The user's model that needs no samples.
    evidence : EvidenceMaker
        Makes pieces of what is known.

    Notes
    -----
    Threads may share one; one sampling at a time runs on a device.
    """

    trained_models: TrainedModels
    memory: Memory | None
    samples_store: SamplesStore | None = None
    foretell: Foretell | None = None
    evidence: EvidenceMaker = field(init=False)
    corrections: KnownCorrections = field(default_factory=KnownCorrections)
    _busy: dict[str, threading.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.evidence = EvidenceMaker(
            trained_models=self.trained_models,
            sizes=KernelSizes(self._recall_kernel),
            foretell=self.foretell,
        )

    def _recall_kernel(self, identity: LaunchIdentity) -> dict[SizeKey, LaunchHistory] | None:
        try:
            return None if self.memory is None else self.memory.recall_kernel(identity)
        except KernelcastError:  # whoever asks for the launch itself is told
            return None

    def recall(self, identity: LaunchIdentity, policy: Policy) -> LaunchHistory | Remembered:
        """Give what was observed of a launch; or why that is not known."""
        if not (policy.settings.uses_history and policy.methods.uses(Tier.HISTORY)):
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

    def remember(
        self, history: LaunchHistory | Remembered, policy: Policy, device: DeviceDescription
    ) -> Remembered:
        """Say what the history of a launch is worth."""
        if isinstance(history, Remembered):
            return history
        return self.evidence.weigh_history(history, policy, device)

    def recall_samples(self, request: LaunchRequest) -> EstimateOutcome | None:
        """Give earlier samples of exactly this launch, whoever took them; None without any."""
        settings = request.policy.settings
        if self.samples_store is None or settings.measure or not settings.uses_history:
            return None
        found = self.samples_store.find(request)
        if found is None or found.row is not None or found.row_failure:
            return found
        return None if self._wants_row(request) else found  # there was no model to make one for

    def keep_samples(self, request: LaunchRequest, outcome: EstimateOutcome) -> None:
        """Have the next process find samples."""
        if self.samples_store is not None:
            self.samples_store.keep(request, outcome)

    def sample(
        self, request: LaunchRequest, before: EstimateOutcome | None = None
    ) -> EstimateOutcome:
        """Sample a launch, and make its features where a learned model waits for them.

        What earlier samples say stands beside what is found.

        Raises
        ------
        KernelcastError
            If the launch cannot be sampled.
        """
        policy, taken = request.policy, () if before is None else before.moments
        wants_row = self._wants_row(request) and self.corrections.find(request) is None
        known = None if before is None else before.facts
        limit = request.limit
        if known is None and limit is not None and not limit.goes_on:
            wants_row = wants_row and limit.left_s > _FEATURES_S
        task = EstimateTask(
            problem=request.problem,
            device_id=request.device.id,
            settings=policy.settings.move_places(len(taken)),
            wants_row=wants_row,
            wants_counts=wants_row and self.trained_models.takes_counters(request.device),
            facts=known,
            ends_s=None if limit is None else limit.work_ends_s,
        )
        with hold(self.lock_of(request.device.id), limit, BUSY):
            task = replace(task, runs_end_s=time.monotonic() + policy.timeout_s)
            outcome = request.executor.sample(
                task, timeout_s=policy.timeout_s, report=request.report
            )
        self.evidence.note_overhead(outcome)
        outcome = replace(outcome, moments=append_moments(taken, outcome.moments))
        self.keep_samples(request, outcome)
        return outcome.with_recorded_facts()

    def lock_of(self, device_id: str) -> threading.Lock:
        """Give what is held while a device samples."""
        return self._busy.setdefault(device_id, threading.Lock())

    def learn(self, sampled: Sequence[tuple[LaunchRequest, EstimateOutcome]]) -> list[Basis]:
        """Weigh samples, and correct what they say by what was learned of such launches."""
        found = []
        for request, outcome in sampled:
            pieces = self._weigh(request, outcome)
            said = fuse([one for one in pieces if one.kind in CORRECTED] or pieces)
            learned = self._correct(request, outcome, said)
            found.append(self._make_basis(request, outcome, pieces, said, learned))
        return found

    def _weigh(self, request: LaunchRequest, outcome: EstimateOutcome) -> list[Piece]:
        """Make pieces of samples, and of models that need none; or take those of a recording."""
        if outcome.pieces:
            return [*outcome.pieces]
        identity = request.as_run(outcome).identify()
        analytic_s = outcome.estimate.estimates_s.get(Tier.ANALYTIC.value)
        return [
            *self.evidence.weigh_samples(outcome.moments, identity, request.device),
            *self.evidence.weigh_models(request.problem, request.device, analytic_s),
        ]

    def _correct(
        self, request: LaunchRequest, outcome: EstimateOutcome, said: FusedEstimate
    ) -> Learned:
        """Ask the device's correction how it moves what samples say."""
        policy = request.policy
        if not (policy.settings.uses_models and policy.methods.uses(Tier.HYBRID)):
            return Learned(absence=_NOT_ASKED)
        evidence = self.evidence.find(request.device)
        if evidence.model.correction is None:
            return Learned()
        if outcome.row is None:
            known = None if outcome.row_failure else self.corrections.find(request)
            return known or Learned(failure=outcome.row_failure)
        found = ask(evidence.model, evidence.facts, outcome.row, said)
        self.corrections.keep(request, found)
        return found

    def _make_basis(
        self,
        request: LaunchRequest,
        outcome: EstimateOutcome,
        pieces: Sequence[Piece],
        fused: FusedEstimate,
        learned: Learned,
    ) -> Basis:
        estimate, facts = outcome.estimate, outcome.facts
        identity = request.as_run(outcome).identify()
        told, evidence = estimate.explain(), self.evidence.find(request.device)
        work = measure_launch(request.problem, identity, estimate.ndrange, facts)
        learned_s = None
        if learned.log_factor is not None:
            fused = replace(fused, log_seconds=fused.log_seconds + learned.log_factor)
            learned_s = fused.seconds
        depends = outcome.depends_on_contents
        self.evidence.learn_source(identity, depends_on_contents=depends)
        self.evidence.keep_estimate(identity, outcome, work, fused, evidence)
        notes = (*told.notes, *(facts.notes if facts else ()))
        estimate = replace(estimate, identity=identity, explanation=replace(told, notes=notes))
        absence = {} if learned_s else {Tier.HYBRID.value: learned.failure or learned.absence}
        return Basis(
            estimate=add_models(self.trained_models, estimate, outcome, request.policy.methods),
            pieces=tuple(pieces),
            evidence=evidence,
            learned=learned,
            learned_s=learned_s,
            missing=absence,
            work=work,
        )

    def model_alone(self, request: LaunchRequest, identity: LaunchIdentity) -> Basis:
        """Find what is known of a launch without running any of it.

        Raises
        ------
        DeviceError
            If nothing is known: the device was not calibrated, or the method is not wanted.
        KernelcastError
            If the model has no answer.
        """
        device, policy = request.device, request.policy
        basis = self.describe(request, identity)
        if self._is_told_by_sizes(basis, identity, policy):
            return basis
        asks_static = (
            policy.settings.uses_models
            and policy.methods.uses(Tier.LEARNED)
            and self.trained_models.has(device.id, STATIC_MODEL)
        )
        outcome = request.executor.model(
            replace(request.ask_model(), wants_values=asks_static),
            timeout_s=policy.timeout_s, report=request.report,
        )  # fmt: skip
        depends = outcome.depends_on_contents
        self.evidence.learn_source(identity, depends_on_contents=depends)
        is_wanted = policy.methods.uses(Tier.ANALYTIC)
        found = outcome.analytic if is_wanted else None
        basis = self.describe(request, identity, found, outcome.notes)
        if asks_static:
            basis = self._add_static(basis, device.id, outcome.values)
        if not basis.pieces and not self._is_told_by_sizes(basis, identity, policy):
            raise refuse_unsampled(device.id, is_wanted=is_wanted)
        return replace(basis, estimate=replace(basis.estimate, ndrange=outcome.ndrange))

    def _add_static(self, basis: Basis, device_id: str, values: Mapping[str, float]) -> Basis:
        """Have the user's model of rows without samples answer, whose interval is calibrated."""
        estimate = basis.estimate
        said = ask_static(self.trained_models, device_id, values, estimate.coverage)
        if said.piece is None:
            told = f"the model {STATIC_MODEL} does not answer: {said.failure}"
            return replace(basis, estimate=replace(estimate, warnings=(*estimate.warnings, told)))
        return replace(
            basis,
            estimate=replace(estimate, in_domain=said.in_domain),
            pieces=(said.piece,),
            learned=replace(basis.learned, facts=said.facts),
        )

    def _is_told_by_sizes(self, basis: Basis, identity: LaunchIdentity, policy: Policy) -> bool:
        """Tell whether other sizes can answer a launch alone."""
        maker = self.evidence
        return maker.has_sizes(identity, policy) and bool(maker.ask_sizes(basis, identity, policy))

    def describe(
        self,
        request: LaunchRequest,
        identity: LaunchIdentity,
        analytic: AnalyticEstimate | None = None,
        notes: Sequence[str] = (),
    ) -> Basis:
        """Give what is known of a launch that nothing was run of."""
        problem, device, policy = request.problem, request.device, request.policy
        told = (None, 0.0) if analytic is None else (analytic.seconds, analytic.doubt)
        ndrange = identity.ndrange or problem.ndrange
        return Basis(
            estimate=describe_launch(
                device,
                problem.kernel.name,
                ndrange,
                coverage=policy.settings.coverage,
                analytic=analytic,
                notes=notes,
                identity=identity,
            ),
            pieces=tuple(self.evidence.weigh_models(problem, device, *told)),
            evidence=self.evidence.find(device),
            missing={Tier.HYBRID.value: _NO_SAMPLES, Tier.LINEAR.value: _NO_SAMPLES},
            work=measure_launch(problem, identity, ndrange, None),
        )

    def keep_estimate(
        self, estimate: Estimate, history: LaunchHistory, *, by_clock: bool = False
    ) -> None:
        """Hold observations, now and later, against an answer that rests on none."""
        expected = expect(estimate, by_clock=by_clock)
        if self.memory is not None and estimate.identity is not None:
            self.memory.keep_expected(estimate.identity, expected)
        add_expected(history, expected)

    def _wants_row(self, request: LaunchRequest) -> bool:
        """Tell whether features are worth their cost: some model of the device waits for them."""
        policy, device = request.policy, request.device
        if not policy.settings.uses_models:
            return False
        corrects = self.evidence.find(device).model.correction is not None
        return (policy.methods.uses(Tier.HYBRID) and corrects) or any(
            self.trained_models.has(device.id, name) for name in policy.methods.models
        )
