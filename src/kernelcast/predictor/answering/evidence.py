"""Makes pieces of evidence of what is known about a launch."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.machines import find_sound_machine
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    BUILT_IN,
    MOMENT_FORM,
    SAMPLER,
    EvidenceModel,
    SampledMoment,
    find_normal_quantile,
    find_uncalibrated,
)
from kernelcast.models.evidence.sizes import measure_work
from kernelcast.predictor.answering.composing import NOTHING, Basis, Remembered
from kernelcast.predictor.answering.kernel_sizes import KnownKernel, Work, count_items, name_size
from kernelcast.predictor.answering.launch_history import NOT_BELIEVED, LaunchHistory
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS
from kernelcast.predictor.answering.plausibility import (
    MODEL,
    Expected,
    Plausible,
    bound_launch,
    bound_traffic,
    doubt_launch,
)
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import Executor
from kernelcast.predictor.answering.tasks import EstimateOutcome, LaunchFacts, ModelTask
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import ModelFacts, Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.training_table import make_table
from kernelcast.training.registry import name_model
from kernelcast.training.settings import STATIC_MODEL

USUAL_OVERHEAD_S = 0.05
"""Host time of a sampling beside its samples, in seconds, before one was seen on the device."""

Foretell = Callable[[Problem, DeviceDescription], float | None]
"""Gives the seconds of a launch by a model that needs no samples; None where it has no answer."""


def weigh_history(history: LaunchHistory, policy: Policy, model: EvidenceModel) -> Remembered:
    if history.is_empty:
        return NOTHING
    facts = history.describe()
    if not facts.observations:
        return Remembered(facts=facts, absence=NOT_BELIEVED) if facts.set_aside else NOTHING
    interval = history.answer(policy.settings.coverage)
    if policy.settings.measure:
        absence = "whole runs are measured for comparison"
        return Remembered(interval=interval, facts=facts, absence=absence)
    age_s = math.inf
    if facts.first is not None and facts.last is not None:
        # What has held for so long is trusted for as long again.
        held_s = (facts.last - facts.first).total_seconds()
        age_s = max(max(time.time() - facts.last.timestamp(), 0.0) - held_s, 0.0)
    piece = model.weigh_observation(
        math.log(history.middle_s),
        history.noise,
        age_s,
        moments=history.moments,
        repeats=facts.observations,
    )
    return Remembered(piece=piece, interval=interval, facts=facts)


def weigh_samples(
    moments: tuple[SampledMoment, ...],
    identity: LaunchIdentity,
    kernel: KnownKernel,
    model: EvidenceModel,
) -> list[Piece]:
    """Make pieces of samples, less what the sampler got wrong of the kernel's other sizes."""
    past = kernel.judge_past(name_size(identity), model)
    told = fmean([one.log_seconds for one in moments]) if moments else None
    fresh_s = time.time() - 10.0  # an answer takes its own samples meanwhile
    return [
        model.weigh_samples(
            one,
            past,
            age_s=0.0 if one.at_s is None else max(fresh_s - one.at_s, 0.0),
            launch_log_seconds=told,
        )
        for one in moments
    ]


def weigh_models(
    model: EvidenceModel,
    analytic_s: float | None,
    learned_s: float | None,
    doubt: float = 0.0,
) -> list[Piece]:
    """Make pieces of models that need no samples; the analytic one's may be doubted."""
    told = ((Kind.ANALYTIC, analytic_s, doubt), (Kind.LEARNED, learned_s, 0.0))
    made = (
        model.weigh_plain(kind, math.log(one), more)
        or BUILT_IN.weigh_plain(kind, math.log(one), more)
        for kind, one, more in told
        if one
    )
    return [one for one in made if one is not None]


def ask_sizes(
    kernel: KnownKernel, basis: Basis, identity: LaunchIdentity, policy: Policy
) -> tuple[Piece, ...]:
    if basis.work is None or not policy.uses(Tier.SIZES):
        return ()
    piece = kernel.ask(
        name_size(identity),
        basis.work,
        basis.evidence.model,
        _find_caches(identity.device.id),
        with_observed=policy.settings.uses_history and not policy.settings.measure,
    )
    return () if piece is None else (piece,)


def has_sizes(kernel: KnownKernel, identity: LaunchIdentity, policy: Policy) -> bool:
    """Tell whether another size of the kernel was observed, and contents do not matter."""
    return (
        identity.ndrange is not None
        and identity.ndrange.local_size is not None
        and policy.settings.uses_history
        and policy.uses(Tier.SIZES)
        and kernel.depends_on_contents is False
        and kernel.count_observed(name_size(identity)) > 0
    )


def choose_more(
    kept: EstimateOutcome,
    identity: LaunchIdentity,
    settings: EstimateSettings,
    kernel: KnownKernel,
    model: EvidenceModel,
) -> int:
    """Say at how many more moments a launch is to be sampled that was sampled before."""
    pieces = weigh_samples(kept.moments, identity, kernel, model)
    fresh = [
        replace(
            one,
            variance=one.variance - one.age_variance,
            basis_variance=one.basis_variance - one.age_variance,
        )
        for one in pieces
    ]
    # Four times the variance: an interval twice as wide.
    have_faded = fuse(pieces).variance > 4.0 * fuse(fresh).variance
    if not settings.least_gain or have_faded:
        return settings.plan.moments
    # A process that has not sampled it yet has all to do that was done then.
    overhead_s = kernel.find_overhead(kept.estimate.overhead_seconds)
    return choose_moments(pieces, model, settings, overhead_s)


def choose_by_sizes(
    kernel: KnownKernel, basis: Basis, identity: LaunchIdentity, policy: Policy
) -> int:
    """Say at how many moments a launch is to be sampled, by what other sizes tell of it."""
    settings = policy.settings
    is_free = settings.least_gain and not settings.measure
    pieces = ask_sizes(kernel, basis, identity, policy) if is_free else ()
    if not pieces:
        return settings.plan.moments
    # Of fewer observed sizes, none tells which is wrong: the launch is sampled.
    is_strong = has_sizes(kernel, identity, policy)
    is_strong = is_strong and kernel.count_observed(name_size(identity)) >= 3
    overhead_s = kernel.find_overhead(USUAL_OVERHEAD_S)
    chosen = choose_moments(pieces, basis.evidence.model, settings, overhead_s)
    return chosen if is_strong else max(1, chosen)


def measure_launch(
    problem: Problem, identity: LaunchIdentity, ndrange: NDRange, facts: LaunchFacts | None
) -> Work:
    told = identity.parameters.get(INSTRUCTIONS)
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


def choose_moments(
    pieces: Sequence[Piece], model: EvidenceModel, settings: EstimateSettings, overhead_s: float
) -> int:
    """Choose how many moments each narrow the interval, in seconds, by more than they take."""
    plan, fused = settings.plan, fuse(pieces)
    known = model.surround(fused, settings.coverage)
    half_width = math.log(known.high / known.low) / 2

    def measure_half(variance: float) -> float:
        width = half_width * math.sqrt(variance / fused.variance)
        return known.seconds * math.sinh(min(width, 20.0))

    variance = model.expect_variance(MOMENT_FORM)
    unseen = find_uncalibrated(fused.log_seconds)
    usual = Piece(
        kind=Kind.SAMPLES,
        log_seconds=fused.log_seconds,
        variance=variance + unseen,
        basis=SAMPLER,
        basis_variance=model.shared.launch * variance + unseen,
    )
    sampled_s = plan.budget / plan.moments * known.seconds
    before_s = measure_half(fused.variance)
    for count in range(plan.moments):
        expected = [replace(usual, moment=f"expected {n}") for n in range(count + 1)]
        after_s = measure_half(fuse([*pieces, *expected]).variance)
        cost_s = sampled_s + (MOMENTS_APART_S if count else overhead_s)
        if before_s - after_s < settings.least_gain * cost_s:
            return count
        before_s = after_s
    return plan.moments


def check_history(
    history: LaunchHistory, problem: Problem, device: DeviceDescription, executor: Executor
) -> None:
    """Have a history set aside what cannot be."""
    if history.is_empty:
        return
    machine = find_sound_machine(device.id)
    floors = [history.known.floor, bound_launch(device, problem.ndrange)]
    expected = history.known.expected
    suspect_s = bound_traffic(problem.buffer_bytes, device, machine).seconds
    least_s = history.find_least(max(one.seconds for one in floors))
    if least_s < suspect_s and not any(one.holds(least_s) for one in expected):
        task = ModelTask(problem=problem, device_id=device.id, wants_bytes=True)
        with suppress(KernelcastError):
            found = executor.model(task, timeout_s=10.0, report=lambda _: None)
            floors.append(bound_traffic(found.touched_bytes, device, machine))
            if found.analytic is not None and not expected:
                seconds = found.analytic.seconds
                # As `plausibility.expect` takes it for the interval that the model has where its
                # errors are not known: a factor of 3 either way.
                expected = (Expected(seconds=seconds, factor=9.0, source=MODEL),)
    floor = max(floors, key=lambda one: one.seconds)
    known = Plausible(floor=floor, launch=doubt_launch(machine), expected=expected)
    history.hold_against(known)


def add_models(
    trained_models: TrainedModels,
    estimate: Estimate,
    outcome: EstimateOutcome,
    policy: Policy,
) -> Estimate:
    row = outcome.row
    if row is None or not policy.models:
        return estimate
    estimates_s, failures = dict(estimate.estimates_s), []
    for name in policy.models:
        stored, reasons = trained_models.find(estimate.device_id, row.vector.schema, name)
        if stored is None:
            why = "; ".join(reasons)
            failures += [f"{name} does not stand beside the answer: {why}"] if why else []
            continue
        try:
            schema = stored.model.schema
            values = [row.vector.as_dict().get(name, math.nan) for name in schema.names]
            columns = {name: [one] for name, one in row.columns.items()}
            table = make_table(schema, [values], columns)
            seconds = float(stored.model.predict(table)[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            estimates_s[name] = seconds
    return replace(estimate, estimates_s=estimates_s, warnings=(*estimate.warnings, *failures))


def answer_statically(
    trained_models: TrainedModels, basis: Basis, values: Mapping[str, float]
) -> Basis:
    """Have the user's model of rows without samples answer, whose interval is calibrated."""
    estimate, failure = basis.estimate, ""
    stored, reasons = trained_models.find(estimate.device_id, None, STATIC_MODEL)
    if stored is None:
        failure = "; ".join(reasons)
    else:
        row = [values.get(name, math.nan) for name in stored.model.schema.names]
        groups = {"work_groups": [values.get("static.work_groups_count", math.nan)]}
        try:
            table = make_table(stored.model.schema, [row], groups)
            found = stored.model.forecast(table, estimate.coverage)
        except KernelcastError as error:
            failure = str(error)
    if stored is None or failure:
        told = f"the model {STATIC_MODEL} does not answer: {failure}"
        return replace(basis, estimate=replace(estimate, warnings=(*estimate.warnings, told)))
    width = math.log(found.high[0] / found.seconds[0])
    piece = Piece(
        kind=Kind.LEARNED,
        log_seconds=math.log(found.seconds[0]),
        variance=(width / find_normal_quantile(estimate.coverage)) ** 2,
        note="a model of rows without samples",
    )
    facts = ModelFacts(
        name=name_model(STATIC_MODEL, estimate.device_id),
        schema_id=stored.model.schema.id,
        data_digest=str(stored.model.facts.get("data_digest", "")),
        rows=int(str(stored.model.facts["rows"])),
    )
    return replace(
        basis,
        estimate=replace(estimate, in_domain=bool(found.in_domain[0])),
        pieces=(piece,),
        learned=replace(basis.learned, facts=facts),
    )
