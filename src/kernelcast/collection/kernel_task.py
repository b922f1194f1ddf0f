"""All rows of one kernel on one device, in a child process.

Each launch is sampled as an estimate does, and then the whole kernel is timed. The first moment is
what an estimate of a new launch sees: nothing of the kernel ran before. Whole runs follow, with
further moments between them, so that both states can be compared.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.collection.collection import KernelTask, make_failure
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.collection.settings import CollectionSettings
from kernelcast.collection.sizes import (
    choose_sizes,
    find_anchor,
    lengthen_times,
    read_sizes,
    write_sizes,
)
from kernelcast.launches.estimation import time_whole
from kernelcast.launches.features import (
    DeviceFindings,
    FeatureSettings,
    add_analytic_findings,
    add_counts,
    compose_vector,
    read_source_features,
)
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_parameters
from kernelcast.launches.weighing import SourceSampler, sample_by_source, weigh_run
from kernelcast.models.linear import fit_linear, fit_moments
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import FailureRecord, Observation, ObservationFlag
from kernelcast.records.observed_times import SampleSet, summarise_runs
from kernelcast.records.plain import pick
from kernelcast.records.problem import Problem, identify_launch
from kernelcast.records.samples import SampleRun, join_moments
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.machine_state import read_processor_times, read_state_since
from kernelcast.sampling.plan import SAMPLER, SamplingPlan
from kernelcast.sampling.sampler import choose_unit, sample_pairs
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.workers import COUNTING, Reporter


class TooLongError(KernelcastError):
    """A launch takes much longer than was asked for."""


@dataclass(slots=True)
class _Row:
    launch: CountingLaunch
    settings: CollectionSettings
    problem: Problem
    sampler: SourceSampler
    samples: list[SampleSet] = field(default_factory=list)
    moments: list[SampleRun] = field(default_factory=list)
    durations_s: list[float] = field(default_factory=list)
    started_s: list[float] = field(default_factory=list)
    slowdowns: list[float] = field(default_factory=list)

    def take_moment(self) -> None:
        """Sample as an estimate does, at places of their own, as long as there are any left."""
        run = self.sampler.moments.take_moment()
        if run is not None:
            run = self.sampler.weigh(run)
            self._keep(run, 0, len(self.moments))
            self.moments.append(run)

    def sample_others(self) -> Iterator[None]:
        """Sample at other moments and other points, a set at each step."""
        launch, problem = self.launch, self.problem
        unit = choose_unit(launch, fit_linear(self.moments[0]).rate_s)
        multiples = range(1, self.settings.multiples + 1)
        for window_set in range(self.settings.window_sets):
            self.take_moment()
            yield
            if not multiples:
                continue
            at_s = time.time()
            pairs = sample_pairs(launch, multiples, window_set=window_set, unit=unit)
            for multiple, launches in pairs.items():
                run = replace(self.moments[0], launches=launches, is_even=True, at_s=at_s)
                run = weigh_run(run, problem.kernel, problem.arguments, launch.saturation.parts)
                self._keep(replace(run, is_even=True), multiple, window_set)
            yield

    def _keep(self, run: SampleRun, multiple: int, window_set: int) -> None:
        facts = pick(run, "launches", "launch_overhead_s", "is_even", "at_s", "imbalance")
        linear_s = fit_linear(run).seconds
        self.samples.append(
            SampleSet(multiple=multiple, window_set=window_set, linear_s=linear_s, **facts)
        )

    def time_whole(self) -> None:
        self.started_s.append(time.time())
        seconds, slowdown = time_whole(self.launch)
        self.durations_s.append(seconds / slowdown)
        self.slowdowns.append(slowdown)


def observe_launch(
    session: DeviceSession,
    problem: Problem,
    identity: LaunchIdentity,
    settings: CollectionSettings,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> Observation:
    """Make an observation of a launch on a device that is open, to be stored under an identity."""
    kernel = problem.kernel
    with prepared_launch(session, problem, CountingLaunch, seed=settings.seed) as launch:
        plan = SamplingPlan(seed=settings.seed)
        sampler = SourceSampler(launch, plan, kernel, problem.arguments)
        row = _Row(launch=launch, settings=settings, problem=problem, sampler=sampler)
        before = read_processor_times()
        report("sampling")
        row.take_moment()
        predicted_s = fit_linear(row.moments[0]).seconds
        if settings.too_long is not None and predicted_s > settings.too_long * settings.longest_s:
            most_s = settings.too_long * settings.longest_s
            msg = f"takes about {predicted_s:.3g} s, rows may take {most_s:.3g} s at most"
            raise TooLongError(msg)
        features = read_source_features(problem, FeatureSettings(groups=frozenset(FeatureGroup)))
        compiler = read_compiler_facts(session, kernel, problem.ndrange)
        first = tuple(row.moments)
        # Time whole runs with further samples between them; twice as many where they disagree.
        report("whole runs")
        row.launch.time_whole()  # not counted: it warms up what sampling does not reach
        others = row.sample_others()
        for _ in range(settings.runs):
            row.time_whole()
            next(others, None)
        for _ in others:
            pass
        if (summarise_runs(row.durations_s).noise or 0.0) > settings.most_noise:
            for _ in range(settings.runs):
                row.time_whole()
        is_gpu = session.description.kind is DeviceKind.GPU
        state = read_state_since(before, gpu=session.description.name if is_gpu else "")
        state = replace(state, slowdown=median(row.slowdowns))
        found = DeviceFindings(
            ndrange=launch.ndrange,
            compute_units=session.description.compute_units,
            compiler=compiler,
            saturation=launch.saturation,
            run=join_moments(first),
            linear_s=fit_moments(first).seconds,
        )
        recorded = None
        if settings.counts:
            report(COUNTING)
            recorded = add_counts(found, problem, launch)
    add_analytic_findings(found, problem, session.description.id, recorded)
    times = summarise_runs(row.durations_s, row.started_s)
    # Flag a row whose whole runs disagree, or beside which others were at work all the time.
    is_noisy = (times.noise or 0.0) > settings.worst_noise
    is_shared = (state.others_busy or 0.0) > settings.most_others
    return Observation(
        launch=identity,
        runs=times,
        features=compose_vector(features, found),
        samples=tuple(row.samples),
        flags=frozenset({ObservationFlag.CONTAMINATED}) if is_noisy or is_shared else frozenset(),
        machine_state=state,
        versions={
            **{name: version(name) for name in ("kernelcast", "pyopencl", "numpy")},
            "runtime": session.description.driver,
            "sampler": str(SAMPLER),
            "cpu_model": str(REVISION),
        },
        measured_at=datetime.now(UTC),
    )


def collect_kernel(task: KernelTask, report: Reporter) -> None:
    """Measure the rows of a kernel; each is given to the parent as soon as it is there."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    device, kernel, settings = session.description, task.kernel, task.settings
    sizes = task.sizes or read_sizes(device, kernel, settings)
    if not sizes:
        report("looking for sizes")
        sizes = find_sizes(session, kernel, settings)
        write_sizes(device, kernel, settings, sizes)
    shapes = list_shapes(kernel.local_sizes[: settings.local_sizes], sizes)
    for number, (size, local_size) in enumerate(shapes, start=1):
        report("making inputs")
        prepared = prepare_launch(kernel, {kernel.size.parameter: size}, local_size=local_size)
        launch = identify_launch(
            prepared.problem, device, seed=settings.seed, parameters=prepared.parameters
        )
        names = {"suite": kernel.suite, "application": kernel.application}
        launch = replace(launch, kernel=replace(launch.kernel, name=kernel.stem, **names))
        work_groups = prepared.problem.ndrange.work_group_count
        report.give(launch)
        row: Observation | FailureRecord | str = ""
        if launch.key not in task.done and work_groups < settings.least_work_groups:
            row = f"{work_groups} work-groups"
        elif launch.key not in task.done:
            report(f"row {number} of {len(shapes)}")
            try:
                row = observe_launch(
                    session, prepared.problem.on(device), launch, settings, report=report
                )
            except TooLongError as error:
                row = str(error)
            except KernelcastError as error:
                row = make_failure(launch, error)
        report.give(row)


def find_sizes(
    session: DeviceSession, kernel: CorpusKernel, settings: CollectionSettings
) -> tuple[int, ...]:
    """Find the sizes at which the kernel takes the times that are wanted on this device."""
    times_s = (settings.shortest_s, settings.longest_s)
    goal_s = (settings.shortest_s * settings.longest_s) ** 0.5
    fill_s: dict[int, float] = {}

    def predict(size: int) -> float:
        usual = kernel.local_sizes[0]
        prepared = prepare_launch(kernel, {kernel.size.parameter: size}, local_size=usual)
        problem = prepared.problem.on(session.description)
        with prepared_launch(session, problem, OpenCLLaunch, seed=settings.seed) as launch:
            plan = SamplingPlan(seed=settings.seed)
            run = sample_by_source(launch, plan, problem.kernel, problem.arguments)
            # How often work-groups fill the device.
            fills = launch.ndrange.work_group_count / launch.saturation.concurrency
        fill_s[size] = fit_linear(run).seconds / fills
        return fit_linear(run).seconds

    start = int(read_parameters(kernel.problem_path)[kernel.size.parameter])
    anchor = find_anchor(kernel.size, start, goal_s, predict)
    return choose_sizes(
        kernel.size, anchor, lengthen_times(times_s, fill_s[anchor[0]]), settings.sizes
    )


def list_shapes(
    local_sizes: tuple[tuple[int, ...], ...], sizes: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """List sizes with local sizes: the usual one at every size, others at every other size."""
    usual, *others = local_sizes
    shapes = [(size, usual) for size in sizes]
    return shapes + [(size, other) for other in others for size in sizes[::2]]
