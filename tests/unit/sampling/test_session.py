"""Timing launches, settling a device, and what of its trial outlives a process."""

import _thread
import hashlib
import os
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from kernelcast.records.device import DeviceKind
from kernelcast.records.samples import clock_of
from kernelcast.sampling import device_check
from kernelcast.sampling.device_check import (
    DeviceTrial,
    find_settled,
    prepare_trial,
    recall_trial,
    settle,
)
from kernelcast.sampling.session import LaunchTimer, find_workers, kept_apart
from support.builders import make_description


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
    trial = replace(TRIAL, agrees=uses_event_timer, asleep_s=1e-5)
    timer = LaunchTimer(queue, trial, workers=(0,))  # type: ignore[arg-type]
    [duration_s] = timer.by_work([queue.enqueue], 8)  # type: ignore[list-item]
    assert duration_s == pytest.approx(2.01e-3)
    assert clock_of(duration_s) == pytest.approx(4e-3)
    queue.worked_s = 3e-3
    [duration_s] = timer.by_work([queue.enqueue], 1)  # type: ignore[list-item]
    assert duration_s == pytest.approx(3.01e-3)  # one work-group keeps one core busy


@pytest.mark.parametrize(("cores", "worked_s"), [(2, 0.0), (2, 1.0), (2, None), (None, 4e-3)])
def test_unknown_work_leads_back_to_the_clock(
    queue: FakeQueue, monkeypatch: pytest.MonkeyPatch, cores: int | None, worked_s: float | None
) -> None:
    """Believes the clock on a GPU, and where other threads of the process worked too or in their
    place, or have ended: nothing is kept apart then."""
    queue.worked_s = worked_s or 0.0

    def read(_: int) -> float:
        if worked_s is None and queue.now_s:
            raise ProcessLookupError
        return queue.process_s

    monkeypatch.setattr(time, "clock_gettime", read)
    trial = replace(TRIAL, cores=cores)
    timer = LaunchTimer(queue, trial, workers=(0,) if cores else ())  # type: ignore[arg-type]
    durations_s = timer.by_work([queue.enqueue] * 2, 8)  # type: ignore[list-item]
    assert durations_s == pytest.approx([4e-3] * 2)
    assert cores or clock_of(durations_s[0]) is None
    assert worked_s is not None or timer.workers == ()


def test_a_compiler_before_a_launch_is_told_of(queue: FakeQueue) -> None:
    """Counts what the process worked beside the launch's event as compiling."""
    told: list[float] = []
    timer = LaunchTimer(queue, TRIAL, note_compiled=told.append)  # type: ignore[arg-type]

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
    """Names the calling thread by 0, so that another thread that samples later is kept instead;
    nothing is kept where fewer threads than cores came to work."""
    assert find_workers(_work, 2) == ()
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
    assert sampling.native_id is not None
    with kept_apart((sampling.native_id,)):  # a thread that has ended is left alone
        assert os.sched_getaffinity(0)


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


DEVICE = make_description()
TRIAL = DeviceTrial(
    event_s=0.01, host_s=0.0101, agrees=True, steps=64, settled_s=5e-4, launch_overhead_s=1e-5,
    asleep_s=3e-6, cores=2,
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_check, "count_others", lambda: 0)


@pytest.mark.parametrize("settled_s", [5e-6, 1e-4, 1e-3])
def test_waits_until_the_device_is_at_its_usual_rate(settled_s: float) -> None:
    """Sees a slow processor, however slow launches are, and waits until it is not."""
    times = [2 * settled_s] * 6 + [settled_s] * 9
    assert settle(lambda: times.pop(0), settled_s, DeviceKind.CPU) == settled_s
    assert len(times) == 7
    settle(lambda: 1.0, 1e-9, DeviceKind.CPU)  # gives up where others use the device all the time


def test_the_work_of_a_thread_that_has_ended_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries the launch again: half of its work would seem to be the usual rate."""
    readings = iter([{1: 0.0, 2: 5.0}, {1: 1e-3}, {1: 1e-3}, {1: 2e-3, 3: 1e-3}])
    monkeypatch.setattr(device_check, "read_work", lambda: next(readings))
    monkeypatch.setattr(device_check, "cl", MagicMock(Error=RuntimeError))
    run = prepare_trial(MagicMock(), MagicMock(), MagicMock())
    assert run(1).worked_s == pytest.approx(2e-3)


def test_a_clock_that_rises_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds the time at the highest clock of a GPU, though that comes late; not of a CPU."""
    launches = [0]
    monkeypatch.setattr(time, "perf_counter", lambda: launches[0] * 1e-3)

    def run() -> float:
        launches[0] += 1
        return 3e-4 * (3 - min(2, launches[0] // 50))

    assert find_settled(run, DeviceKind.CPU) == pytest.approx(9e-4)
    launches[0] = 0
    assert find_settled(run, DeviceKind.GPU) == pytest.approx(3e-4)


never = partial(pytest.fail, "tried again")


def test_what_one_process_has_found_the_next_one_knows(tmp_path: Path) -> None:
    """Believes it for an hour, of the same driver, where a folder keeps it."""
    other = replace(TRIAL, event_s=0.02)
    assert recall_trial(DEVICE, tmp_path, lambda: TRIAL) == TRIAL
    assert recall_trial(DEVICE, tmp_path, never) == TRIAL
    assert recall_trial(DEVICE, None, lambda: other) == other
    [path] = tmp_path.glob("devices/*.json")
    os.utime(path, (0, 0))
    assert recall_trial(DEVICE, tmp_path, lambda: other) == other
    updated = replace(DEVICE, driver="another")
    assert recall_trial(updated, tmp_path, lambda: TRIAL) == TRIAL
    for text in ("", "[]", "{}", '{"made_for": 1, "trial": 2}'):
        path.write_text(text)
        assert recall_trial(DEVICE, tmp_path, lambda: other) == other


def test_what_other_programs_may_have_disturbed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps a timer that agrees all the same: nothing can disturb it into that."""
    monkeypatch.setattr(device_check, "count_others", lambda: 3)
    wrong = replace(TRIAL, agrees=False)
    assert recall_trial(DEVICE, tmp_path, lambda: wrong) == wrong
    assert recall_trial(DEVICE, tmp_path, lambda: TRIAL) == TRIAL
    assert recall_trial(DEVICE, tmp_path, never) == TRIAL
