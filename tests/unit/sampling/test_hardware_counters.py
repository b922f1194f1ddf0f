import errno
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelcast.records.errors import DeviceError
from kernelcast.sampling.hardware_counters import find_providers, perf_event, probe_providers
from kernelcast.sampling.hardware_counters.perf_event import (
    HARDWARE_EVENTS,
    SOFTWARE_EVENTS,
    PerfEventCounters,
    add_up,
    explain_refusal,
)
from kernelcast.sampling.hardware_counters.perf_syscalls import PerfEvent, Reading, is_supported

SOFTWARE = PerfEventCounters(SOFTWARE_EVENTS)
needs_perf_event = pytest.mark.skipif(
    not SOFTWARE.probe().is_available, reason=f"software counters: {SOFTWARE.probe().reason}"
)
needs_hardware = pytest.mark.skipif(
    "instructions" not in PerfEventCounters().probe().counter_names,
    reason=f"hardware counters: {PerfEventCounters().probe().reason}",
)
BUSY_S = 0.05
_NO_SUCH_EVENT = PerfEvent(name="unheard_of", kind=1, config=2**30)


def keep_busy(seconds: float = BUSY_S) -> None:
    """Use so much time of one processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@contextmanager
def working_thread() -> Iterator[Callable[[], None]]:
    """Give a function that has an older thread work, as a runtime's worker does, and waits."""
    wanted, done, ends = threading.Event(), threading.Event(), threading.Event()

    def _serve() -> None:
        wanted.wait()
        if not ends.is_set():
            keep_busy()
        done.set()

    def _work() -> None:
        wanted.set()
        done.wait()

    thread = threading.Thread(target=_serve)
    thread.start()
    try:
        yield _work
    finally:
        ends.set()
        wanted.set()
        thread.join()


def start_and_join() -> None:
    """Have a new thread work."""
    thread = threading.Thread(target=keep_busy)
    thread.start()
    thread.join()


def count_descriptors() -> int:
    """Count the open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


@needs_perf_event
def test_counts_the_calling_thread() -> None:
    """Gives the work's result and the processor time it used."""
    before_ns = time.process_time_ns()
    result, counts = SOFTWARE.count(lambda: (keep_busy(), "done")[1])
    used_ns = time.process_time_ns() - before_ns
    assert result == "done"
    assert counts.provider == SOFTWARE.name
    assert BUSY_S * 1e9 * 0.9 < counts.by_name["task_clock_ns"] < used_ns * 1.1


@needs_perf_event
def test_counts_threads_that_existed_before() -> None:
    """Counts what a thread does that was started before the counting, as runtimes' workers are."""
    with working_thread() as work:
        _, counts = SOFTWARE.count(work)
    assert counts.by_name["task_clock_ns"] > BUSY_S * 1e9 * 0.9


@needs_perf_event
def test_counts_threads_that_start_meanwhile_once() -> None:
    """Counts threads that the work starts, each once."""
    before_ns = time.process_time_ns()
    _, counts = SOFTWARE.count(start_and_join)
    used_ns = time.process_time_ns() - before_ns
    assert BUSY_S * 1e9 * 0.9 < counts.by_name["task_clock_ns"] < used_ns * 1.1


@needs_perf_event
def test_counts_nothing_before_and_after() -> None:
    """Leaves out what happens before and after the work."""
    keep_busy()
    _, counts = SOFTWARE.count(lambda: None)
    keep_busy()
    assert counts.by_name["task_clock_ns"] < BUSY_S * 1e9 / 2


@needs_perf_event
def test_counts_events() -> None:
    """Counts a page fault for each new page that is written."""
    pages = 500

    def _touch() -> None:
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            for start in range(0, len(memory), mmap.PAGESIZE):
                memory[start] = 1

    _, counts = SOFTWARE.count(_touch)
    assert pages <= counts.by_name["page_faults"] < 2 * pages


@needs_perf_event
def test_closes_its_counters_where_the_work_fails() -> None:
    """Passes the work's error on unchanged and leaves no file open."""
    before = count_descriptors()
    with pytest.raises(FileNotFoundError):
        SOFTWARE.count(lambda: Path("/no/such/file").read_text(encoding="ascii"))
    assert count_descriptors() == before


@needs_perf_event
def test_leaves_out_events_that_are_not_there() -> None:
    """Counts what can be counted and leaves out the rest, without a zero in its place."""
    counters = PerfEventCounters((*SOFTWARE_EVENTS[:1], _NO_SUCH_EVENT))
    assert counters.probe().counter_names == ("task_clock_ns",)
    _, counts = counters.count(keep_busy)
    assert list(counts.by_name) == ["task_clock_ns"]


@needs_perf_event
def test_gives_up_on_restless_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses to count where threads come and go while counters are opened, and closes all."""
    listed = iter([[os.getpid()], []] * 20)
    monkeypatch.setattr(perf_event, "_list_threads", lambda: next(listed))
    before = count_descriptors()
    with pytest.raises(DeviceError, match="come and go too fast"):
        SOFTWARE.count(keep_busy)
    assert count_descriptors() == before


@needs_hardware
def test_counts_instructions() -> None:
    """Counts instructions in proportion to the work."""
    counted = [
        PerfEventCounters(HARDWARE_EVENTS[:2]).count(lambda n=n: sum(range(n)))[1]
        for n in (1_000_000, 4_000_000)
    ]
    one, four = (counts.by_name["instructions"] for counts in counted)
    assert 3 < four / one < 5


def test_says_why_nothing_can_be_counted() -> None:
    """Explains in the probe and in the error why no counter works."""
    counters = PerfEventCounters((_NO_SUCH_EVENT,))
    available = counters.probe()
    assert not available.is_available
    assert not available.counter_names
    with pytest.raises(DeviceError) as caught:
        counters.count(keep_busy)
    assert str(caught.value) == f"perf_event: {available.reason}"


def test_says_so_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tells users of other systems and processors that there is nothing to count with."""
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert not is_supported()
    available = SOFTWARE.probe()
    assert not available.is_available
    assert "use 64-bit Linux" in available.reason


@pytest.mark.parametrize(
    ("code", "paranoia", "said"),
    [
        (errno.EACCES, 4, "perf_event_paranoid is 4; set it to 2 or less"),
        (errno.EPERM, 3, "perf_event_paranoid is 3; set it to 2 or less"),
        (errno.EPERM, 2, "is 2, which would do: a container's"),
        (errno.EPERM, None, "cannot be read: a container's"),
        (errno.ENOENT, 2, "has no such counter"),
        (errno.EOPNOTSUPP, 2, "has no such counter"),
        (errno.EMFILE, 2, "raise `ulimit -n`"),
        (errno.EIO, 2, os.strerror(errno.EIO)),
    ],
)
def test_refusals_say_what_to_do(code: int, paranoia: int | None, said: str) -> None:
    """Says for each refusal why, with the system's setting, and what to do."""
    assert said in explain_refusal(code, paranoia)


def test_the_kernels_part_needs_more() -> None:
    """Asks for a lower setting where the counter includes what the kernel does."""
    said = explain_refusal(errno.EACCES, 2, is_user_only=False)
    assert "perf_event_paranoid is 2; set it to 1 or less" in said


def test_scales_counters_that_took_turns() -> None:
    """Scales a counter up to the time its threads ran, and says how much of it was counted."""
    readings = {
        "cycles": [Reading(value=300, enabled_ns=100, running_ns=100)],
        "branches": [
            Reading(value=30, enabled_ns=80, running_ns=40),
            Reading(value=0, enabled_ns=40, running_ns=0),
        ],
        "never": [Reading(value=0, enabled_ns=100, running_ns=0)],
        "asleep": [Reading(value=0, enabled_ns=0, running_ns=0)],
    }
    cycles, branches = add_up(readings)
    assert (cycles.name, cycles.value, cycles.is_exact) == ("cycles", 300, True)
    assert (branches.name, branches.value) == ("branches", 90)
    assert branches.running_share == pytest.approx(1 / 3)


def test_absent_is_absent() -> None:
    """Finds the providers that work and no others, each of them probed."""
    sound, dumb = PerfEventCounters(SOFTWARE_EVENTS), PerfEventCounters((_NO_SUCH_EVENT,))
    probed = probe_providers([sound, dumb])
    assert [one.provider for one in probed] == [sound, dumb]
    assert not probed[1].availability.is_available
    works = [sound] if probed[0].availability.is_available else []
    assert list(find_providers([sound, dumb])) == works
    assert {one.name for one in find_providers()} <= {"perf_event"}
