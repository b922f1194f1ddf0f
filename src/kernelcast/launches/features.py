"""Everything that is known of a launch as features: from its source, and from devices."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import bind_scalars
from kernelcast.features.touched_ranges import compare_touched
from kernelcast.features.vector import (
    CounterSource,
    SampledSource,
    Source,
    StaticSource,
    combine,
    find_longest,
)
from kernelcast.features.work_queues import find_wait_loop
from kernelcast.launches.counting import count_from_source, count_launch, summarise_run
from kernelcast.launches.devices import ask_each
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.machines import model_own_launch
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, check_seed, check_timeout
from kernelcast.launches.source_check import ask_source
from kernelcast.launches.weighing import sample_by_source
from kernelcast.models.linear import fit_linear
from kernelcast.records.device import CompilerFacts, DeviceDescription, SaturationPoint
from kernelcast.records.errors import KernelcastError, KernelRunError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureGroup, FeatureVector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import open_device
from kernelcast.workers import COUNTING, Task

DEFAULT_GROUPS = frozenset({FeatureGroup.STATIC, FeatureGroup.COUNTERS, FeatureGroup.COMPILER})
"""Groups without those that time the kernel."""

_NEEDS_DEVICE = frozenset(FeatureGroup) - {FeatureGroup.STATIC}


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
    vector: FeatureVector | None = None
    """All features that were asked for, those of the source too; made of all of the above."""


DeviceAnswer: TypeAlias = tuple[DeviceDescription, DeviceFindings | KernelcastError]
_READ = Task(entry="kernelcast.launches.features:read_device_features", returns=DeviceFindings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSettings:
    groups: frozenset[FeatureGroup] = DEFAULT_GROUPS
    """Which features; those that need a device are absent without one."""
    seed: int = 0
    timeout_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_timeout(self.timeout_s)


_DEFAULTS = FeatureSettings()


@dataclass(frozen=True, kw_only=True)
class KernelFeatures:
    problem: Problem
    ndrange: NDRange
    """Its index space; the local size is an assumption where the device is to choose."""
    settings: FeatureSettings
    facts: KernelFacts
    counters: SoftwareCounters
    costs_s: dict[str, float]
    notes: tuple[str, ...] = ()
    devices: tuple[DeviceAnswer, ...] = ()

    @cached_property
    def vector(self) -> FeatureVector:
        """Features that need no device; made when they are asked for."""
        return compose_vector(self, DeviceFindings(ndrange=self.problem.ndrange, compute_units=0))

    @property
    def best_counters(self) -> SoftwareCounters:
        """Counters of the first device that measured them, else those derived from the source."""
        found = (one.counters for _, one in self.devices if isinstance(one, DeviceFindings))
        return next((one for one in found if one is not None), self.counters)


def read_source_features(problem: Problem, settings: FeatureSettings = _DEFAULTS) -> KernelFeatures:
    costs_s: dict[str, float] = {}
    with _step(costs_s, "analysis of the source"):
        facts = read_facts(problem.kernel)
    ndrange, notes = choose_local_size(problem.ndrange, facts)
    if not notes:  # given, or required by the kernel
        problem = replace(problem, ndrange=ndrange)
    with _step(costs_s, "counts from the source"):
        counters = count_from_source(facts, problem, ndrange)
    return KernelFeatures(
        problem=problem,
        ndrange=ndrange,
        settings=settings,
        facts=facts,
        counters=counters,
        costs_s=costs_s,
        notes=notes,
    )


def read_on_devices(
    features: KernelFeatures,
    devices: Sequence[DeviceDescription],
    *,
    report: ReportProgress = lambda _: None,
) -> Iterator[DeviceAnswer]:
    """Add what devices tell, one after the other, each in a process of its own."""
    settings = features.settings
    asked = ask_each(
        _READ,
        devices if settings.groups & _NEEDS_DEVICE else (),
        lambda device: (features.problem.on(device), device.id, settings),
        timeout_s=settings.timeout_s,
        report=report,
    )
    for device, found in asked:
        answer = found
        if isinstance(found, DeviceFindings):
            try:
                found.vector = compose_vector(features, found)
            except KernelcastError as error:
                answer = error
        yield device, answer


def compose_vector(features: KernelFeatures, found: DeviceFindings) -> FeatureVector:
    """Make the vector of a launch on a device; measured counters replace those from the source."""
    counters = CounterSource(counters=found.counters or features.counters, facts=features.facts)
    problem = replace(features.problem, ndrange=found.ndrange)
    sources: list[Source] = [StaticSource(facts=features.facts, problem=problem), counters]
    if found.run is not None and found.linear_s is not None:
        sources.append(SampledSource(
            run=found.run, linear_s=found.linear_s, compute_units=found.compute_units,
            issued_per_work_item=counters.warp.issued if counters.warp else None,
            touched=compare_with_launch(features.facts, problem, found.run),
        ))  # fmt: skip
    told = (found.saturation, found.compiler, found.analytic)
    sources += [one for one in told if one is not None]
    return combine(*sources).select(features.settings.groups)


def compare_with_launch(
    facts: KernelFacts, problem: Problem, run: SampleRun
) -> tuple[float, float] | None:
    """Compare lines and pages of the largest sampled launch with those of the whole one."""
    scalars = bind_scalars(facts, problem.arguments)
    return compare_touched(facts, run.ndrange, scalars, find_longest(run).box)


def read_device_features(
    asked: tuple[Problem, str, FeatureSettings], report: ReportProgress
) -> DeviceFindings:
    """Read what a device of an id tells of a problem; what a child process is asked."""
    problem, device_id, settings = asked
    groups, seed, recorded = settings.groups, settings.seed, None
    costs_s: dict[str, float] = {}
    with _step(costs_s, "opening the device", report):
        session = open_device(device_id)
    found = DeviceFindings(
        ndrange=problem.ndrange, compute_units=session.description.compute_units, costs_s=costs_s
    )
    if FeatureGroup.COMPILER in groups:
        with _step(costs_s, "compiler facts", report):
            found.compiler = read_compiler_facts(session, problem.kernel, problem.ndrange)
    with prepared_launch(session, problem, seed=seed) as launch:
        found.ndrange = launch.ndrange
        if groups & {FeatureGroup.COUNTERS, FeatureGroup.ANALYTIC}:
            with _step(costs_s, COUNTING, report):
                recorded = add_counts(found, problem, launch, seed=seed)
        if groups & {FeatureGroup.SAMPLED, FeatureGroup.COMPILER}:
            is_sampled = FeatureGroup.SAMPLED in groups
            with _step(costs_s, "sampling" if is_sampled else "finding P_sat", report):
                found.saturation = launch.saturation
                if is_sampled:
                    plan = SamplingPlan(seed=seed)
                    found.run = sample_by_source(launch, plan, problem)
                    found.linear_s = fit_linear(found.run).seconds
    if FeatureGroup.ANALYTIC in groups:
        with _step(costs_s, "analytic model", report):
            add_analytic_findings(found, problem, device_id, recorded)
    return found


def add_counts(
    found: DeviceFindings, problem: Problem, launch: OpenCLLaunch, *, seed: int = 0
) -> RecordedAddresses | None:
    """Count by an instrumented run; where there can be none, counts from the source stand."""
    try:
        waits = ask_source(problem.kernel, find_wait_loop)
        if waits:
            raise KernelRunError(f"{waits}, and a run of a few work-groups may wait for ever")
        sample, addresses = count_launch(launch, problem.kernel, seed=seed)
        found.counters = summarise_run(problem, sample, addresses)
        found.ndrange = launch.ndrange
    except KernelcastError as error:
        found.notes.append(f"counters are derived from the source: {error}")
        return None
    return addresses


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
def _step(
    costs_s: dict[str, float], name: str, report: ReportProgress = lambda _: None
) -> Iterator[None]:
    report(name)
    started_s = time.perf_counter()
    yield
    costs_s[name] = time.perf_counter() - started_s
