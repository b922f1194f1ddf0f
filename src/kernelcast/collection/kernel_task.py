"""All rows of one kernel on one device, in a child process.

Each launch is sampled as an estimate does, and then the whole kernel is timed. The first moment is
what an estimate of a new launch sees: nothing of the kernel ran before. Whole runs follow, with
further moments between them, so that both states can be compared.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.collection.collection import KernelTask, make_failure
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.data_folder import data_folder
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
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.launches.weighing import open_by_source, sample_by_source, weigh_run
from kernelcast.models.linear import fit_linear, fit_moments
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError, KernelcastError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.observation import (
    FailureRecord,
    Observation,
    ObservationFlag,
    SampleSet,
    summarise_runs,
)
from kernelcast.records.plain import pick
from kernelcast.records.private_files import write_private
from kernelcast.records.problem import LaunchIdentity, Problem, identify_launch
from kernelcast.records.samples import SampleRun, join_moments
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.host import read_processor_times, read_state_since
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import SAMPLER, SamplingPlan
from kernelcast.sampling.sampler import choose_unit, sample_pairs
from kernelcast.sampling.session import DeviceSession, open_device
from kernelcast.training_data.applications import CorpusKernel, SizeRange
from kernelcast.training_data.store import StoreError
from kernelcast.workers import COUNTING, Reporter


class TooLongError(KernelcastError):
    """A launch takes much longer than was asked for."""


class _Row:
    def __init__(
        self, launch: OpenCLLaunch, problem: Problem, settings: CollectionSettings
    ) -> None:
        self.launch, self.problem, self.settings = launch, problem, settings
        plan = SamplingPlan(seed=settings.seed)
        self.sampler, self.weigh = open_by_source(launch, plan, problem)
        self.samples: list[SampleSet] = []
        self.moments: list[SampleRun] = []

    def take_moment(self) -> None:
        """Sample as an estimate does, at places of their own, as long as there are any left."""
        run = self.sampler.take_moment()
        if run is not None:
            run = self.weigh(run)
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
                run = weigh_run(run, problem, launch.saturation.parts)
                self._keep(replace(run, is_even=True), multiple, window_set)
            yield

    def _keep(self, run: SampleRun, multiple: int, window_set: int) -> None:
        facts = pick(run, "launches", "launch_overhead_s", "is_even", "at_s", "imbalance")
        linear_s = fit_linear(run).seconds
        self.samples.append(
            SampleSet(multiple=multiple, window_set=window_set, linear_s=linear_s, **facts)
        )


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
    with prepared_launch(session, problem, seed=settings.seed) as launch:
        row = _Row(launch, problem, settings)
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
        launch.time_whole()  # not counted: it warms up what sampling does not reach
        others = row.sample_others()
        started_s, durations_s, slowdowns = list[float](), list[float](), list[float]()

        def time_runs() -> None:
            for _ in range(settings.runs):
                started_s.append(time.time())
                seconds, slowdown = time_whole(launch)
                durations_s.append(seconds / slowdown)
                slowdowns.append(slowdown)
                next(others, None)

        time_runs()
        for _ in others:
            pass
        if (summarise_runs(durations_s).noise or 0.0) > settings.most_noise:
            time_runs()
        is_gpu = session.description.kind is DeviceKind.GPU
        state = read_state_since(before, gpu=session.description.name if is_gpu else "")
        state = replace(state, slowdown=median(slowdowns))
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
    times = summarise_runs(durations_s, started_s)
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
    kernel, device_id, settings, done = task
    session = open_device(device_id)
    device = session.description
    sizes = kernel.sizes or remember_sizes(
        device, kernel, settings, lambda: _find_sizes(session, kernel, settings, report)
    )
    # The usual local size at every size, others at every other one.
    usual, *others = kernel.local_sizes[: settings.local_sizes]
    shapes = [(size, usual) for size in sizes]
    shapes += [(size, other) for other in others for size in sizes[::2]]
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
        if launch.key not in done and work_groups < settings.least_work_groups:
            row = f"{work_groups} work-groups"
        elif launch.key not in done:
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


def _find_sizes(
    session: DeviceSession, kernel: CorpusKernel, settings: CollectionSettings, report: Reporter
) -> tuple[int, ...]:
    """Find the sizes at which the kernel takes the times that are wanted on this device."""
    report("looking for sizes")
    goal_s = (settings.shortest_s * settings.longest_s) ** 0.5
    fill_s: dict[int, float] = {}

    def predict(size: int) -> float:
        usual = kernel.local_sizes[0]
        prepared = prepare_launch(kernel, {kernel.size.parameter: size}, local_size=usual)
        problem = prepared.problem.on(session.description)
        with prepared_launch(session, problem, seed=settings.seed) as launch:
            plan = SamplingPlan(seed=settings.seed)
            run = sample_by_source(launch, plan, problem)
            # How often work-groups fill the device.
            fills = launch.ndrange.work_group_count / launch.saturation.concurrency
        fill_s[size] = fit_linear(run).seconds / fills
        return fit_linear(run).seconds

    start = int(read_parameters(kernel.problem_path)[kernel.size.parameter])
    anchor = find_anchor(kernel.size, start, goal_s, predict)
    # Lengthen times until launches fill the device sixteen times: of launches with fewer units, a
    # pair of samples takes most.
    longer = max(1.0, 16 * fill_s[anchor[0]] / settings.shortest_s)
    times_s = (settings.shortest_s * longer, settings.longest_s * longer)
    return choose_sizes(kernel.size, anchor, times_s, settings.sizes)


def remember_sizes(
    device: DeviceDescription, kernel: CorpusKernel, settings: CollectionSettings,
    find: Callable[[], tuple[int, ...]],
) -> tuple[int, ...]:  # fmt: skip
    """Return the sizes that were chosen before, unless anything they depend on has changed: driver,
    files of the application, wanted times."""
    told = hashlib.sha256()
    if kernel.suite:
        for file in sorted(kernel.problem_path.parent.glob("*")):
            if file.is_file():
                told.update(file.name.encode() + b"\0" + file.read_bytes())
    else:  # other files of the folder belong to other kernels, or are data
        told.update(kernel.problem_path.read_bytes())
        told.update(read_problem(kernel.problem_path).kernel.digest.encode())
    wanted = [device.driver, settings.sizes, settings.shortest_s, settings.longest_s]
    told.update(json.dumps(wanted).encode())
    path = data_folder() / "collection" / device.id / kernel.application / f"{kernel.stem}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # not there or damaged: chosen anew
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["depends_on"] == told.hexdigest():
            return tuple(int(size) for size in content["sizes"])
    sizes = find()
    content = {"depends_on": told.hexdigest(), "sizes": sizes}
    try:
        write_private(path, json.dumps(content).encode())
    except OSError as error:
        msg = f"{path}: the chosen sizes cannot be kept: {error.strerror or error}"
        raise StoreError(msg) from error
    return sizes


# One trial changes the size by this factor in time at most: growth may differ from its exponent.
_LARGEST_STEP = 64.0
# Where too few allowed sizes lie in the range of times, it is widened by these factors.
_WIDER = (1.0, 2.0, 4.0, 8.0)


def find_anchor(
    size: SizeRange, start: int, goal_s: float, predict: Callable[[int], float]
) -> tuple[int, float]:
    """Look for a size at which a launch takes about the goal; return it with its seconds."""
    value = size.fit(start)
    best: tuple[int, float] | None = None
    known: tuple[int, float] | None = None
    tried: set[int] = set()
    largest = size.most
    for _ in range(6):
        if value in tried:
            break
        tried.add(value)
        try:
            seconds = predict(value)
        except DeviceLimitError:
            if value == size.least:
                raise
            largest = value
            value = size.scale(value, 1 / 8)
            continue
        # Give how time really grows between two sizes, within a factor of two of what was told.
        if known is None or known[0] == value:
            exponent = size.exponent
        else:
            seen = math.log(seconds / known[1]) / math.log(value / known[0])
            exponent = min(max(seen, 0.5 * size.exponent), 2 * size.exponent)
        known = (value, seconds)
        if best is None or _distance(seconds, goal_s) < _distance(best[1], goal_s):
            best = (value, seconds)
        # A size whose time is predicted this near to the goal needs no other trial.
        if _distance(seconds, goal_s) < math.log(1.3):
            break
        step = min(max(goal_s / seconds, 1 / _LARGEST_STEP), _LARGEST_STEP)
        value = min(size.fit(value * step ** (1 / exponent)), largest)
    if best is None:
        return size.least, predict(size.least)
    return best


def choose_sizes(
    size: SizeRange, anchor: tuple[int, float], times_s: tuple[float, float], count: int
) -> tuple[int, ...]:
    """Choose sizes whose times spread evenly, on a logarithmic scale, over a range."""
    shortest_s, longest_s = times_s
    chosen: set[int] = set()
    for factor in _WIDER:
        low, high = math.log(shortest_s / factor), math.log(longest_s * factor)
        # A finer grid than needed, since several times may share the nearest allowed size.
        steps = max(count - 1, 1) * (1 if factor == 1 else 8)
        found = {
            size.scale(anchor[0], math.exp(low + (high - low) * step / steps) / anchor[1])
            for step in range(steps + 1)
        }
        nearest = sorted(found - chosen, key=lambda one: (_distance(one, anchor[0]), one))
        chosen |= set(nearest[: count - len(chosen)])
        if len(chosen) >= count:
            break
    return tuple(sorted(chosen))


def _distance(value: float, goal: float) -> float:
    return abs(math.log(value / goal))
