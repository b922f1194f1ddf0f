"""Has a device run configurations in child processes, and goes on without those that it dies of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.records.problem import Problem
from kernelcast.workers import MessageKind, Task, stream_isolated


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
_TUNE: Task[None] = Task(entry="kernelcast.tuning.device_task:run_tuning", gives=TuningEvent)


def run_on_device(
    task: TuningTask, *, timeout_s: float, take: Callable[[TuningEvent], None]
) -> None:
    """Run or sample configurations in child processes; one that a child dies of, or says nothing of
    for `timeout_s`, is refused, and another child does what is left."""
    left, runs = dict(task.problems), dict(task.runs)
    while left:
        current: int | None = None
        part = replace(task, problems=dict(left), runs=dict(runs))
        subject = task.device_id
        try:
            for message in stream_isolated(_TUNE, part, timeout_s=timeout_s, subject=subject):
                if message.kind is not MessageKind.ITEM:
                    continue
                event: TuningEvent = message.content
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
