"""Runs configurations on a device: the part of tuning that is done in a child process."""

import time
from collections.abc import Callable
from functools import partial

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepare_whole, prepared_problem
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.tuning.device_runs import EventKind, TuningEvent, TuningTask
from kernelcast.workers.protocol import Reporter

_Outcome = tuple[EventKind, float, float]
"""What happened, the seconds it is about, and the time that the process's threads spent."""


def run_tuning(task: TuningTask, report: Reporter) -> None:
    """Do a task; each configuration's events are given as they happen."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    with session.lock:
        if task.runs:
            _measure(session, task, report)
        else:
            for number, problem in task.problems.items():
                _try(number, report, partial(_sample, session, problem, task))


def _measure(session: DeviceSession, task: TuningTask, report: Reporter) -> None:
    """Build all, then run them in turn: what slows the machine down for a while slows all."""
    built: dict[int, Callable[[], tuple[float, float]]] = {}

    def build(number: int, problem: Problem) -> _Outcome:
        started_s, used_s = time.perf_counter(), time.process_time()
        problem = problem.on(session.description)
        accesses = infer_accesses(problem.kernel, len(problem.arguments))
        launch = prepare_whole(session, problem, accesses, seed=task.settings.seed)
        launch()
        built[number] = launch
        cpu_s = time.process_time() - used_s
        return EventKind.BUILT, time.perf_counter() - started_s, cpu_s

    def run(launch: Callable[[], tuple[float, float]]) -> _Outcome:
        return EventKind.RAN, *launch()

    for number, problem in task.problems.items():
        _try(number, report, partial(build, number, problem))
    for turn in range(max(task.runs.values(), default=0)):
        for number in [one for one in built if task.runs[one] > turn]:
            _try(number, report, partial(run, built[number]))


def _sample(session: DeviceSession, problem: Problem, task: TuningTask) -> _Outcome:
    problem = problem.on(session.description)
    refuse_persistent(problem.kernel)
    accesses = infer_accesses(problem.kernel, len(problem.arguments))
    with prepared_problem(
        session, problem, OpenCLLaunch, seed=task.settings.seed, inferred=accesses
    ) as launch:
        sampled = sample_launch(launch, problem.kernel.name, task.settings)
    return EventKind.SAMPLED, sampled.estimate.seconds, 0.0


def _try(number: int, report: Reporter, act: Callable[[], _Outcome]) -> None:
    """Do something with a configuration and tell how it went; a refusal ends it alone."""
    report.give(TuningEvent(number=number, kind=EventKind.STARTED))
    try:
        kind, seconds, cpu_s = act()
    except KernelcastError as error:
        event = TuningEvent(number=number, kind=EventKind.REFUSED, reason=str(error))
    else:
        event = TuningEvent(number=number, kind=kind, seconds=seconds, cpu_s=cpu_s)
    report.give(event)
