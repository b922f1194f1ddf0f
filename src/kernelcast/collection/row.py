"""Observes one launch: samples it as an estimate does, and then times the whole kernel.

The first moment is what an estimate of a new launch sees: nothing of the kernel ran before.
Whole runs follow, with further moments between them, so that both states can be compared.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.features import (
    DeviceFindings,
    FeatureSettings,
    add_analytic_findings,
    add_counts,
    compose_vector,
    read_source_features,
)
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.weighing import SourceSampler, weigh_run
from kernelcast.models.linear import fit_linear, fit_moments
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag
from kernelcast.records.observed_times import (
    MachineState,
    RunTimes,
    SampleSet,
    summarise_runs,
)
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun, join_moments
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.machine_state import read_processor_times, read_state_since
from kernelcast.sampling.plan import SAMPLER, SamplingPlan
from kernelcast.sampling.sampler import choose_unit, sample_pairs
from kernelcast.sampling.session import DeviceSession
from kernelcast.workers.deaths import COUNTING

_EVERYTHING = frozenset(FeatureGroup)
_PACKAGES = ("kernelcast", "pyopencl", "numpy")


class TooLongError(KernelcastError):
    """A launch takes much longer than was asked for."""


@dataclass(slots=True)
class _Row:
    """What is measured of a launch as it accumulates."""

    launch: CountingLaunch
    settings: CollectionSettings
    problem: Problem
    sampler: SourceSampler
    samples: list[SampleSet] = field(default_factory=list)
    moments: list[SampleRun] = field(default_factory=list)
    durations_s: list[float] = field(default_factory=list)
    started_s: list[float] = field(default_factory=list)

    def take_moment(self) -> None:
        """Sample as an estimate does, at places of their own, as long as there are any left."""
        run = self.sampler.moments.take_moment()
        if run is not None:
            run = self.sampler.weigh(run)
            self._keep(run, 0, len(self.moments))
            self.moments.append(run)

    def sample_pairs(self, window_set: int, unit: int) -> None:
        """Sample at multiples of the saturation point."""
        multiples = range(1, self.settings.multiples + 1)
        at_s = time.time()
        pairs = sample_pairs(self.launch, multiples, window_set=window_set, unit=unit)
        for multiple, launches in pairs.items():
            run = replace(self.moments[0], launches=launches, is_even=True, at_s=at_s)
            run = weigh_run(run, self.problem.kernel, self.problem.arguments)
            self._keep(replace(run, is_even=True), multiple, window_set)

    def _keep(self, run: SampleRun, multiple: int, window_set: int) -> None:
        self.samples.append(
            SampleSet(
                multiple=multiple,
                window_set=window_set,
                launches=run.launches,
                launch_overhead_s=run.launch_overhead_s,
                is_even=run.is_even,
                linear_s=fit_linear(run).seconds,
                at_s=run.at_s,
            )
        )

    def time_whole(self) -> None:
        """Time the whole kernel once."""
        started_s = time.time()
        self.durations_s.append(self.launch.time_whole())
        self.started_s.append(started_s)

    @property
    def noise(self) -> float:
        """Noise of the whole runs so far."""
        return summarise_runs(self.durations_s).noise or 0.0


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
        _check_time(row.moments[0], settings)
        features = read_source_features(problem, FeatureSettings(groups=_EVERYTHING))
        compiler = read_compiler_facts(session, kernel, problem.ndrange)
        first = tuple(row.moments)
        _measure(row, report)
        is_gpu = session.description.kind is DeviceKind.GPU
        state = read_state_since(before, gpu=session.description.name if is_gpu else "")
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
    return Observation(
        launch=identity,
        runs=times,
        features=compose_vector(features, found),
        samples=tuple(row.samples),
        flags=_flag(times, state, settings),
        machine_state=state,
        versions=read_versions(session),
        measured_at=datetime.now(UTC),
    )


def read_versions(session: DeviceSession) -> Mapping[str, str]:
    """Give the versions that an observation depends on."""
    return {
        **{name: version(name) for name in _PACKAGES},
        "runtime": session.description.driver,
        "sampler": str(SAMPLER),
        "cpu_model": str(REVISION),
    }


def _check_time(run: SampleRun, settings: CollectionSettings) -> None:
    if settings.too_long is None:
        return
    predicted_s, most_s = fit_linear(run).seconds, settings.too_long * settings.longest_s
    if predicted_s > most_s:
        msg = f"takes about {predicted_s:.3g} s, rows may take {most_s:.3g} s at most"
        raise TooLongError(msg)


def _measure(row: _Row, report: Callable[[str], None]) -> None:
    """Time whole runs with further samples between them; twice as many where they disagree."""
    report("whole runs")
    row.launch.time_whole()  # not counted: it warms up what sampling does not reach
    others = _other_samples(row)
    for _ in range(row.settings.runs):
        row.time_whole()
        next(others, None)
    for _ in others:
        pass
    if row.noise > row.settings.most_noise:
        for _ in range(row.settings.runs):
            row.time_whole()


def _other_samples(row: _Row) -> Iterator[None]:
    """Sample at other moments and other points, a set at each step."""
    unit = choose_unit(row.launch, fit_linear(row.moments[0]).rate_s)
    for window_set in range(row.settings.window_sets):
        row.take_moment()
        yield
        if row.settings.multiples:
            row.sample_pairs(window_set, unit)
            yield


def _flag(
    times: RunTimes, state: MachineState, settings: CollectionSettings
) -> frozenset[ObservationFlag]:
    """Flag a row whose whole runs disagree, or beside which others were at work all the time."""
    is_noisy = (times.noise or 0.0) > settings.worst_noise
    is_shared = (state.others_busy or 0.0) > settings.most_others
    return frozenset({ObservationFlag.CONTAMINATED}) if is_noisy or is_shared else frozenset()
