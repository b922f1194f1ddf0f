"""How long launches take: by the device's own timer, the host's clock, or processor time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kernelcast.sampling.opencl import cl
from kernelcast.sampling.worker_clock import WorkerClock

Enqueue: TypeAlias = Callable[[], cl.Event]

_NANOSECOND = 1e-9
# A launch so long in which threads worked so little: their count is the more likely to be wrong.
# Processors of a shared virtual machine were away for 6 ms at most (two of them, watched for 40 s),
# and Linux takes time that the host has stolen off what it counts for threads.
_LONG_S = 20e-3
_LEAST_SHARE = 0.1


@dataclass(slots=True)
class LaunchTimer:
    """Times launches of one queue.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        Queue with profiling.
    uses_event_timer : bool
        Whether profiling events are believed; else the host's clock is read around each launch.
    workers : WorkerClock or None
        Processor time of the device's threads, where it tells more than the clock.
    """

    queue: cl.CommandQueue
    uses_event_timer: bool
    workers: WorkerClock | None = None

    def by_clock(self, enqueue: Enqueue) -> float:
        """Run a launch; give its time by the clock, in seconds, whatever happened meanwhile."""
        self.queue.finish()
        start_s = time.perf_counter()
        event = enqueue()
        self.queue.finish()
        host_s = time.perf_counter() - start_s
        return _event_seconds(event) if self.uses_event_timer else host_s

    def by_work(self, enqueues: Sequence[Enqueue]) -> list[float]:
        """Run launches one after the other; give the seconds that each one's work takes.

        That is the time by the clock, or less where the device's threads are known to have worked
        for less than that: they were asleep, without a processor, or two on one. The clock is
        believed where they are not known to have worked at all, or hardly in a long launch.
        """
        if self.workers is not None:
            try:
                with self.workers.spread():
                    return [self._by_work(enqueue, self.workers) for enqueue in enqueues]
            except OSError:  # a thread has ended: its device made new ones
                self.workers = None
        if not self.uses_event_timer:
            return [self.by_clock(enqueue) for enqueue in enqueues]
        # All at once: between launches that are waited for, the runtime's threads fall asleep and
        # each launch would pay for waking them.
        self.queue.finish()
        events = [enqueue() for enqueue in enqueues]
        self.queue.finish()
        return [_event_seconds(event) for event in events]

    def _by_work(self, enqueue: Enqueue, workers: WorkerClock) -> float:
        before_s = workers.read()
        duration_s = self.by_clock(enqueue)
        worked_s = workers.read() - before_s + workers.asleep_s
        least_s = _LEAST_SHARE * duration_s if duration_s > _LONG_S else 0.0
        is_uncounted = worked_s <= least_s
        return duration_s if is_uncounted else min(duration_s, worked_s)


def _event_seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * _NANOSECOND
