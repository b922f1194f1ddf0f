"""Times launches: by events, by the host's clock, or by the processor time that they take.

The time on a clock holds more than the work of a launch of a millisecond: threads that sleep must
wake, two of them may be put on one core, a virtual machine's processor may be taken away. A whole
run of the kernel hardly notices; a sample sees little else (same launch of 1 ms, mean deviation
from its median: PoCL 40 % by the clock, 3 % by processor time; llvmpipe 24 and 15 %). So the
processor time of this process over the cores that share the work is believed where it is less.
Whatever else the process does meanwhile, and threads that wait by spinning (Intel's runtime), only
lead back to the clock.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kernelcast.records.samples import LaunchTime
from kernelcast.sampling.opencl import cl

Enqueue: TypeAlias = Callable[[], cl.Event]


@dataclass(slots=True)
class LaunchTimer:
    """Times launches of one queue."""

    queue: cl.CommandQueue
    """Queue with profiling."""
    uses_event_timer: bool
    """Whether profiling events are believed; else the host's clock is read around each launch."""
    cores: int | None = None
    """Processors of the host that share a launch's work; None: processor time tells nothing."""
    asleep_s: float = 0.0
    """What a launch usually lasts beside the work of its threads, in seconds."""
    note_compiled: Callable[[float], None] = lambda _: None
    """Is told of the seconds that a runtime compiled before a launch, as far as events tell."""

    def by_clock(self, enqueue: Enqueue) -> float:
        """Run a launch; return its time by the clock, in seconds, whatever happened meanwhile."""
        self.queue.finish()
        process_s, start_s = time.process_time(), time.perf_counter()
        event = enqueue()
        self.queue.finish()
        host_s = time.perf_counter() - start_s
        if not self.uses_event_timer:
            return host_s
        event_s = _event_seconds(event)
        beside_s = host_s - event_s
        # A launch that waits for a processor works on none meanwhile. Who compiles waits too: for
        # a linker, and for the disk that keeps what was compiled: PoCL does so (60 ms and more) for
        # each local size, and once more for launches of 65,536 work-items.
        if min(beside_s, time.process_time() - process_s) > 5e-3:
            self.note_compiled(beside_s)
        return event_s

    def by_work(self, enqueues: Sequence[Enqueue]) -> list[float]:
        """Run launches one after the other; return the seconds that each one's work takes.

        Where processor time is counted, each is a `LaunchTime` with the time by the clock beside
        it.
        """
        if self.cores is not None:
            return [self._count_work(enqueue, self.cores) for enqueue in enqueues]
        if not self.uses_event_timer:
            return [self.by_clock(enqueue) for enqueue in enqueues]
        # All at once: between launches that are waited for, the runtime's threads fall asleep and
        # each launch would pay for waking them.
        self.queue.finish()
        events = [enqueue() for enqueue in enqueues]
        self.queue.finish()
        return [_event_seconds(event) for event in events]

    def _count_work(self, enqueue: Enqueue, cores: int) -> LaunchTime:
        before_s = time.process_time()
        clock_s = self.by_clock(enqueue)
        worked_s = (time.process_time() - before_s) / cores + self.asleep_s
        return LaunchTime(min(clock_s, worked_s), clock_s)


def _event_seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * 1e-9
