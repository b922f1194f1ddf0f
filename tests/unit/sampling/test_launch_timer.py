import _thread
import hashlib
import os
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from kernelcast.records.samples import clock_of
from kernelcast.sampling.session import LaunchTimer, find_workers, kept_apart


@dataclass
class FakeQueue:
    """A queue whose launches take a time by the clock, and processor time of some threads."""

    clock_s: float
    worked_s: float
    now_s: float = 0.0
    process_s: float = 0.0

    def finish(self) -> None:
        """Do nothing: launches end at once."""

    def enqueue(self) -> object:
        """Let time go by."""
        self.now_s += self.clock_s
        self.process_s += self.worked_s
        end = round(self.now_s * 1e9)
        start = end - round(self.clock_s * 1e9)
        return SimpleNamespace(profile=SimpleNamespace(start=start, end=end))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> FakeQueue:
    """Make a queue by which the clocks run; one thread does the work."""
    queue = FakeQueue(clock_s=4e-3, worked_s=4e-3)
    monkeypatch.setattr(time, "perf_counter", lambda: queue.now_s)
    monkeypatch.setattr(time, "process_time", lambda: queue.process_s)
    monkeypatch.setattr(time, "clock_gettime", lambda _: queue.process_s)
    return queue


@pytest.mark.parametrize("uses_event_timer", [True, False])
def test_time_without_a_processor_is_left_out(queue: FakeQueue, *, uses_event_timer: bool) -> None:
    """Believes processor time over cores where it is less than the clock, and keeps both."""
    timer = LaunchTimer(queue, uses_event_timer, cores=2, workers=(0,), asleep_s=1e-5)  # type: ignore[arg-type]
    [duration_s] = timer.by_work([queue.enqueue], 8)  # type: ignore[list-item]
    assert duration_s == pytest.approx(2.01e-3)
    assert clock_of(duration_s) == pytest.approx(4e-3)
    queue.worked_s = 3e-3
    [duration_s] = timer.by_work([queue.enqueue], 1)  # type: ignore[list-item]
    assert duration_s == pytest.approx(3.01e-3)  # one work-group keeps one core busy


def test_a_thread_that_ends_leaves_the_clock(
    queue: FakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times by the clock where the work is not known any more, and keeps nothing apart then."""

    def read(_: int) -> float:
        if queue.now_s:
            raise ProcessLookupError
        return 1.0

    monkeypatch.setattr(time, "clock_gettime", read)
    timer = LaunchTimer(queue, True, cores=2, workers=(0,))  # type: ignore[arg-type]
    assert timer.by_work([queue.enqueue], 8) == pytest.approx([4e-3])  # type: ignore[list-item]
    assert timer.workers == ()


@pytest.mark.parametrize("worked_s", [0.0, 1.0])
def test_work_of_other_threads_leads_back_to_the_clock(queue: FakeQueue, worked_s: float) -> None:
    """Believes the clock where other threads of the process worked too, or in their place."""
    queue.worked_s = worked_s
    timer = LaunchTimer(queue, True, cores=2, workers=(0,))  # type: ignore[arg-type]
    assert timer.by_work([queue.enqueue] * 2, 8) == pytest.approx([4e-3] * 2)  # type: ignore[list-item]


def test_without_cores_the_clock_is_believed(queue: FakeQueue) -> None:
    """Asks events alone on a GPU."""
    timer = LaunchTimer(queue, True)  # type: ignore[arg-type]
    [duration_s] = timer.by_work([queue.enqueue], 8)  # type: ignore[list-item]
    assert duration_s == pytest.approx(4e-3)
    assert clock_of(duration_s) is None


def test_a_compiler_before_a_launch_is_told_of(queue: FakeQueue) -> None:
    """Counts what the process worked beside the launch's event as compiling."""
    told: list[float] = []
    timer = LaunchTimer(queue, True, note_compiled=told.append)  # type: ignore[arg-type]

    def compile_first() -> object:
        queue.now_s += 0.1
        queue.process_s += 0.1
        return queue.enqueue()

    timer.by_clock(compile_first)  # type: ignore[arg-type]
    timer.by_clock(queue.enqueue)  # type: ignore[arg-type]
    assert told == pytest.approx([0.1])


def _work() -> None:
    ends_s = time.thread_time() + 0.02
    while time.thread_time() < ends_s:
        pass


def test_whoever_calls_is_kept_where_the_caller_works() -> None:
    """Names the calling thread by 0, so that another thread that samples later is kept instead."""
    looks = (find_workers(_work, 1) for _ in range(50))
    workers = next(found for found in looks if found == (0,))
    allowed: list[set[int]] = []

    def sample() -> None:
        before = os.sched_getaffinity(0)
        with kept_apart(workers):
            allowed.append(os.sched_getaffinity(0))
        assert os.sched_getaffinity(0) == before

    sampling = threading.Thread(target=sample)
    sampling.start()
    sampling.join()
    assert [len(processors) for processors in allowed] == [1]


def test_who_only_starts_a_launch_is_no_worker() -> None:
    """Names the threads that work most, as many as there are cores."""
    wanted: SimpleQueue[bool] = SimpleQueue()
    done: SimpleQueue[None] = SimpleQueue()

    def serve() -> None:
        while wanted.get():
            hashlib.pbkdf2_hmac("sha256", b"", b"", 200_000)
            done.put(None)

    def run() -> None:
        wanted.put(True)
        _work()
        done.get()

    # As a driver's threads, it is none that Python knows.
    _thread.start_new_thread(serve, ())
    looks = (find_workers(run, 1) for _ in range(50))
    assert next(found for found in looks if found) != (0,)
    wanted.put(False)


def test_fewer_threads_than_cores_are_no_workers() -> None:
    """Keeps nothing where the other threads of a device came to no work."""
    assert find_workers(_work, 2) == ()


def test_threads_that_have_ended_are_left_alone() -> None:
    """Samples all the same."""
    gone = threading.Thread(target=lambda: None)
    gone.start()
    gone.join()
    assert gone.native_id is not None
    with kept_apart((gone.native_id,)):
        pass
