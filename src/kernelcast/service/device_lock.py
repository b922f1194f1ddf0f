"""One measurement at a time on a device, across all processes of a host."""

import fcntl
import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.private_files import make_private_folder

_POLL_S: Final = 0.005
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class FileLock:
    """A lock that the operating system frees when its process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        make_private_folder(self._path.parent)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def acquire(self, ends_s: float) -> bool:
        """Wait for the lock until the monotonic clock's time; tell whether it was taken."""
        while not self.try_acquire():
            if time.monotonic() >= ends_s:
                return False
            time.sleep(_POLL_S)
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class DeviceLock:
    """The right to measure on a device.

    Whoever waits stands at a door that only one can stand at, so that a holder that frees the
    device and wants it again comes after who waited.
    """

    def __init__(self, device_id: str) -> None:
        name = lock_name(device_id)
        self._door = FileLock(locks_folder() / f"{name}.door")
        self._device = FileLock(locks_folder() / f"{name}.lock")

    def acquire(self, timeout_s: float = math.inf) -> bool:
        ends_s = time.monotonic() + timeout_s
        if not self._door.acquire(ends_s):
            return False
        try:
            return self._device.acquire(ends_s)
        finally:
            self._door.release()

    def release(self) -> None:
        self._device.release()


@contextmanager
def hold_device(device_id: str) -> Iterator[Callable[[], None]]:
    """Hold a device for a job; the callable lets estimates in between two of its steps."""
    lock = DeviceLock(device_id)
    lock.acquire()

    def let_others_in() -> None:
        lock.release()
        time.sleep(4 * _POLL_S)  # who waits has looked by then
        lock.acquire()

    try:
        yield let_others_in
    finally:
        lock.release()


def host_name() -> str:
    return _UNFIT.sub("-", socket.gethostname()) or "host"


def lock_name(device_id: str) -> str:
    """Give a device's file name; hosts that share a folder have different devices."""
    plain = _UNFIT.sub("-", device_id)[:80]
    return f"{host_name()}-{plain}-{sha256(device_id.encode()).hexdigest()[:8]}"


def locks_folder() -> Path:
    return data_folder() / "locks"
