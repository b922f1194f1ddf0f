"""Measures what other programs leave to a CPU device, without the device.

As many threads of the host as the device has work for the length of a launch, and Linux says how
long they waited for a processor: beside two busy loops on two processors 1.9 to 2.5 times as long
as alone, where half a second of such work says 2.0. No device is opened, or waited for. What a
launch of this process met is told by its own threads.
"""

import hashlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.sampling.other_programs import count_others
from kernelcast.sampling.waiting import (
    ThreadsWaiting,
    Waiting,
    find_waiting,
    parse_waiting,
    read_waiting,
)

FRESH_S: Final = 2.0
"""So long a factor holds, in seconds: many launches are compared by one, and a trial takes 0.1."""
_COUNT_HOLDS_S: Final = 0.1
"""So long holds how many others want to run, in seconds: to see that takes some milliseconds."""
_WORK_S: Final = 40e-3
_HASH_ROUNDS: Final = 20_000
"""Some milliseconds, without Python's lock."""
_PAUSE_S: Final = 1e-3
_OWN_THREAD: Final = Path("/proc/thread-self/schedstat")


class ContentionMeter:
    """Measures what other programs leave to devices now; threads share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._devices: dict[str, DeviceDescription] = {}
        self._last: dict[int, tuple[float, Contention | None]] = {}
        self._waiting: ThreadsWaiting = {}
        self._others, self._counted_until_s = 0, 0.0

    def note(self, device: DeviceDescription) -> None:
        """Remember a device whose launches may be asked for or observed."""
        if device.id not in self._devices:
            self._devices[device.id] = device
            self._waiting = self._waiting or read_waiting()

    def measure(self, device_id: str) -> Contention | None:
        """Measure, unless that was done just now.

        None where nothing is seen of other programs, and of devices that are unknown or no CPU.
        """
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
        """Say what a launch of some seconds met that has just ended.

        If it ran in this process, threads that have worked since the last such question tell.
        """
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
            self._counted_until_s = time.monotonic() + _COUNT_HOLDS_S
        return self._others


METER: Final = ContentionMeter()
"""Of this process."""


def _try_threads(threads: int) -> Contention | None:
    """Have threads work where other programs want to run."""
    time.sleep(_PAUSE_S)  # who was only woken has done what it had to
    others = count_others()
    if not others:
        return None
    with ThreadPoolExecutor(threads) as pool, suppress(OSError, ValueError):
        return _tell([*pool.map(_work, range(threads))], others)
    return None


def _work(number: int) -> Waiting:
    """Work for the length of a launch; give what the system says of it."""
    before = parse_waiting(_OWN_THREAD)
    ends_s = time.thread_time() + _WORK_S
    while time.thread_time() < ends_s:
        hashlib.pbkdf2_hmac("sha256", b"work", str(number).encode(), _HASH_ROUNDS)
    after = parse_waiting(_OWN_THREAD)
    return Waiting(after.worked_s - before.worked_s, after.waited_s - before.waited_s)


def _tell(spent: list[Waiting], others: int) -> Contention:
    return Contention(
        worked_s=sum(one.worked_s for one in spent),
        waited_s=sum(one.waited_s for one in spent),
        others=others,
        measured_at=datetime.now(UTC),
    )
