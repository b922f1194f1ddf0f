"""Has a device run configurations in child processes, and goes on without those that it dies of."""

from collections.abc import Callable
from dataclasses import dataclass, field
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
    cost_s: float = 0.0
    """Host time of it, in seconds."""
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


_TUNE: Task[None] = Task(entry="kernelcast.tuning.device_task:run_tuning", gives=TuningEvent)


def run_on_device(
    make_task: Callable[[frozenset[int]], TuningTask | None],
    *,
    timeout_s: float,
    take: Callable[[TuningEvent], None],
) -> None:
    """Run what is left to do in child processes, until `make_task` says that nothing is; it is told
    the configurations that a child died of, or said nothing of for `timeout_s`."""
    given_up: set[int] = set()
    while (task := make_task(frozenset(given_up))) is not None:
        current: list[int] = []
        try:
            # Pass on what a child tells; `current` ends with the configuration it is at.
            subject = task.device_id
            for message in stream_isolated(_TUNE, task, timeout_s=timeout_s, subject=subject):
                if message.kind is MessageKind.ITEM:
                    event: TuningEvent = message.content
                    if event.kind is EventKind.STARTED:
                        current.append(event.number)
                    take(event)
        except (KernelRunError, EstimateTimeoutError) as error:
            if not current:
                raise
            given_up.add(current[-1])
            take(TuningEvent(number=current[-1], kind=EventKind.REFUSED, reason=str(error)))
        else:
            return
