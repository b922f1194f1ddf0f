"""Times launches: by events, by the host's clock, or by the processor time that they take.

The time on a clock holds more than the work of a launch of a millisecond: threads wake, two are put
on one core, a virtual machine's processor is taken away (same launch of 1 ms, mean deviation from
its median: PoCL 40 % by the clock, 3 % by processor time; llvmpipe 24 and 15 %). So the processor
time of this process over the cores that share the work is believed where it is less. What else the
process does, and threads that wait by spinning (Intel's runtime), only lead back to the clock.

Threads that have slept are woken on one processor more often than not, where atomics and caches
behave otherwise for milliseconds, and who spins takes the processor from who works (Intel's
runtime: estimates of 0.5 to 5 times the time). So they are kept on a processor each meanwhile.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kernelcast.records.samples import LaunchTime
from kernelcast.sampling.opencl import cl

Enqueue: TypeAlias = Callable[[], cl.Event]


@dataclass(slots=True)
class LaunchTimer:
    queue: cl.CommandQueue
    uses_event_timer: bool
    """Whether profiling events are believed; else the host's clock is read around each launch."""
    cores: int | None = None
    """Processors of the host that share a launch's work; None: processor time tells nothing."""
    workers: tuple[int, ...] = ()
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
        """Run launches one after the other; return the seconds that each one's work takes."""
        if self.cores is None and self.uses_event_timer:
            # All at once: between launches that are waited for, the runtime's threads fall asleep
            # and each launch would pay for waking them.
            self.queue.finish()
            events = [enqueue() for enqueue in enqueues]
            self.queue.finish()
            return [_event_seconds(event) for event in events]
        found: list[float] = []
        with kept_apart(() if self.cores is None else self.workers):
            for enqueue in enqueues:
                before_s = time.process_time()
                clock_s = self.by_clock(enqueue)
                if self.cores is None:
                    found.append(clock_s)
                    continue
                worked_s = (time.process_time() - before_s) / self.cores + self.asleep_s
                found.append(LaunchTime(min(clock_s, worked_s), clock_s))
        return found


_THREADS = Path("/proc/self/task")
# Who works for less than this share of a launch only hands it on; so often it is looked.
_WORKS, _LOOKS = 0.2, 5
_kept: dict[int, tuple[set[int], int]] = {}
"""Threads that are kept on one processor: where they were allowed before, and how many want it."""
_kept_lock = threading.Lock()


def find_workers(run: Callable[[], object], cores: int) -> tuple[int, ...]:
    """Find the numbers of the threads that work for a device, 0 for whichever calls, by launches of
    some milliseconds; none where fewer than cores come to work, as beside other programs."""
    caller = threading.get_native_id()
    others = {thread.native_id for thread in threading.enumerate()} - {caller}
    for _ in range(_LOOKS if _THREADS.is_dir() else 0):
        before, start_s = _read_threads(), time.perf_counter()
        run()
        least_s = _WORKS * (time.perf_counter() - start_s)
        worked = {
            number: seconds - before.get(number, 0.0) for number, seconds in _read_threads().items()
        }
        found = sorted(number for number in worked.keys() - others if worked[number] > least_s)
        if len(found) >= cores:
            return tuple(0 if number == caller else number for number in found)
    return ()


@contextmanager
def kept_apart(threads: Sequence[int]) -> Iterator[None]:
    """Keep threads of `find_workers` on a processor each; several sessions may share them."""
    with ExitStack() as kept:
        for index, thread in enumerate(threads):
            with suppress(OSError):  # it has ended
                kept.enter_context(_kept_on(thread or threading.get_native_id(), index))
        yield


@contextmanager
def _kept_on(thread: int, index: int) -> Iterator[None]:
    """Keep a thread on one of the processors that it may use; who comes second changes nothing."""
    with _kept_lock:
        allowed, times = _kept.get(thread) or (os.sched_getaffinity(thread), 0)
        if not times:
            processors = sorted(allowed)
            os.sched_setaffinity(thread, {processors[index % len(processors)]})
        _kept[thread] = allowed, times + 1
    try:
        yield
    finally:
        with _kept_lock:
            allowed, times = _kept.pop(thread)
            if times > 1:
                _kept[thread] = allowed, times - 1
            else:
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, allowed)


def _read_threads() -> dict[int, float]:
    found = {}
    for path in _THREADS.iterdir():
        with suppress(OSError):  # it has just ended
            # clock_gettime(2): bits of the clock that counts one thread's nanoseconds.
            found[int(path.name)] = time.clock_gettime((~int(path.name) << 3) | 0b110)
    return found


def _event_seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * 1e-9
