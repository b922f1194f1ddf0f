"""Makes pieces of evidence of what is known about a launch."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean

from cachetools import LRUCache

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.own_machine import find_sound_machine
from kernelcast.models.evidence.model import BUILT_IN
from kernelcast.models.evidence.moments import SampledMoment
from kernelcast.models.evidence.piece import Kind, Piece
from kernelcast.predictor.answering.composing import NOTHING, Basis, Remembered
from kernelcast.predictor.answering.doubts import NOT_BELIEVED
from kernelcast.predictor.answering.identity import INSTRUCTIONS
from kernelcast.predictor.answering.kernel_sizes import (
    KernelSizes,
    Work,
    count_items,
)
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.sparing import (
    FEWEST_SIZES,
    USUAL_OVERHEAD_S,
    choose_moments,
    have_faded,
)
from kernelcast.predictor.answering.tasks import EstimateOutcome, LaunchFacts
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.device import DeviceDescription
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training.work import measure_work

_MOST_KERNELS = 1000
_NEW = ""
_JUST_NOW_S = 10.0

Foretell = Callable[[Problem, DeviceDescription], float | None]
"""Gives the seconds of a launch by a model that needs no samples; None where it has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceMaker:
    """Makes pieces; threads may share one.

    Parameters
    ----------
    trained_models : TrainedModels
        Evidence models.
    sizes : KernelSizes
        What is known of kernels' other sizes.
    foretell : callable or None
        The user's model that needs no samples.
    overheads_s : mapping of (str, str) to float
        Host time that the last sampling of a kernel on a device took beside its samples, in
        seconds, builds left out; by id of the device and digest of the kernel. By `_NEW`: that of
        the last kernel that was new, builds included.
    """

    trained_models: TrainedModels
    sizes: KernelSizes
    foretell: Foretell | None = None
    overheads_s: LRUCache[tuple[str, str], float] = field(
        default_factory=lambda: LRUCache(_MOST_KERNELS)
    )

    def weigh_history(
        self, history: LaunchHistory, policy: Policy, device: DeviceDescription
    ) -> Remembered:
        """Say what the history of a launch is worth."""
        if history.is_empty:
            return NOTHING
        usual, facts = history.usual, history.describe()
        if usual is None:
            return Remembered(facts=facts, absence=NOT_BELIEVED) if facts.set_aside else NOTHING
        interval = history.answer(policy.settings.coverage)
        if policy.settings.measure:
            absence = "whole runs are measured for comparison"
            return Remembered(interval=interval, facts=facts, absence=absence)
        age_s = math.inf if usual.last_s is None else max(time.time() - usual.last_s, 0.0)
        piece = self.trained_models.find_evidence(device).model.weigh_observation(
            math.log(usual.seconds),
            usual.noise,
            # What has held for so long is trusted for as long again.
            max(age_s - usual.span_s, 0.0),
            moments=usual.moments,
            repeats=usual.repeats,
        )
        return Remembered(piece=piece, interval=interval, facts=facts)

    def weigh_samples(
        self,
        moments: tuple[SampledMoment, ...],
        identity: LaunchIdentity | None,
        device: DeviceDescription,
    ) -> list[Piece]:
        """Make pieces of samples, less what the sampler got wrong of the kernel's other sizes."""
        model = self.trained_models.find_evidence(device).model
        past = [] if identity is None else self.sizes.judge_past(identity, model)
        told = fmean([one.log_seconds for one in moments]) if moments else None
        return [
            model.weigh_samples(one, past, age_s=_find_age(one), launch_log_seconds=told)
            for one in moments
        ]

    def weigh_models(
        self,
        problem: Problem,
        device: DeviceDescription,
        analytic_s: float | None,
        doubt: float = 0.0,
    ) -> list[Piece]:
        """Make pieces of models that need no samples; the analytic one's may be doubted."""
        learned_s = None if self.foretell is None else self.foretell(problem, device)
        if not analytic_s and not learned_s:
            return []
        model = self.trained_models.find_evidence(device).model
        told = ((Kind.ANALYTIC, analytic_s, doubt), (Kind.LEARNED, learned_s, 0.0))
        made = (
            model.weigh_plain(kind, math.log(one), more)
            or BUILT_IN.weigh_plain(kind, math.log(one), more)
            for kind, one, more in told
            if one
        )
        return [one for one in made if one is not None]

    def ask_sizes(
        self, basis: Basis, identity: LaunchIdentity, policy: Policy
    ) -> tuple[Piece, ...]:
        """Give what other sizes of the kernel say."""
        if basis.work is None or not policy.methods.uses(Tier.SIZES):
            return ()
        piece = self.sizes.ask(
            identity,
            basis.work,
            basis.evidence.model,
            _find_caches(identity.device.id),
            with_observed=policy.settings.uses_history and not policy.settings.measure,
        )
        return () if piece is None else (piece,)

    def has_sizes(self, identity: LaunchIdentity | None, policy: Policy) -> bool:
        """Tell whether other sizes can answer a launch alone."""
        return (
            identity is not None
            and identity.ndrange is not None
            and identity.ndrange.local_size is not None
            and policy.settings.uses_history
            and policy.methods.uses(Tier.SIZES)
            and self.sizes.has_observed(identity)
        )

    def note_overhead(self, outcome: EstimateOutcome) -> None:
        """Keep what a sampling took beside its samples, less what another size need not pay.

        Those are builds: programs are kept.
        """
        one = outcome.estimate
        beside_s = one.overhead_seconds - MOMENTS_APART_S * (len(outcome.moments) - 1)
        name, new = (one.device_id, outcome.recording.kernel_digest), (one.device_id, _NEW)
        # The first sampling opens the device, and tries it out.
        most_s = math.inf if new in self.overheads_s else USUAL_OVERHEAD_S
        if name not in self.overheads_s:
            self.overheads_s[new] = min(max(beside_s, 0.0), most_s + one.build_seconds)
        self.overheads_s[name] = min(max(beside_s - one.build_seconds, 0.0), most_s)

    def expect_cost(self, identity: LaunchIdentity) -> float:
        """Say what a sampling of a launch may take beside its samples, its builds included."""
        device_id = identity.device.id
        new_s = self.overheads_s.get((device_id, _NEW), USUAL_OVERHEAD_S)
        return self.overheads_s.get((device_id, identity.kernel.digest), new_s)

    def choose_more(
        self, kept: EstimateOutcome, identity: LaunchIdentity, request: LaunchRequest
    ) -> int:
        """Say at how many more moments a launch is to be sampled that was sampled before."""
        settings = request.policy.settings
        pieces = self.weigh_samples(kept.moments, identity, request.device)
        if not settings.least_gain or have_faded(pieces):
            return settings.plan.moments
        name = identity.device.id, identity.kernel.digest
        # Who has not sampled it yet has all to do that was done then.
        overhead_s = self.overheads_s.get(name, kept.estimate.overhead_seconds)
        return choose_moments(
            pieces, self.trained_models.find_evidence(request.device).model, settings, overhead_s
        )

    def choose_moments(self, basis: Basis, identity: LaunchIdentity, policy: Policy) -> int:
        """Say at how many moments a launch is to be sampled, by what other sizes tell of it."""
        settings = policy.settings
        most = settings.plan.moments
        is_free = settings.least_gain and not settings.measure
        pieces = self.ask_sizes(basis, identity, policy) if is_free else ()
        if not pieces:
            return most
        is_strong = (
            self.has_sizes(identity, policy) and self.sizes.count_observed(identity) >= FEWEST_SIZES
        )
        model = basis.evidence.model
        name = identity.device.id, identity.kernel.digest
        overhead_s = self.overheads_s.get(name, USUAL_OVERHEAD_S)
        chosen = choose_moments(pieces, model, settings, overhead_s)
        return chosen if is_strong else max(1, chosen)

    def observe(self, identity: LaunchIdentity, work: Work | None, history: LaunchHistory) -> None:
        """Take the usual time of a launch, for other sizes of its kernel."""
        ndrange = identity.ndrange
        if ndrange is not None and ndrange.local_size is not None:
            work = work or count_items(ndrange, identity.parameters.get(INSTRUCTIONS))
            self.sizes.observe(identity, work, history)


def _find_age(moment: SampledMoment) -> float:
    """Give the seconds since samples were taken, beyond those that an answer takes itself."""
    return 0.0 if moment.at_s is None else max(time.time() - moment.at_s - _JUST_NOW_S, 0.0)


def measure_launch(
    problem: Problem, identity: LaunchIdentity | None, ndrange: NDRange, facts: LaunchFacts | None
) -> Work:
    """Give the work of a launch, as far as it is known."""
    told = identity.parameters.get(INSTRUCTIONS) if identity else None
    plain = count_items(ndrange, told, float(problem.buffer_bytes))
    if facts is None:
        return plain
    logs, working_set = measure_work(
        {**facts.values, "static.work_items_count": float(ndrange.work_item_count),
         "static.buffer_bytes": float(problem.buffer_bytes)}
    )  # fmt: skip
    # Counted alike for launches that were sampled and for those that were not.
    counted = plain.logs[1] if told is not None else logs[1]
    return Work(logs=(logs[0], counted, *logs[2:]), working_set_bytes=working_set)


@lru_cache(maxsize=64)
def _find_caches(device_id: str) -> Mapping[str, float]:
    """Give the sizes of a device's caches in bytes; none where it was not calibrated."""
    machine = find_sound_machine(device_id)
    caches = () if machine is None else machine.caches
    return {one.name: float(one.size_bytes.value) for one in caches if one.size_bytes}
