"""Has a device run configurations, and goes on without those that it dies of."""

from collections.abc import Callable

from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.tuning.messages import (
    EventKind,
    MeasureTask,
    SampleTask,
    TuningEvent,
)
from kernelcast.workers import MessageKind, Task, stream_isolated

Take = Callable[[TuningEvent], None]
_TUNE: Task[None] = Task(entry="kernelcast.tuning.device_task:run_tuning", gives=TuningEvent)


def conduct(
    make_task: Callable[[frozenset[int]], MeasureTask | SampleTask | None],
    *,
    timeout_s: float,
    take: Take,
) -> None:
    """Run a task in child processes until all of it is done.

    Parameters
    ----------
    make_task : callable
        Gives what is left to do without some configurations that were given up; None if nothing
        is.
    timeout_s : float
        A child that tells nothing for so long is stopped, in seconds.
    take : callable
        Takes events as they happen. A configuration that a child died of, or that did not end,
        is refused.

    Raises
    ------
    KernelcastError
        If the device fails before any configuration is begun.
    """
    given_up: set[int] = set()
    while (task := make_task(frozenset(given_up))) is not None:
        current: list[int] = []
        try:
            _listen(task, timeout_s, current, take)
        except (KernelRunError, EstimateTimeoutError) as error:
            if not current:
                raise
            given_up.add(current[-1])
            take(TuningEvent(number=current[-1], kind=EventKind.REFUSED, reason=str(error)))
        else:
            return


def _listen(
    task: MeasureTask | SampleTask, timeout_s: float, current: list[int], take: Take
) -> None:
    """Pass on what a child tells; `current` ends with the configuration it is at."""
    subject = task.device_id
    for message in stream_isolated(_TUNE, task, timeout_s=timeout_s, subject=subject):
        if message.kind is MessageKind.ITEM:
            event: TuningEvent = message.content
            if event.kind is EventKind.STARTED:
                current.append(event.number)
            take(event)
