"""Samples a launch on a device and gathers what learned models need; runs in a child process."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelcast.features.vector.catalogue import combine
from kernelcast.features.vector.sampled import SampledSource
from kernelcast.launches.bounds_check import list_overruns
from kernelcast.launches.estimation import ReportProgress, SampledEstimate, sample_launch
from kernelcast.launches.own_machine import find_own_machine, model_own_launch
from kernelcast.launches.persistence_check import refuse_persistent
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.asking import (
    EstimateOutcome,
    EstimateTask,
    LaunchFacts,
    LaunchRow,
    ModelOutcome,
    ModelTask,
)
from kernelcast.predictor.answering.hang_watch import GiveUp, HangWatch, WatchedLaunch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Explanation
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.replay import RecordingLaunch
from kernelcast.sampling.session import DeviceSession
from kernelcast.training.peaks import UNKNOWN, read_peaks
from kernelcast.workers.deaths import COUNTING


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest:
    """Asks for the features that learned models need.

    Parameters
    ----------
    facts : LaunchFacts or None
        Found at an earlier sampling: nothing is counted then.
    keep : callable
        Takes the sampled answer before anything is counted: what comes after may crash a driver.
    """

    facts: LaunchFacts | None = None
    keep: Callable[[EstimateOutcome], None] = lambda _: None


def estimate_in_session(  # noqa: PLR0913 - a launch, how, and what is told on the way
    session: DeviceSession,
    problem: Problem,
    settings: EstimateSettings,
    *,
    row: RowRequest | None = None,
    watch: HangWatch | None = None,
    report: ReportProgress = lambda _: None,
) -> EstimateOutcome:
    """Predict one problem on a device that is open already.

    Parameters
    ----------
    session : DeviceSession
        The device.
    problem : Problem
        The launch.
    settings : EstimateSettings
        Budget, coverage, measurement.
    row : RowRequest, optional
        Asks for features too.
    watch : HangWatch, optional
        Is told of each sampled launch.
    report : callable, optional
        Is told of each stage.

    Raises
    ------
    InputError
        If source and arguments do not fit together, or work-groups fetch their work.
    DeviceError
        If the device cannot run the launch. That there are no features is no error.
    """
    report("building the kernel and its buffers")
    started_s = time.perf_counter()
    kernel = problem.kernel
    refuse_persistent(kernel)
    accesses = _find_accesses(problem, None if row is None else row.facts)
    counts = row is not None and row.facts is None
    with session.lock:
        session.whole_kernel(kernel)
        compile_s = time.perf_counter() - started_s
        with prepared_problem(
            session,
            problem,
            CountingLaunch if counts else OpenCLLaunch,
            seed=settings.seed,
            inferred=accesses,
        ) as launch:
            recorder = (
                WatchedLaunch(launch, kernel.name, watch)
                if watch
                else RecordingLaunch(launch, kernel.name)
            )
            settings = _plan_by_source(settings, problem, launch.ndrange)
            overruns = list_overruns(kernel, launch.ndrange, problem.arguments)
            sys.stderr.writelines(f"{one}\n" for one in overruns)  # told if the process dies
            sampled = sample_launch(
                recorder,
                kernel.name,
                settings,
                weigh=lambda run: _weigh(run, problem),
                report=report,
                started_s=started_s,
            )
            outcome = EstimateOutcome(
                estimate=replace(
                    sampled.estimate,
                    compile_seconds=compile_s,
                    warnings=(*overruns, *sampled.estimate.warnings),
                ),
                recording=replace(recorder.recording(), plan=settings.plan),
                accesses=tuple(
                    getattr(given, "access", None) or found
                    for given, found in zip(problem.arguments, accesses, strict=True)
                ),
            )
            if row is None:
                return replace(outcome, estimate=_add_analytic(outcome.estimate, problem))
            row.keep(outcome)
            report(COUNTING)
            known = row.facts
            return _add_row(
                outcome, sampled, problem, lambda: known or _gather(session, launch, problem)
            )


def model_alone(task: ModelTask, report: ReportProgress) -> ModelOutcome:
    """Ask the analytic model of a device, without opening the device.

    Raises
    ------
    KernelcastError
        If the model has no answer.
    """
    from kernelcast.launches.modelling.launches import choose_local_size

    refuse_persistent(task.problem.kernel)
    report("analytic model")
    ndrange, notes = choose_local_size(task.problem.ndrange)
    touched_bytes = _count_touched_bytes(task.problem, ndrange) if task.wants_bytes else 0.0
    try:
        found = model_own_launch(task.problem, ndrange, task.device_id)
    except KernelcastError:
        if not task.wants_bytes:
            raise
        found = None
    return ModelOutcome(analytic=found, ndrange=ndrange, notes=notes, touched_bytes=touched_bytes)


def _count_touched_bytes(problem: Problem, ndrange: NDRange) -> float:
    """Count what a launch touches at least; nothing where the source does not tell."""
    from kernelcast.features.analysis import analyse
    from kernelcast.features.counting.bindings import bind_scalars
    from kernelcast.features.counting.touched_bytes import count_touched_bytes

    given = enumerate(problem.arguments)
    try:
        facts = analyse(problem.kernel).facts
        names = [one.name for one in facts.parameters]
        sizes = {names[n]: one.bytes for n, one in given if isinstance(one, BufferArgument)}
        scalars = bind_scalars(facts, problem.arguments)
        return count_touched_bytes(facts, ndrange, scalars, sizes)
    except (KernelcastError, IndexError):
        return 0.0


def put_analytic(estimate: Estimate, found: AnalyticEstimate | None) -> Estimate:
    """Put the analytic model's answer and its limiters beside others."""
    if found is None:
        return estimate
    known = estimate.explanation or Explanation(tier=estimate.tier)
    return replace(
        estimate,
        estimates_s={**estimate.estimates_s, "analytic": found.seconds},
        limiter=found.limiter,
        explanation=replace(known, limiters=dict(found.limiters)),
    )


def _add_analytic(estimate: Estimate, problem: Problem) -> Estimate:
    """Ask the analytic model from the source alone; that it has no answer costs a warning."""
    try:
        found = model_own_launch(problem, estimate.ndrange, estimate.device_id)
    except KernelcastError as error:
        warning = f"no analytic estimate: {error}"
        return replace(estimate, warnings=(*estimate.warnings, warning))
    return put_analytic(estimate, found)


def _add_row(
    outcome: EstimateOutcome,
    sampled: SampledEstimate,
    problem: Problem,
    find: Callable[[], LaunchFacts],
) -> EstimateOutcome:
    """Add features; whatever fails on the way, the sampled answer stands."""
    started_s = time.perf_counter()
    facts, row, failure = None, None, ""
    try:
        facts = find()
        row = make_row(sampled, facts)
    except KernelcastError as error:
        failure = str(error)
    except Exception as error:  # noqa: BLE001 - a bug in reading features must not cost the answer
        failure = f"features could not be made, please report it: {error!r}"
    estimate = outcome.estimate
    overhead_s = estimate.overhead_seconds + time.perf_counter() - started_s
    estimate = replace(estimate, overhead_seconds=overhead_s)
    if facts is None:
        estimate = _add_analytic(estimate, problem)
    else:
        estimate = put_analytic(estimate, facts.analytic)
    return replace(outcome, estimate=estimate, row=row, facts=facts, row_failure=failure)


def _find_accesses(problem: Problem, facts: LaunchFacts | None) -> tuple[Access | None, ...]:
    """Say what the kernel may do with its arguments, without a look at its source if known."""
    if facts is not None and len(facts.accesses) == len(problem.arguments):
        return facts.accesses
    from kernelcast.features.access import infer_accesses

    return infer_accesses(problem.kernel, len(problem.arguments))


def _plan_by_source(
    settings: EstimateSettings, problem: Problem, ndrange: NDRange
) -> EstimateSettings:
    from kernelcast.launches.weighing import plan_by_source

    plan = plan_by_source(settings.plan, problem.kernel, ndrange, problem.arguments)
    return replace(settings, plan=plan)


def _weigh(run: SampleRun, problem: Problem) -> SampleRun:
    from kernelcast.launches.weighing import weigh_run

    return weigh_run(run, problem.kernel, problem.arguments)


def _gather(session: DeviceSession, launch: OpenCLLaunch, problem: Problem) -> LaunchFacts:
    from kernelcast.predictor.answering.gathering import gather_facts

    return gather_facts(session, launch, problem)


def make_row(sampled: SampledEstimate, facts: LaunchFacts) -> LaunchRow:
    """Put samples and facts together into what learned models see."""
    estimate, fit = sampled.estimate, sampled.fit
    machine = find_own_machine(estimate.device_id)
    source = SampledSource(
        run=sampled.run,
        linear_s=fit.seconds,
        compute_units=estimate.compute_units,
        issued_per_work_item=facts.issued_per_work_item,
    )
    return LaunchRow(
        vector=combine(source, analytic=facts.values),
        linear_s=fit.seconds,
        linear_error=fit.standard_error_s / fit.seconds,
        two_point_s=fit.two_point_s,
        sampling_s=sampled.run.sampling_s,
        work_groups=estimate.ndrange.work_group_count,
        compute_units=estimate.compute_units,
        peaks=UNKNOWN if machine is None else read_peaks(machine),
    )


def run_estimate(
    session: DeviceSession,
    task: EstimateTask,
    *,
    keep: Callable[[EstimateOutcome], None],
    report: ReportProgress,
    give_up: GiveUp | None = None,
) -> EstimateOutcome:
    """Do a task on an open device; `give_up` ends the process if a sampled launch hangs."""
    row = RowRequest(facts=task.facts, keep=keep) if task.wants_row else None
    problem, settings = task.problem, task.settings
    if give_up is None:
        return estimate_in_session(session, problem, settings, row=row, report=report)
    with HangWatch(problem.kernel, task.device_id, give_up) as watch:
        return estimate_in_session(session, problem, settings, row=row, watch=watch, report=report)
