"""Processor time of a device's threads."""

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelcast.records.samples import clock_of
from kernelcast.sampling import worker_clock
from kernelcast.sampling.worker_clock import (
    LaunchTimer,
    Trial,
    WorkerClock,
    find_worker_clock,
    judge_trials,
)

linux_only = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="threads' times are read from Linux"
)


class Worker:
    """A thread that works when it is told to, and sleeps otherwise."""

    def __init__(self) -> None:
        self._wanted = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self._rounds = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.number = self._thread.native_id or 0

    def work(self, rounds: int) -> None:
        """Work for so many rounds; wait for the end."""
        self._rounds = rounds
        self._wanted.release()
        self._done.acquire()

    def run_probe(self, groups: int, steps: int) -> float:
        """Work as a launch does; give its duration in seconds."""
        begin_s = time.perf_counter()
        self.work(groups * steps)
        return time.perf_counter() - begin_s

    def end(self) -> None:
        """End the thread, and wait until the system knows."""
        self.work(0)
        self._thread.join()
        while Path(f"/proc/self/task/{self.number}").exists():
            time.sleep(0.001)

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            # Derives a key without holding the interpreter's lock.
            if self._rounds:
                hashlib.pbkdf2_hmac("sha256", b"work", b"salt", self._rounds)
            self._done.release()
            if not self._rounds:
                return


@pytest.fixture
def worker() -> Worker:
    """Start a thread."""
    return Worker()


def _trial(
    busy: dict[int, float], *, caller_s: float = 0.1, restless: dict[int, float] | None = None
) -> Trial:
    return Trial(
        duration_s=10.0, caller_s=caller_s, busy_s=busy, paused_s=3.0, restless_s=restless or {}
    )


def test_finds_the_threads_that_share_a_launch() -> None:
    """Finds the threads that were busy, on as many cores as there are; one that helps is none."""
    found = judge_trials([_trial({1: 9.8, 2: 9.7, 3: 0.9, 4: 0.0})], processors=8)
    assert found == WorkerClock(threads=(1, 2), cores=2)
    many = judge_trials([_trial({1: 4.9, 2: 4.9, 3: 4.9, 4: 4.9})], processors=2)
    assert many == WorkerClock(threads=(1, 2, 3, 4), cores=2)


def test_finds_threads_on_a_busy_machine() -> None:
    """Finds threads that never had their processors for themselves."""
    disturbed = [_trial({1: 5.0, 2: 4.8}), _trial({1: 4.4, 2: 4.9}), _trial({1: 2.0, 2: 2.3})]
    assert judge_trials(disturbed, processors=2) == WorkerClock(threads=(1, 2), cores=2)


def test_a_thread_that_waits_for_a_processor_works_too() -> None:
    """Counts the thread that other programs kept from its part of each trial."""
    kept_out = replace(_trial({1: 10.0, 2: 1.5, 3: 0.1}), waited_s={1: 0.1, 2: 19.0, 3: 0.1})
    assert judge_trials([kept_out], processors=2) == WorkerClock(threads=(1, 2), cores=2)


def test_a_caller_that_works_along_counts() -> None:
    """Takes the calling thread for a worker where it does its part and others wait for it."""
    spinning = _trial({1: 9.7, 5: 0.2}, caller_s=9.9, restless={1: 2.9})
    found = judge_trials([spinning], processors=2)
    assert found == WorkerClock(threads=(1,), cores=2, with_caller=True)


@pytest.mark.parametrize(
    "trial",
    [
        _trial({}),
        _trial({1: 9.9, 2: 9.9}, restless={1: 2.9, 2: 2.9}),  # both wait by spinning
        _trial({1: 9.9, 2: 9.9}, restless={2: 1.2}),  # one of them does
        _trial({1: 2.5, 2: 2.5}),  # most of it is done elsewhere
        _trial({1: 9.9, 2: 9.9, 3: 19.9}),  # more than two cores can do: the launch's time is wrong
    ],
)
def test_gives_up_where_threads_do_not_tell(trial: Trial) -> None:
    """Finds nothing where the threads' time is not the launch's."""
    assert judge_trials([trial], processors=2) is None


@linux_only
def test_reads_the_time_of_its_threads_only(worker: Worker) -> None:
    """Counts a thread's work, neither the caller's nor another thread's."""
    clock = WorkerClock(threads=(worker.number,), cores=1)
    before_s = clock.read()
    other = Worker()
    other.work(20_000)
    hashlib.pbkdf2_hmac("sha256", b"work", b"salt", 20_000)
    idle_s = clock.read() - before_s
    worker.work(20_000)
    assert clock.read() - before_s > 10 * idle_s


@linux_only
def test_spreads_threads_and_puts_them_back(worker: Worker) -> None:
    """Keeps threads on processors of their own for a while; afterwards they may run anywhere."""
    other = Worker()
    clock = WorkerClock(threads=(worker.number, other.number), cores=2)
    allowed = os.sched_getaffinity(0)
    with clock.spread():
        kept = [os.sched_getaffinity(number) for number in clock.threads]
    assert [len(one) for one in kept] == [1, 1]
    assert len(kept[0] | kept[1]) == min(2, len(allowed))
    assert [os.sched_getaffinity(number) for number in clock.threads] == [allowed, allowed]


@linux_only
def test_two_who_spread_the_same_threads_put_them_back(worker: Worker) -> None:
    """Puts threads back where they were allowed before, whoever of two ends first."""
    clock = WorkerClock(threads=(worker.number,), cores=1)
    allowed = os.sched_getaffinity(worker.number)
    first, second = clock.spread(), clock.spread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert len(os.sched_getaffinity(worker.number)) == 1
    second.__exit__(None, None, None)
    assert os.sched_getaffinity(worker.number) == allowed


@linux_only
def test_a_thread_that_has_ended_changes_nothing(worker: Worker) -> None:
    """Fails with an error of the system, and puts the others back."""
    gone = Worker()
    gone.end()
    clock = WorkerClock(threads=(worker.number, gone.number), cores=2)
    allowed = os.sched_getaffinity(worker.number)
    with pytest.raises(ProcessLookupError), clock.spread():
        pass
    assert os.sched_getaffinity(worker.number) == allowed


@linux_only
def test_finds_a_thread_that_works_and_rests(worker: Worker) -> None:
    """Finds the thread behind a probe, and what a launch lasts beside its work."""
    found = find_worker_clock(worker.run_probe, 1)
    assert found is not None
    assert found.threads == (worker.number,)
    assert found.cores == 1


@linux_only
def test_looks_again_for_threads_that_others_kept_waiting(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search in which others had all processors is no proof that there are no threads."""
    monkeypatch.setattr(worker_clock, "count_others", lambda: 1)
    starved = iter([[]])
    real = worker_clock._run_trials
    monkeypatch.setattr(
        worker_clock,
        "_run_trials",
        lambda *given: real(*given) if (found := next(starved, None)) is None else found,
    )

    found = find_worker_clock(worker.run_probe, 1)
    assert found is not None
    assert found.threads == (worker.number,)


class _Queue:
    def finish(self) -> None:
        """Nothing is under way."""


class _Workers:
    """Says that threads worked for so long."""

    asleep_s = 0.25

    def __init__(self, *readings: float) -> None:
        self._readings = list(readings)

    @contextmanager
    def spread(self) -> Iterator[None]:
        yield

    def read(self) -> float:
        if not self._readings:
            raise OSError
        return self._readings.pop(0)


def _enqueue(nanoseconds: int) -> Any:  # noqa: ANN401 - stands for pyopencl's event
    return lambda: SimpleNamespace(profile=SimpleNamespace(start=0, end=nanoseconds))


def _timer(workers: _Workers | None) -> LaunchTimer:
    return LaunchTimer(_Queue(), uses_event_timer=True, workers=workers)  # type: ignore[arg-type]


def test_a_launch_takes_its_work_or_its_time_if_that_is_less() -> None:
    """Believes the threads where they worked for less than the launch lasted."""
    timer = _timer(_Workers(10.0, 10.5, 10.5, 13.0))
    assert timer.by_work([_enqueue(2_000_000_000), _enqueue(1_000_000_000)]) == [0.75, 1.0]


def test_both_times_of_a_launch_are_known() -> None:
    """Says what passed on the clock beside what the work took; without workers there is one."""
    [found] = _timer(_Workers(10.0, 10.5)).by_work([_enqueue(2_000_000_000)])
    assert (found, clock_of(found)) == (0.75, 2.0)
    assert clock_of(_timer(None).by_work([_enqueue(2_000_000_000)])[0]) is None


def test_a_long_launch_that_others_kept_waiting_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believes the threads although they did next to nothing, where others had the processors."""
    monkeypatch.setattr(worker_clock, "count_others", lambda: 3)
    timer = _timer(_Workers(10.0, 10.25))
    assert timer.by_work([_enqueue(180_000_000_000)]) == [0.5]


def test_a_long_launch_without_work_was_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believes the clock where threads seem to have done next to nothing for a long time."""
    monkeypatch.setattr(worker_clock, "count_others", lambda: 0)
    timer = _timer(_Workers(10.0, 10.0, 10.0, 10.25))
    assert timer.by_work([_enqueue(180_000_000_000), _enqueue(4_000_000_000)]) == [180.0, 0.5]


def test_threads_that_are_not_known_to_have_worked_do_not_count() -> None:
    """Believes the clock where the count of a short launch did not move."""
    workers = _Workers(10.0, 10.0)
    workers.asleep_s = 0.0
    assert _timer(workers).by_work([_enqueue(4_000)]) == pytest.approx([4e-6])


def test_without_workers_the_clock_stands() -> None:
    """Gives the event's time where nothing is known of threads, or they have ended."""
    assert _timer(None).by_work([_enqueue(2_000_000_000)]) == [2.0]
    timer = _timer(_Workers())
    assert timer.by_work([_enqueue(2_000_000_000)]) == [2.0]
    assert timer.workers is None


def test_what_is_compiled_before_a_launch_is_told() -> None:
    """What a working process takes beside a launch is the compiler's; waiting alone is nobody's."""
    told: list[float] = []
    timer = LaunchTimer(_Queue(), uses_event_timer=True, note_compiled=told.append)  # type: ignore[arg-type]

    def compile_and_run() -> Any:  # noqa: ANN401 - stands for pyopencl's event
        begin_s = time.process_time()
        while time.process_time() - begin_s < 0.02:
            pass
        time.sleep(0.02)  # for its linker
        return _enqueue(1_000)()

    def wait_and_run() -> Any:  # noqa: ANN401 - stands for pyopencl's event
        time.sleep(0.02)
        return _enqueue(1_000)()

    assert timer.by_clock(wait_and_run) == pytest.approx(1e-6)
    assert not told
    assert timer.by_clock(compile_and_run) == pytest.approx(1e-6)
    assert len(told) == 1
    assert told[0] >= 0.0399


def test_a_whole_run_is_timed_by_the_clock() -> None:
    """Gives a whole run's time as a user would see it."""
    assert _timer(_Workers(0.0, 0.1)).by_clock(_enqueue(2_000_000_000)) == 2.0
