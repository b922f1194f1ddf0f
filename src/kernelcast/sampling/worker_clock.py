"""Times launches: by events, by the host's clock, or by the work of a CPU device's threads.

The time on a clock holds more than the work of a launch of a millisecond: threads that sleep must
wake, two of them may be put on one core, a virtual machine's processor may be taken away. A whole
run of the kernel hardly notices; a sample sees little else (same launch of 1 ms, mean deviation
from its median: PoCL 40 % by the clock, 3 % by processor time; llvmpipe 24 and 15 %, at 10 ms 20
and 4 %). Linux counts each thread's time on a processor in nanoseconds and leaves out what the
host of a virtual machine took.

Where the calling thread works along and others wait for it by spinning (Intel's runtime), waits
count as work; there, a processor for each thread is what helps.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TypeAlias

from kernelcast.records.samples import LaunchTime
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.other_programs import count_others
from kernelcast.sampling.waiting import leave_waiting_out, read_waiting

_THREADS = Path("/proc/self/task")
# A thread that works, or waits for a processor, for less than this share of a launch is none of
# those that work. One that waits counts: beside other programs one thread may do little of each
# trial, and all of the samples.
_WORKS = 0.2
_FEWEST_TRIALS = 3

_kept: dict[int, tuple[set[int], int]] = {}
"""Threads that are kept on one processor: where they were allowed before, and how many want it."""
_kept_lock = threading.Lock()

Seconds: TypeAlias = Mapping[int, float]
"""Processor time per thread's number."""

RunProbe: TypeAlias = Callable[[int, int], float]
"""Runs so many work-groups of so many steps; gives the launch's time by the clock, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClock:
    """Counts what the threads of a device do."""

    threads: tuple[int, ...]
    cores: int
    """Processors that they share."""
    asleep_s: float = 0.0
    """What a launch lasts beside the work of its threads, usually, in seconds."""
    with_caller: bool = False
    """Whether the calling thread works along."""

    def read(self) -> float:
        """Give the seconds that the threads have worked so far, per core.

        Raises
        ------
        OSError
            If one of them has ended.
        """
        caller_s = time.thread_time() if self.with_caller else 0.0
        return (sum(map(_read_thread, self.threads)) + caller_s) / self.cores

    @contextmanager
    def spread(self) -> Iterator[None]:
        """Keep each thread on a processor of its own meanwhile.

        Threads that have slept are woken on one and the same processor more often than not; it
        takes milliseconds until they are moved apart.

        Raises
        ------
        OSError
            If one of them has ended.
        """
        caller = (threading.get_native_id(),) if self.with_caller else ()
        with ExitStack() as kept:
            for index, thread in enumerate(caller + self.threads):
                kept.enter_context(_kept_apart(thread, index))
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One launch of some milliseconds, and a pause right after it."""

    duration_s: float
    """By the clock, less what threads waited for a processor that others had."""
    caller_s: float
    """Processor time of the calling thread during the launch."""
    busy_s: Seconds
    """That of each other thread."""
    paused_s: float
    restless_s: Seconds
    """Processor time of each of them during the pause."""
    waited_s: Seconds = field(default_factory=dict)
    """What each of them waited for a processor during the launch."""


def find_worker_clock(run_probe: RunProbe, compute_units: int) -> WorkerClock | None:
    """Look for the threads that work for a device.

    Parameters
    ----------
    run_probe : callable
        Runs a probe kernel on a device that computes on the host's processors.
    compute_units : int
        Of the device: where fewer threads come to work in a trial, others do later.

    Returns
    -------
    WorkerClock or None
        None where the system does not tell, or where the threads' time is not the launch's.
    """
    if not _THREADS.is_dir():
        return None
    processors = len(os.sched_getaffinity(0))
    groups = 16 * processors
    with suppress(OSError):  # a thread has ended meanwhile
        # Beside other programs, threads may come to nothing in all trials: 12 of 60 searches on
        # Intel's runtime found none beside nine others, and samples are then timed with all that
        # they wait.
        for _ in range(3):
            found = judge_trials(_run_trials(run_probe, groups, processors), processors)
            is_whole = found is not None and found.cores >= min(compute_units, processors)
            if found is not None and is_whole:
                # What a launch lasts while its threads sleep.
                asleep = []
                with found.spread():
                    for _ in range(15):
                        before_s = found.read()
                        duration_s = run_probe(groups, 1)
                        asleep.append(duration_s - (found.read() - before_s))
                return replace(found, asleep_s=max(median(asleep), 0.0))
            if found is None and not count_others():
                break
    return None


def judge_trials(trials: Sequence[Trial], processors: int) -> WorkerClock | None:
    """Tell from trials which threads work for a device, and on how many cores.

    Returns
    -------
    WorkerClock or None
        None where threads neither rest between launches nor share them with the calling thread, or
        where the work is not theirs alone.

    Examples
    --------
    >>> calm = Trial(
    ...     duration_s=5.0, caller_s=0.1, busy_s={7: 4.9, 8: 5.0}, paused_s=3.0, restless_s={}
    ... )
    >>> judge_trials([calm], processors=2)
    WorkerClock(threads=(7, 8), cores=2, asleep_s=0.0, with_caller=False)
    """
    found = _guess(trials, processors)
    if found is None:
        return None
    shares, of_all = [], []
    for one in trials:
        done_s = sum(one.busy_s.get(thread, 0.0) for thread in found.threads)
        done_s += one.caller_s if found.with_caller else 0.0
        shares.append(done_s / (found.cores * one.duration_s))
        of_all.append(done_s / (sum(one.busy_s.values()) + one.caller_s))
    # Share of a launch for which cores worked on it, at best and usually: less is done elsewhere,
    # more is wrong. Busy machines leave little. And most of what the process did is theirs, or
    # somebody else works too.
    is_sound = max(shares) > 0.4 and median(shares) < 1.6 and median(of_all) > 0.7
    return found if is_sound else None


def _guess(trials: Sequence[Trial], processors: int) -> WorkerClock | None:
    """Say which threads seem to work; None if there are none, or some rest for nobody."""
    if not trials:
        return None
    with_caller = median(one.caller_s / one.duration_s for one in trials) > _WORKS
    busy: dict[int, list[float]] = {}
    restless: dict[int, list[float]] = {}
    for one in trials:
        for thread in one.busy_s.keys() | one.restless_s.keys():
            busy_s = one.busy_s.get(thread, 0.0)
            wanted_s = busy_s + one.waited_s.get(thread, 0.0)
            # Those that only hand launches on do less than a twentieth.
            share = wanted_s / one.duration_s if busy_s > 0.05 * one.duration_s else 0.0
            busy.setdefault(thread, []).append(share)
            share = one.restless_s.get(thread, 0.0) / one.paused_s
            restless.setdefault(thread, []).append(share)
    threads = tuple(sorted(thread for thread in busy if median(busy[thread]) > _WORKS))
    # Those that are busy for more of a pause wait by spinning, or do other work.
    is_restless = any(median(restless[thread]) > 0.2 for thread in threads)
    if not threads or (is_restless and not with_caller):
        return None
    cores = min(len(threads) + with_caller, processors)
    return WorkerClock(threads=threads, cores=cores, with_caller=with_caller)


def _run_trials(run_probe: RunProbe, groups: int, processors: int) -> list[Trial]:
    """Try a launch until its threads are found, or time is over."""
    start_s = min(run_probe(groups, 1) for _ in range(_FEWEST_TRIALS))
    wanted_s = max(5e-3, 20 * start_s)
    steps = 64
    while steps < 2**24 and min(run_probe(groups, steps) for _ in range(2)) < wanted_s:
        steps *= 2
    trials: list[Trial] = []
    begin_s = time.perf_counter()
    while time.perf_counter() - begin_s < 0.25:
        guess = _guess(trials, processors)
        with guess.spread() if guess else nullcontext():
            trials.append(_try_once(run_probe, groups, steps))
        if len(trials) < _FEWEST_TRIALS:
            continue
        if guess is None or judge_trials(trials, processors) is not None:
            break
    return trials


def _try_once(run_probe: RunProbe, groups: int, steps: int) -> Trial:
    before_waiting = read_waiting()
    before, caller_s = _read_threads(), time.thread_time()
    duration_s = run_probe(groups, steps)
    caller_s = time.thread_time() - caller_s
    between, end_s = _read_threads(), time.perf_counter()
    waiting = read_waiting()
    duration_s = leave_waiting_out(duration_s, before_waiting, waiting)
    time.sleep(3e-3)
    after, rested_s = _read_threads(), time.perf_counter()
    return Trial(
        duration_s=duration_s,
        caller_s=caller_s,
        busy_s=_subtract(between, before),
        paused_s=rested_s - end_s,
        restless_s=_subtract(after, between),
        waited_s={
            int(name): one.waited_s - before_waiting[name].waited_s
            for name, one in waiting.items()
            if name in before_waiting
        },
    )


@contextmanager
def _kept_apart(thread: int, index: int) -> Iterator[None]:
    """Keep a thread on one of the processors that it may use.

    Two sessions of a device share its threads: who comes second must not take the first one's
    choice for what was allowed.
    """
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


def _read_threads() -> Seconds:
    """Read all threads of this process but the calling one."""
    numbers = {int(one.name) for one in _THREADS.iterdir()} - {threading.get_native_id()}
    return {number: _read_thread(number) for number in numbers}


def _read_thread(number: int) -> float:
    # clock_gettime(2): bits of the clock that counts one thread's nanoseconds on a processor.
    return time.clock_gettime((~number << 3) | 0b110)


def _subtract(after: Seconds, before: Seconds) -> Seconds:
    return {thread: seconds - before.get(thread, seconds) for thread, seconds in after.items()}


Enqueue: TypeAlias = Callable[[], cl.Event]


@dataclass(slots=True)
class LaunchTimer:
    """Times launches of one queue."""

    queue: cl.CommandQueue
    """Queue with profiling."""
    uses_event_timer: bool
    """Whether profiling events are believed; else the host's clock is read around each launch."""
    workers: WorkerClock | None = None
    """Processor time of the device's threads, where it tells more than the clock."""
    note_compiled: Callable[[float], None] = lambda _: None
    """Is told of the seconds that a runtime compiled before a launch, as far as events tell."""

    def by_clock(self, enqueue: Enqueue) -> float:
        """Run a launch; give its time by the clock, in seconds, whatever happened meanwhile."""
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
        """Run launches one after the other; give the seconds that each one's work takes.

        That is the time by the clock, or less where the device's threads are known to have worked
        for less than that: they were asleep, without a processor, or two on one. The clock is
        believed where they are not known to have worked at all, or hardly in a long launch that
        other programs have not kept waiting. Where
        their work is counted, each is a `LaunchTime` that has the time by the clock beside it.
        """
        if self.workers is not None:
            try:
                return self._count_work(enqueues, self.workers)
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

    def _count_work(self, enqueues: Sequence[Enqueue], workers: WorkerClock) -> list[float]:
        durations: list[float] = []
        with workers.spread():
            for enqueue in enqueues:
                before_s = workers.read()
                duration_s = self.by_clock(enqueue)
                worked_s = workers.read() - before_s + workers.asleep_s
                # In a long launch in which threads worked little, their count is the more likely to
                # be wrong: processors of a shared virtual machine were away for 6 ms at most (two
                # of them, watched for 40 s), and Linux takes time that the host has stolen off.
                is_uncounted = worked_s <= 0 or (
                    duration_s > 20e-3 and worked_s <= 0.1 * duration_s and not count_others()
                )
                work_s = duration_s if is_uncounted else min(duration_s, worked_s)
                durations.append(LaunchTime(work_s, duration_s))
        return durations


def _event_seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * 1e-9
