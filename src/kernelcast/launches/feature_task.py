"""What only a device can tell of a launch: compiled resources, executed counts, timed samples."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelcast.features.analysis import analyse
from kernelcast.launches.counting import Counted, CountSettings, count_launch, summarise_run
from kernelcast.launches.own_machine import model_own_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.weighing import sample_by_source
from kernelcast.models.linear import fit_linear
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.device import SaturationPoint
from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.workers.deaths import COUNTING

ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTask:
    problem: Problem
    device_id: str
    groups: frozenset[FeatureGroup]
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class DeviceFindings:
    ndrange: NDRange
    compute_units: int
    compiler: CompilerFacts | None = None
    saturation: SaturationPoint | None = None
    counters: SoftwareCounters | None = None
    run: SampleRun | None = None
    linear_s: float | None = None
    analytic: AnalyticEstimate | None = None
    costs_s: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What could not be had, and why."""


def read_device_features(task: FeatureTask, report: ReportProgress) -> DeviceFindings:
    report("opening the device")
    started_s = time.perf_counter()
    session = open_session(*choose_device(task.device_id, find_devices()))
    opened_s = time.perf_counter() - started_s
    found = read_in_session(session, task, report=report)
    found.costs_s = {"opening the device": opened_s, **found.costs_s}
    return found


def read_in_session(
    session: DeviceSession, task: FeatureTask, *, report: ReportProgress = lambda _: None
) -> DeviceFindings:
    problem, groups, recorded = task.problem, task.groups, None
    found = DeviceFindings(ndrange=problem.ndrange, compute_units=session.description.compute_units)
    if FeatureGroup.COMPILER in groups:
        with _step(found, "compiler facts", report):
            found.compiler = read_compiler_facts(session, problem.kernel, problem.ndrange)
    with prepared_launch(session, problem, CountingLaunch, seed=task.seed) as launch:
        found.ndrange = launch.ndrange
        if groups & {FeatureGroup.COUNTERS, FeatureGroup.ANALYTIC}:
            with _step(found, COUNTING, report):
                settings, kernel = CountSettings(seed=task.seed), problem.kernel
                recorded = add_counts(
                    found, problem, lambda: count_launch(launch, kernel, analyse(kernel), settings)
                )
        if groups & {FeatureGroup.SAMPLED, FeatureGroup.COMPILER}:
            is_sampled = FeatureGroup.SAMPLED in groups
            with _step(found, "sampling" if is_sampled else "finding P_sat", report):
                found.saturation = launch.saturation
                if is_sampled:
                    plan = SamplingPlan(seed=task.seed)
                    found.run = sample_by_source(launch, plan, problem.kernel, problem.arguments)
                    found.linear_s = fit_linear(found.run).seconds
    if FeatureGroup.ANALYTIC in groups:
        with _step(found, "analytic model", report):
            add_analytic_findings(found, problem, task.device_id, recorded)
    return found


def add_counts(
    found: DeviceFindings, problem: Problem, run: Callable[[], Counted]
) -> RecordedAddresses | None:
    """Count by an instrumented run; where there can be none, counts from the source stand."""
    try:
        counted = run()
        found.counters = summarise_run(problem, counted)
        found.ndrange = counted.ndrange
    except KernelcastError as error:
        found.notes.append(f"counters are derived from the source: {error}")
        return None
    return counted.addresses


def add_analytic_findings(
    found: DeviceFindings,
    problem: Problem,
    device_id: str,
    recorded: RecordedAddresses | None,
    *,
    with_rivals: bool = True,
) -> None:
    """Ask the analytic model of the device; that it has no answer is only noted."""
    if found.ndrange.local_size is None:
        found.notes.append("no analytic features: the local size is not known")
        return
    try:
        found.analytic = model_own_launch(
            problem,
            found.ndrange,
            device_id,
            counters=found.counters,
            recorded=recorded,
            with_rivals=with_rivals,
        )
    except KernelcastError as error:
        found.notes.append(f"no analytic features: {error}")
        return
    if found.analytic is None:
        found.notes.append(
            f"no analytic features: `kernelcast calibrate --device {device_id}` makes the "
            "description that they need"
        )


@contextmanager
def _step(found: DeviceFindings, name: str, report: ReportProgress) -> Iterator[None]:
    report(name)
    started_s = time.perf_counter()
    yield
    found.costs_s[name] = time.perf_counter() - started_s
