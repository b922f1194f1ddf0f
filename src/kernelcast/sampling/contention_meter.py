"""Measures what other programs leave to a CPU device, without the device.

Who else wants to run: the system's own count of runnable threads costs one read. Where there seem
to be others than ours, threads are looked at one by one: the count holds those that have just ended
a launch, builds (PoCL's linker is a process), and the kernel's that write a runtime's cache to the
disk. On an idle machine 20 of 33 new kernels on PoCL were taken for busy by it.

What they leave: as many threads of the host as the device has work for the length of a launch, and
Linux says how long they waited: beside two busy loops on two processors launches take 1.9 to 2.5
times as long, and half a second of such work says 2.0. No device is opened, or waited for.
"""

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, DeviceKind

FRESH_S: Final = 2.0
"""So long a factor holds, in seconds: many launches are compared by one, and a trial takes 0.1."""
_WORK_S: Final = 40e-3
_PROCESSES = Path("/proc")
_KERNEL = 2
"""The process whose children are threads of the kernel; a container does not see it."""
# Columns of /proc/PID/stat behind the name: state, parent, and the start in ticks after the boot.
_STATE, _PARENT, _STARTED = 0, 1, 19


class Waiting(NamedTuple):
    """Seconds on a processor, and seconds ready to run without one."""

    worked_s: float
    waited_s: float


ThreadsWaiting: TypeAlias = Mapping[str, Waiting]
"""What each thread has worked and waited so far; empty where the system does not tell."""


def read_waiting() -> ThreadsWaiting:
    found = {}
    for thread in list_threads(os.getpid()):
        with suppress(OSError):  # it has just ended
            found[thread] = _read_thread(thread)
    return found


def find_waiting(before: ThreadsWaiting, after: ThreadsWaiting, seconds: float) -> Waiting | None:
    """Add up what the threads that worked for a launch have worked and waited between readings;
    None where they were busy for less than half of its length: it ran elsewhere."""
    none = Waiting(0.0, 0.0)
    spent = [
        Waiting(*(b - a for a, b in zip(before.get(name, none), one, strict=True)))
        for name, one in after.items()
    ]
    # Threads that did less than this share of what the busiest did have only looked on: what those
    # waited that wake at the end of a launch made no launch longer.
    least_s = 0.2 * max((one.worked_s for one in spent), default=0.0)
    workers = [one for one in spent if one.worked_s > least_s]
    worked_s, waited_s = (sum(column) for column in zip(none, *workers, strict=True))
    is_own = worked_s > 0 and worked_s + waited_s >= 0.5 * seconds
    return Waiting(worked_s, waited_s) if is_own else None


class ContentionMeter:
    """Measures what other programs leave to devices now; threads share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: dict[str, DeviceDescription] = {}
        self._last: dict[int, tuple[float, Contention | None]] = {}
        self._waiting: ThreadsWaiting = {}
        self._others, self._counted_until_s = 0, 0.0

    def note(self, device: DeviceDescription) -> None:
        if device.id not in self._devices:
            self._devices[device.id] = device
            self._waiting = self._waiting or read_waiting()

    def measure(self, device_id: str) -> Contention | None:
        """Measure, unless that was done just now; None where nothing is seen of others."""
        device = self._devices.get(device_id)
        if device is None or device.kind is not DeviceKind.CPU:
            return None
        threads = min(device.compute_units, os.cpu_count() or 1)
        with self._lock:
            if not self._count_others():
                return None
            until_s, found = self._last.get(threads, (0.0, None))
            if time.monotonic() > until_s:
                found = _try_threads(threads)
                self._last[threads] = (time.monotonic() + FRESH_S, found)
            return found

    def judge_run(self, device_id: str, seconds: float) -> Contention | None:
        """Say what a launch of some seconds met that has just ended: if it ran in this process,
        threads that have worked since the last such question tell."""
        device = self._devices.get(device_id)
        if device is None or device.kind is not DeviceKind.CPU:
            return None
        with self._lock:
            before, self._waiting = self._waiting, read_waiting()
            spent = find_waiting(before, self._waiting, seconds)
            if spent is not None:
                others = self._count_others()
                return _tell([spent], others) if others else None
        return self.measure(device_id)

    def _count_others(self) -> int:
        if time.monotonic() > self._counted_until_s:
            self._others = count_others()
            # A count holds so long: to make one takes some milliseconds.
            self._counted_until_s = time.monotonic() + 0.1
        return self._others


METER: Final = ContentionMeter()


def count_others() -> int:
    """Count threads of other programs that run or want to; 0 where that cannot be read."""
    own = sum(map(_is_running, list_threads(os.getpid())))
    try:
        running = int(_read("loadavg").split()[3].partition(b"/")[0])
    except (OSError, IndexError, ValueError):
        return 0
    if running <= max(own, 1):
        return 0
    # What a container does not show may be others': ours are then all that is known not to be.
    is_all_seen = (_PROCESSES / str(_KERNEL)).is_dir()
    is_seen = any(_list_running())
    if is_seen or not is_all_seen:
        own = max(own, sum(map(_is_running, list_threads(os.getpid()))), 1 - is_seen)
        return max(running - own, int(is_seen))
    return 0


def runs_besides(threads: Iterable[int | None]) -> bool:
    left_out = {f"{os.getpid()}/task/{number}" for number in threads}
    return any(_is_running(one) for one in list_threads(os.getpid()) if one not in left_out)


def _list_running() -> Iterator[bool]:
    """Tell of processes of other programs whether a thread runs; of each that can be read."""
    own = os.getpid()
    with suppress(OSError, ValueError, IndexError):
        # A child process so young, in seconds, is a runtime's linker or has not kept anybody
        # waiting yet.
        youngest_s = float(_read("uptime").split()[0]) - 1.0
        for name in os.listdir(_PROCESSES):  # noqa: PTH208 - names
            if not name.isdigit() or int(name) in {own, _KERNEL}:
                continue
            told = _read_stat(name)
            if not told or int(told[_PARENT]) == _KERNEL:
                continue
            started_s = int(told[_STARTED]) / os.sysconf("SC_CLK_TCK")
            if int(told[_PARENT]) == own and started_s > youngest_s:
                continue
            yield told[_STATE] == b"R" or any(map(_is_running, list_threads(int(name))))


def list_threads(process: int) -> list[str]:
    with suppress(OSError):
        tasks = os.listdir(f"{_PROCESSES}/{process}/task")  # noqa: PTH208 - names
        return [f"{process}/task/{one}" for one in tasks]
    return []


def _is_running(thread: str) -> bool:
    return _read_stat(thread)[:1] == [b"R"]


def _read_stat(folder: str) -> list[bytes]:
    with suppress(OSError):
        return _read(f"{folder}/stat").rpartition(b")")[2].split()
    return []


def _read_thread(folder: str) -> Waiting:
    worked, waited, *_ = _read(f"{folder}/schedstat").split()
    return Waiting(int(worked) * 1e-9, int(waited) * 1e-9)


def _read(name: str) -> bytes:
    # Hundreds of them at a time: pathlib takes longer than the system.
    with open(f"{_PROCESSES}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _try_threads(threads: int) -> Contention | None:
    time.sleep(1e-3)  # who was only woken has done what it had to
    others = count_others()
    if not others:
        return None
    with ThreadPoolExecutor(threads) as pool, suppress(OSError, ValueError):
        return _tell([*pool.map(_work, range(threads))], others)
    return None


def _work(number: int) -> Waiting:
    """Work for the length of a launch; give what the system says of it."""
    before = _read_thread("thread-self")
    ends_s = time.thread_time() + _WORK_S
    while time.thread_time() < ends_s:
        # Some milliseconds, without Python's lock.
        hashlib.pbkdf2_hmac("sha256", b"work", str(number).encode(), 20_000)
    after = _read_thread("thread-self")
    return Waiting(after.worked_s - before.worked_s, after.waited_s - before.waited_s)


def _tell(spent: list[Waiting], others: int) -> Contention:
    return Contention(
        worked_s=sum(one.worked_s for one in spent),
        waited_s=sum(one.waited_s for one in spent),
        others=others,
        measured_at=datetime.now(UTC),
    )
