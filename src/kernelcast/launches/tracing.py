"""Traces a problem on devices: marks from the source, a run on the device, a verdict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.features.tracing import make_tracing_kernel
from kernelcast.launches.devices import ask_each
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, check_seed, check_timeout
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError, KernelRunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem
from kernelcast.records.work_group_trace import (
    Staircase,
    StepTimes,
    Timeline,
    TraceMethod,
    WorkGroupTrace,
)
from kernelcast.sampling.instrumented import (
    build_marked,
    find_concurrency,
    find_p_sat,
    find_run_length,
    find_staircase,
    find_steps,
    time_steps,
    trace_box,
)
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import box_near
from kernelcast.sampling.session import DeviceSession, open_device
from kernelcast.workers import Task

_MOST_WORK_GROUPS = 1_000_000
_TRACE = Task(entry="kernelcast.launches.tracing:trace_problem", returns=WorkGroupTrace)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    method: TraceMethod = TraceMethod.AUTO
    work_groups: int | None = None
    """How many of the first to trace; None means all, at most 10,000."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.work_groups is not None and not 1 <= self.work_groups <= _MOST_WORK_GROUPS:
            raise InputError(
                f"{self.work_groups:,} work-groups to trace; give --work-groups of at least 1, at "
                f"most {_MOST_WORK_GROUPS:,}"
            )
        check_seed(self.seed)


def trace_problem(
    asked: tuple[Problem, str, TraceSettings], report: Callable[[str], None]
) -> WorkGroupTrace:
    """Trace a problem on the device of an id; what a child process is asked."""
    problem, device_id, settings = asked
    report("opening the device")
    session = open_device(device_id)
    return trace_in_session(session, problem, settings, report)


def trace_in_session(
    session: DeviceSession, problem: Problem, settings: TraceSettings,
    report: Callable[[str], None] = lambda _: None,
) -> WorkGroupTrace:  # fmt: skip
    report("building the kernel and its buffers")
    try:
        traced: Kernel | str = make_tracing_kernel(problem.kernel)
    except InputError as error:
        traced = str(error)
    with prepared_launch(session, problem, seed=settings.seed) as launch:
        outcome, reason = _run(launch, traced, settings, report)
        probe_concurrency = launch.saturation.concurrency
    units = launch.device.compute_units
    staircase, run_length = Staircase.NOT_APPLICABLE, None
    if isinstance(outcome, Timeline):
        starts, finishes = np.asarray(outcome.starts_s), np.asarray(outcome.finishes_s)
        lanes, waves = np.asarray(outcome.lanes), np.asarray(outcome.waves)
        knows_units = outcome.lanes_are_compute_units
        concurrency = find_concurrency(starts, finishes)
        p_sat = find_p_sat(starts, finishes, lanes, compute_units=units, knows_units=knows_units)
        if p_sat > 1:
            staircase = find_staircase(starts, finishes, waves, lanes if knows_units else None)
        run_length = find_run_length(starts, lanes)
    else:
        concurrency = find_steps(outcome.work_groups, outcome.times_s)[0]
        p_sat = -(-concurrency // units)
    is_told = isinstance(outcome, Timeline) or outcome.has_steps
    return WorkGroupTrace(
        device=launch.device.name,
        device_id=launch.device.id,
        problem=problem.name,
        kernel=problem.kernel.name,
        ndrange=launch.ndrange,
        compute_units=units,
        reason=reason,
        concurrency=concurrency if is_told else None,
        p_sat=p_sat if is_told else None,
        probe_concurrency=probe_concurrency,
        staircase=staircase,
        run_length=run_length,
        outcome=outcome,
    )


def _run(
    launch: OpenCLLaunch, traced: Kernel | str, settings: TraceSettings,
    report: Callable[[str], None],
) -> tuple[Timeline | StepTimes, str]:  # fmt: skip
    """Trace the first work-groups by a clock, or by the steps of t(n) where there is none, and say
    why so; `traced` is the kernel with marks, or why it cannot have any."""
    counts, total = launch.ndrange.group_counts, launch.ndrange.work_group_count
    asked = min(total, 10_000) if settings.work_groups is None else settings.work_groups
    box = box_near(0, min(asked, total), counts)
    marked, reason = None, "asked for"
    if settings.method is not TraceMethod.STEPS:
        report("building the traced kernel")
        marked, reason = (
            (None, traced) if isinstance(traced, str) else build_marked(launch, traced, box)
        )
    if marked is not None:
        report(f"tracing {box.work_group_count:,} work-groups")
        return trace_box(launch, marked, box), reason
    if settings.method is TraceMethod.CLOCK:
        device_id = launch.device.id
        msg = f"{device_id}: no trace by a clock: {reason}; leave the method to kernelcast"
        raise KernelRunError(msg)
    report("timing launches of 1, 2, 3, ... work-groups")
    return time_steps(launch), reason


def trace_on_devices(
    problem: Problem,
    devices: Sequence[DeviceDescription],
    *,
    settings: TraceSettings,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[DeviceDescription, WorkGroupTrace | KernelcastError]]:
    check_timeout(timeout_s)
    return ask_each(
        _TRACE,
        devices,
        lambda device: (problem.on(device), device.id, settings),
        timeout_s=timeout_s,
        report=report,
    )
