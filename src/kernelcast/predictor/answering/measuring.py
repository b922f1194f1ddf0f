"""Samples a launch on a device and gathers what learned models need; runs in a child process.

A program's own objects are sampled in the program's own process. Much is imported where it is
needed: source analysis and analytic models take longer to import than samples to take.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Final

from kernelcast.features.analysis import infer_accesses, read_facts
from kernelcast.features.vector import SampledSource, combine
from kernelcast.features.work_queues import find_wait_loop
from kernelcast.launches import source_check
from kernelcast.launches.data_folder import kept_folder
from kernelcast.launches.estimation import LaunchSampling, measure
from kernelcast.launches.live import Launch, LiveLaunch, find_reach
from kernelcast.launches.machines import find_own_machine, model_own_launch
from kernelcast.launches.recordings import LaunchFacts, Recording
from kernelcast.models.linear import fit_moments
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    EstimateTask,
    Executor,
    LaunchRow,
    ModelOutcome,
    ModelTask,
    ReportProgress,
    annotate,
    put_analytic,
    read_moments,
)
from kernelcast.records.arguments import BufferArgument, HeldBuffer
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import (
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    NoAnswerYetError,
)
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import read_peaks
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun, join_moments
from kernelcast.sampling.arguments import draw_ahead
from kernelcast.sampling.discovery import choose_device, describe_device, find_devices_once
from kernelcast.sampling.host import TURNS, runs_besides
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import list_recipes, prepared_problem
from kernelcast.sampling.sampler import Sampled
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.sampling.user_objects import (
    check_objects,
    describe_argument,
    list_arguments,
    read_kernel,
    take_argument,
)
from kernelcast.workers import BUILDING, COUNTING, Reporter

GiveUp = Callable[[KernelcastError], None]
"""Ends the process, with an error as its answer."""

_LEAST_S: Final = 10.0
"""What any launch may take. Samples are made to last some milliseconds."""
_TIMES: Final = 1000.0
"""How many times as long as the longest before it a launch may take, beyond that."""
_LOOK_S: Final = 1.0


@contextmanager
def stopping_hangs(
    kernel: Kernel, device_id: str, give_up: GiveUp
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Give up once a launch, a block of what is given, takes longer than it can."""
    waits = source_check.ask_source(kernel, find_wait_loop)
    longest_s: float | None = None
    begun_s: float | None = None
    ended = threading.Event()

    @contextmanager
    def launching() -> Iterator[None]:
        nonlocal longest_s, begun_s
        started_s = begun_s = time.monotonic()
        try:
            yield
        finally:
            begun_s = None
            longest_s = max(longest_s or 0.0, time.monotonic() - started_s)

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            started_s, before_s = begun_s, longest_s
            if started_s is None or not (waits or before_s is not None):
                continue
            limit_s, why = _LEAST_S, f"{waits}, and it may wait for ever"
            if not waits and before_s is not None:
                limit_s = _LEAST_S + _TIMES * before_s
                why = f"none before it took longer than {before_s:.2g} s"
            if time.monotonic() - started_s >= limit_s:
                msg = (
                    f"{device_id}: a launch of some sampled work-groups has not ended within "
                    f"{limit_s:.3g} s: {why}. Its process was stopped"
                )
                give_up(EstimateTimeoutError(msg))
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield launching
    finally:
        ended.set()


def run_estimate(
    session: DeviceSession,
    task: EstimateTask,
    *,
    hold: Callable[..., AbstractContextManager[OpenCLLaunch]] | None = None,
    keep: Callable[[EstimateOutcome], None] | None = None,
    report: ReportProgress = lambda _: None,
    check: Callable[[], None] = lambda: None,
    give_up: GiveUp | None = None,
) -> EstimateOutcome:
    """Sample one launch on a device that is open, and find what learned models need; `hold`
    prepares a launch of a type, with what its arguments are used for, for the length of a block."""
    is_sampled = False

    def look_at_the_clock() -> None:
        check()
        if task.ends_s is not None and time.monotonic() > task.ends_s and not is_sampled:
            raise NoAnswerYetError(f"{task.device_id}: no time is left for samples")

    def begin(stage: str) -> None:
        look_at_the_clock()
        report(stage)

    begin("reading the source")
    started_s = time.perf_counter()
    problem, kernel = task.problem, task.problem.kernel
    source_check.refuse_persistent(kernel)
    if task.facts is not None and len(task.facts.accesses) == len(problem.arguments):
        accesses = task.facts.accesses  # without a look at the source
    else:
        accesses = infer_accesses(kernel, len(problem.arguments))
    is_checked = hold is not None  # live objects are refused before they come here
    if not is_checked:
        source_check.refuse_misfits(problem)  # no compiler of a device is needed to see that
    counts = task.wants_row and task.wants_counts and task.facts is None and not is_checked
    hold = hold or partial(
        prepared_problem, session, problem, seed=task.settings.seed, find_reach=find_reach
    )
    built_s, tried_s = session.building_s, session.trials_s
    turns = session.turns
    hangs: AbstractContextManager[Callable[[], AbstractContextManager[None]]] = (
        stopping_hangs(kernel, task.device_id, give_up) if give_up else nullcontext(nullcontext)
    )
    with hangs as launching, session.lock, turns.preparing():

        @contextmanager
        def watching() -> Iterator[None]:
            look_at_the_clock()
            with launching():
                yield

        begin(BUILDING)
        session.whole_kernel(kernel)
        filling = f"filling {problem.buffer_bytes / 2**20:,.0f} MiB of buffers"
        begin("preparing the launch" if is_checked else filling)
        with hold(inferred=accesses) as launch:
            if not is_checked:
                source_check.refuse_overruns(replace(problem, ndrange=launch.ndrange))
            launch.watching = watching
            sampling = LaunchSampling(
                launch,
                problem,
                task.settings,
                started_s=started_s,
                turn=turns.measuring,
            )

            def make_outcome() -> EstimateOutcome:
                estimate = sampling.conclude()
                trials_s = session.trials_s - tried_s
                estimate = replace(
                    estimate,
                    sampling_seconds=estimate.sampling_seconds + trials_s,
                    overhead_seconds=max(estimate.overhead_seconds - trials_s, 0.0),
                    build_seconds=session.building_s - built_s,
                    compile_seconds=session.build_times_s.get(kernel.digest),
                )
                return EstimateOutcome(
                    estimate=estimate,
                    recording=record(launch, kernel, sampling.runs),
                    accesses=tuple(  # the problem's own words go first
                        getattr(given, "access", None) or one
                        for given, one in zip(problem.arguments, accesses, strict=True)
                    ),
                    moments=read_moments(sampling.runs, task.facts),
                    depends_on_contents=_depends_on_contents(kernel),
                    by_clock=not session.uses_event_timer,
                )

            begin("sampling")
            sampling.take_moment()
            is_sampled = True
            found: LaunchFacts | str | None = None
            if task.wants_row:
                if keep is not None:
                    keep(make_outcome())
                report(COUNTING)
                with turns.preparing():
                    try:
                        found = task.facts or gather_facts(launch, problem, counts=counts)
                    except KernelcastError as error:  # the sampled answer stands
                        found = str(error)
                    except Exception as error:  # noqa: BLE001 - as if a bug were none
                        found = f"features could not be made, please report it: {error!r}"
                report("sampling at another moment")
            sampling.take_rest()
            outcome = _add_facts(make_outcome(), problem, found)
            if not task.settings.measure:
                return outcome
            if keep is not None:
                keep(replace(outcome, awaits_runs=True))
            return _add_measurement(outcome, launch, task, report)


def record(sampled: Sampled, kernel: Kernel, runs: Sequence[SampleRun]) -> Recording:
    return Recording(
        kernel_name=kernel.name,
        kernel_digest=kernel.digest,
        device=sampled.device,
        ndrange=sampled.ndrange,
        saturation=sampled.saturation,
        launch_overhead_s=sampled.launch_overhead_s,
        runs=tuple(runs),
    )


def _add_measurement(
    outcome: EstimateOutcome, launch: OpenCLLaunch, task: EstimateTask, report: ReportProgress
) -> EstimateOutcome:
    estimate, runs = outcome.estimate, task.settings.measured_runs
    measured = measure(
        launch, runs, report=report, expected_s=estimate.expected.seconds, ends_s=task.runs_end_s
    )
    found_s = () if measured is None else measured.durations_s
    if len(found_s) < runs:
        what = f"{len(found_s)} of {runs} whole runs" if found_s else "no whole run"
        estimate = annotate(estimate, f"{what} fitted into the time limit (--timeout)")
    return replace(
        outcome,
        estimate=replace(estimate, measurement=measured),
        recording=replace(
            outcome.recording, whole_s=found_s, slowdown=measured.slowdown if measured else None
        ),
    )


def model_alone(task: ModelTask, report: ReportProgress) -> ModelOutcome:
    """Ask the analytic model of a device, without opening the device."""
    from kernelcast.launches.modelling.launches import choose_local_size

    source_check.refuse_persistent(task.problem.kernel)
    report("analytic model")
    ndrange, touched_bytes, found = task.problem.ndrange, 0.0, None
    notes: tuple[str, ...] = ()
    try:
        ndrange, notes = choose_local_size(ndrange, read_facts(task.problem.kernel))
        if task.wants_bytes:
            from kernelcast.features.counting.static import bind_scalars
            from kernelcast.features.touched_ranges import count_touched_bytes

            with suppress(KernelcastError, IndexError):  # where the source does not tell
                facts, arguments = read_facts(task.problem.kernel), task.problem.arguments
                sizes = {
                    facts.parameters[place].name: one.bytes
                    for place, one in enumerate(arguments)
                    if isinstance(one, BufferArgument)
                }
                scalars = bind_scalars(facts, arguments)
                touched_bytes = count_touched_bytes(facts, ndrange, scalars, sizes)
        found = model_own_launch(task.problem, ndrange, task.device_id, stand_in=task.stand_in)
    except KernelcastError:
        if not (task.wants_bytes or task.wants_values):
            raise
    values: Mapping[str, float] = {}
    if task.wants_values:  # features of a launch that nothing was run of, as a collection has them
        from kernelcast.launches import features

        wanted = features.FeatureSettings(groups=frozenset(FeatureGroup))
        known = features.DeviceFindings(ndrange=ndrange, compute_units=0, analytic=found)
        source = features.read_source_features(task.problem, wanted)
        values = features.compose_vector(source, known).as_dict()
    return ModelOutcome(
        analytic=found,
        ndrange=ndrange,
        notes=notes,
        values=values,
        touched_bytes=touched_bytes,
        depends_on_contents=_depends_on_contents(task.problem.kernel),
    )


def _depends_on_contents(kernel: Kernel) -> bool | None:
    """Tell whether what buffers hold decides how much work-items do; None if it is not known."""
    from kernelcast.features.counting.static import depends_on_contents

    try:
        return depends_on_contents(read_facts(kernel))
    except Exception:  # noqa: BLE001 - a help for other launches must not cost this one's answer
        return None


def gather_facts(launch: OpenCLLaunch, problem: Problem, *, counts: bool) -> LaunchFacts:
    """Find everything about a launch that does not depend on samples, as a collection does."""
    from kernelcast.features.vector import CounterSource
    from kernelcast.launches.counting import count_exactly
    from kernelcast.launches.features import (
        DeviceFindings,
        FeatureSettings,
        add_analytic_findings,
        add_counts,
        compose_vector,
        read_source_features,
    )
    from kernelcast.sampling.compiler_facts import read_compiler_facts

    session = launch.session
    features = read_source_features(problem, FeatureSettings(groups=frozenset(FeatureGroup)))
    found = DeviceFindings(
        ndrange=launch.ndrange,
        compute_units=session.description.compute_units,
        compiler=read_compiler_facts(session, problem.kernel, problem.ndrange),
        saturation=launch.saturation,
    )
    device_id, notes = session.description.id, len(found.notes)
    machine = find_own_machine(device_id)
    # Without an instrumented run where the source tells what it would count.
    found.counters = count_exactly(features.facts, problem, features.counters)
    if found.counters is not None:
        add_analytic_findings(found, problem, device_id, None, with_rivals=False)
        if found.analytic is None and machine is not None:
            # It may be that the model wants recorded addresses after all.
            del found.notes[notes:]
            found.counters = None
    if found.counters is None:
        recorded = add_counts(found, problem, launch) if counts else None
        add_analytic_findings(found, problem, device_id, recorded, with_rivals=False)
    counters = found.counters or features.counters
    warp = CounterSource(counters=counters, facts=features.facts).warp
    return LaunchFacts(
        values={
            name: one
            for name, one in compose_vector(features, found).as_dict().items()
            if group_of(name) is not FeatureGroup.SAMPLED
        },
        issued_per_work_item=warp.issued if warp else None,
        analytic=found.analytic,
        accesses=infer_accesses(problem.kernel, len(problem.arguments)),
        notes=tuple(found.notes),
        peaks=read_peaks(machine),
    )


def _add_facts(
    outcome: EstimateOutcome, problem: Problem, found: LaunchFacts | str | None
) -> EstimateOutcome:
    estimate = outcome.estimate
    if not isinstance(found, LaunchFacts):
        # The analytic model by the source alone; that it has no answer costs a warning.
        try:
            analytic = model_own_launch(problem, estimate.ndrange, estimate.device_id)
            estimate = put_analytic(estimate, analytic)
        except KernelcastError as error:
            estimate = annotate(estimate, f"no analytic estimate: {error}")
        return replace(outcome, estimate=estimate, row_failure=found or "")
    estimate = put_analytic(estimate, found.analytic)
    recording = replace(outcome.recording, facts=found)
    outcome = replace(
        outcome,
        estimate=estimate,
        recording=recording,
        moments=read_moments(recording.runs, found),
    )
    from kernelcast.launches.features import compare_with_launch

    try:
        run = join_moments(recording.runs)
        touched = compare_with_launch(read_facts(problem.kernel), problem, run)
        return replace(outcome, row=make_row(recording, found, touched))
    except KernelcastError as error:
        return replace(outcome, row_failure=str(error))


def make_row(
    recording: Recording, facts: LaunchFacts, touched: tuple[float, float] | None = None
) -> LaunchRow:
    """Put samples and facts together into what learned models see."""
    fit, compute_units = fit_moments(recording.runs), recording.device.compute_units
    source = SampledSource(
        run=join_moments(recording.runs),
        linear_s=fit.seconds,
        compute_units=compute_units,
        issued_per_work_item=facts.issued_per_work_item,
        touched=touched,
    )
    columns = {
        **facts.peaks,
        "linear_s": fit.seconds,
        "linear_error": fit.standard_error_s / fit.seconds,
        "two_point_s": math.nan if fit.two_point_s is None else fit.two_point_s,
        "sampling_s": sum(one.sampling_s for one in recording.runs),
        "work_groups": float(recording.ndrange.work_group_count),
        "compute_units": float(compute_units),
    }
    return LaunchRow(vector=combine(source, analytic=facts.values), columns=columns)


class LiveObjects(Executor):
    """Samples one launch where its buffers are; None where none is sampled."""

    def __init__(self, launch: LiveLaunch | None) -> None:
        self.launch = launch

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        del timeout_s
        assert self.launch is not None
        session = self.launch.session
        if task.waits_for_device:
            waiting = "waiting for the device; it is busy with other launches"
            report(waiting)
            while session.description.kind is DeviceKind.CPU and _are_drivers_busy():
                report(waiting)
            with session.lock:
                session.run_trial(1)
        return run_estimate(
            session,
            task,
            hold=self.launch.hold,
            report=report,
            check=partial(report, "running work-groups"),
        )


def _are_drivers_busy() -> bool:
    """Tell whether threads of drivers run for longer than one does that was just woken."""
    # Threads that have just ended a launch may spin for a while.
    for _ in range(3):
        if not runs_besides(thread.native_id for thread in threading.enumerate()):
            return False
        time.sleep(1e-3)
    return True


def sketch_live(launch: Launch) -> tuple[Problem, DeviceDescription]:
    """Describe a launch of live objects, and its device, by what is known without asking that."""
    check_objects(launch.kernel, launch.queue)
    device = launch.queue.device
    kernel = read_kernel(launch.kernel, device, source=launch.source, options=launch.build_options)
    source_check.refuse_persistent(kernel)
    parameters = source_check.list_parameters(kernel)
    given = list_arguments(launch.args)
    if parameters is None or len(parameters) != len(given):
        raise InputError(f"kernel {kernel.name}: its parameters are not known by its source")
    session = DeviceSession(describe_device(device), launch.queue.context, device)
    arguments = [
        describe_argument(session, parameter, take_argument(parameter, value), is_decisive=False)
        for parameter, value in zip(source_check.tell_sizes(kernel, parameters), given, strict=True)
    ]
    # Their contents would be read by the device.
    arguments = [
        replace(one, read=None) if isinstance(one, HeldBuffer) else one for one in arguments
    ]
    local, offset = launch.local_size, launch.global_offset
    ndrange = NDRange(
        global_size=tuple(launch.global_size),
        local_size=None if local is None else tuple(local),
        global_offset=tuple(offset or ()),
    )
    problem = Problem(name=kernel.name, kernel=kernel, ndrange=ndrange, arguments=tuple(arguments))
    source_check.refuse_overruns(problem)
    return problem, session.description


_sessions: dict[str, DeviceSession] = {}
_opening = threading.Lock()


def sample_on_device(task: EstimateTask, report: Reporter) -> EstimateOutcome:
    """Predict one problem on one device; the sampled answer is given before features are made."""
    report("opening the device")
    with TURNS.preparing():
        draw_ahead(list_recipes(task.problem, seed=task.settings.seed).values())
        session = _open(task.device_id)
    return run_estimate(session, task, keep=report.give, report=report, give_up=report.give_up)


def make_ready(wanted: str) -> None:
    """Find the devices, and open one before it is asked; an id that fits none opens none."""
    with suppress(KernelcastError):
        devices = find_devices_once()
        description, _ = choose_device(wanted, devices) if wanted else devices[0]
        _open(description.id)


def make_ready_fully(device_id: str) -> None:
    """Open a device and find out all that a sampling wants to know of it; import what it needs."""
    import_module("kernelcast.features.analysis")
    import_module("kernelcast.launches.features")
    import_module("kernelcast.sampling.compiler_facts")
    session = _open(device_id)
    with session.lock, session.turns.measuring():
        session.try_out()


def _open(device_id: str) -> DeviceSession:
    with _opening:  # who is asked while it gets ready waits
        if device_id not in _sessions:
            device = choose_device(device_id, find_devices_once())
            _sessions[device_id] = open_session(*device, kept_folder())
        return _sessions[device_id]
