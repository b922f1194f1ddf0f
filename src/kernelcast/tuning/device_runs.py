"""Has a device run configurations in child processes, and goes on without those that it dies of."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepare_whole, prepared_problem
from kernelcast.sampling.session import open_session
from kernelcast.workers import Reporter, Task, stream_isolated


class EventKind(StrEnum):
    """What happened to a configuration."""

    STARTED = "started"
    """It is being built; told first, so that it is known what a driver died of."""
    BUILT = "built"
    """Built and run once; `seconds` is what that took on the host."""
    RAN = "ran"
    """Run once more as a whole; `seconds` is its time."""
    SAMPLED = "sampled"
    """A few work-groups ran; `seconds` is the estimate of the whole launch."""
    REFUSED = "refused"
    """The device does not take it; `reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningEvent:
    """What happened to a configuration."""

    number: int
    kind: EventKind
    seconds: float = 0.0
    reason: str = ""
    cpu_s: float = 0.0
    """Of a build or run: time of all threads of the process that did it, in seconds. On a CPU
    device and a machine that others use as well, it says more than the time that passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningTask:
    """Configurations to be measured on one device, or sampled."""

    device_id: str
    problems: dict[int, Problem]
    runs: dict[int, int]
    """Runs that each still needs; empty where they are sampled."""
    settings: EstimateSettings = field(default_factory=EstimateSettings)


_LAST = (EventKind.SAMPLED, EventKind.REFUSED)
_TUNE: Task[None] = Task(entry="kernelcast.tuning.device_runs:run_tuning", gives=TuningEvent)


def run_on_device(
    task: TuningTask, *, timeout_s: float, take: Callable[[TuningEvent], None]
) -> None:
    """Run or sample configurations in child processes; one that a child dies of, or says nothing of
    for `timeout_s`, is refused, and another child does what is left."""
    left, runs = dict(task.problems), dict(task.runs)
    while left:
        current: int | None = None
        part = replace(task, problems=dict(left), runs=dict(runs))
        event: TuningEvent
        try:
            for event in stream_isolated(_TUNE, part, timeout_s=timeout_s, subject=task.device_id):
                if event.kind is EventKind.STARTED:
                    current = event.number
                elif event.kind is EventKind.RAN:
                    runs[event.number] -= 1
                if event.kind in _LAST or runs.get(event.number) == 0:
                    left.pop(event.number, None)
                take(event)
        except (KernelRunError, EstimateTimeoutError) as error:
            if current is None:
                raise
            left.pop(current, None)
            take(TuningEvent(number=current, kind=EventKind.REFUSED, reason=str(error)))
        else:
            return


def run_tuning(task: TuningTask, report: Reporter) -> None:
    """Do a task, in a child process; each configuration's events are given as they happen."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    launches: dict[int, Callable[[], tuple[float, float]]] = {}

    def sample(number: int) -> TuningEvent:
        problem = task.problems[number].on(session.description)
        refuse_persistent(problem.kernel)
        accesses = infer_accesses(problem.kernel, len(problem.arguments))
        with prepared_problem(
            session, problem, OpenCLLaunch, seed=task.settings.seed, inferred=accesses
        ) as launch:
            found = sample_launch(launch, problem.kernel.name, task.settings).estimate
        return TuningEvent(number=number, kind=EventKind.SAMPLED, seconds=found.seconds)

    def build(number: int) -> TuningEvent:
        started_s, used_s = time.perf_counter(), time.process_time()
        problem = task.problems[number].on(session.description)
        accesses = infer_accesses(problem.kernel, len(problem.arguments))
        launch = prepare_whole(session, problem, accesses, seed=task.settings.seed)
        launch()
        launches[number] = launch
        return TuningEvent(
            number=number, kind=EventKind.BUILT, seconds=time.perf_counter() - started_s,
            cpu_s=time.process_time() - used_s,
        )  # fmt: skip

    def run(number: int) -> TuningEvent:
        seconds, cpu_s = launches[number]()
        return TuningEvent(number=number, kind=EventKind.RAN, seconds=seconds, cpu_s=cpu_s)

    def attempt(act: Callable[[int], TuningEvent], number: int) -> None:
        """Do something with a configuration; a refusal ends it alone."""
        report.give(TuningEvent(number=number, kind=EventKind.STARTED))
        try:
            event = act(number)
        except KernelcastError as error:
            event = TuningEvent(number=number, kind=EventKind.REFUSED, reason=str(error))
        report.give(event)

    with session.lock:
        for number in task.problems:
            attempt(build if task.runs else sample, number)
        # In turn: what slows the machine down for a while slows all.
        for turn in range(max(task.runs.values(), default=0)):
            for number in [one for one in launches if task.runs[one] > turn]:
                attempt(run, number)
