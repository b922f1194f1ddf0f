"""One measurement at a time on a device, across all processes of a host; few samplings wait."""

import asyncio
import fcntl
import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.records.private_files import make_private_folder
from kernelcast.service.errors import ApiError
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics

T = TypeVar("T")
SHARE_OF_THE_WAIT: Final = 0.7
"""What may pass of the longest wait before the turn comes; the rest is for an answer that runs
nothing."""
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


class TurnMissedError(ApiError):
    """Is raised when a sampling has waited for its turn for too long."""


class SamplingQueue:
    def __init__(self, device_id: str, limits: Limits, metrics: Metrics) -> None:
        self._device_id = device_id
        self._limits = limits
        self._metrics = metrics
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"sampling {device_id}")
        self._lock = DeviceLock(device_id)
        self.length = 0
        """Samplings that wait or are at work."""
        self._usual_s = 2.0

    async def run(self, work: Callable[[], T], longest_s: float | None = None) -> T:
        """Do work that measures on the device, if its turn comes in the time that callers wait."""
        if self.length > self._limits.queue:  # the one at work does not wait
            self._metrics.sampling_refused.labels(self._device_id).inc()
            raise self._refusal(ApiError, f"{self.length} samplings are waiting for it already")
        wait_s = SHARE_OF_THE_WAIT * self._limits.wait_seconds
        wait_s = wait_s if longest_s is None else min(wait_s, longest_s)
        turn, future = self._begin(work, wait_s)
        # Whoever asked may go away; the sampling goes on, and its answer is kept.
        await asyncio.wait([future], timeout=wait_s)
        try:
            if not turn.done() and turn.cancel():  # it has not begun
                why = f"{self.length} samplings are before it or under way"
                raise self._refusal(TurnMissedError, why)
            return await asyncio.shield(future)
        except TurnMissedError:
            self._metrics.sampling_refused.labels(self._device_id).inc()
            raise

    async def run_if_idle(self, work: Callable[[], T]) -> T | None:
        """Do work that measures on the device if nobody else does; None if somebody does."""
        if self.length:
            return None
        try:
            return await asyncio.shield(self._begin(work, 0.0)[1])
        except TurnMissedError:
            return None

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, work: Callable[[], T], wait_s: float) -> tuple[Future[T], asyncio.Future[T]]:
        def count(change: int) -> None:
            self.length += change
            self._metrics.queue_length.labels(self._device_id).set(self.length)

        count(1)
        turn = self._executor.submit(self._work, work, time.monotonic(), wait_s)
        future = asyncio.wrap_future(turn)
        future.add_done_callback(lambda _: count(-1))
        return turn, future

    def _work(self, work: Callable[[], T], asked_s: float, wait_s: float) -> T:
        if not self._lock.acquire(max(0.0, asked_s + wait_s - time.monotonic())):
            raise self._refusal(TurnMissedError, "a job or another process measures on it")
        started_s = time.monotonic()
        if wait_s:  # else nobody waits for it
            self._metrics.queue_wait_s.labels(self._device_id).observe(started_s - asked_s)
        try:
            return work()
        except (KernelRunError, EstimateTimeoutError) as error:
            reason = "timeout" if isinstance(error, EstimateTimeoutError) else "crash"
            self._metrics.worker_restarts.labels(self._device_id, reason).inc()
            raise
        finally:
            self._lock.release()
            taken_s = time.monotonic() - started_s
            self._metrics.device_busy_s.labels(self._device_id).inc(taken_s)
            self._usual_s += 0.3 * (taken_s - self._usual_s)

    def _refusal(self, kind: type[ApiError], why: str) -> ApiError:
        wait_s = max(1, math.ceil(self._usual_s * max(1, self.length)))
        return kind(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "device_busy",
            f"{self._device_id}: {why}; try again in {wait_s} s",
            detail={"device_id": self._device_id},
            retry_after_s=wait_s,
        )


class BoundedPool:
    """Threads that wait for such processes; of more than `most` pieces the next comes again."""

    def __init__(self, most: int, name: str) -> None:
        # Work that runs nothing on a device is done in processes: more at once would only wait.
        self._executor = ThreadPoolExecutor(2, thread_name_prefix=name)
        self._most = most
        self._name = name
        self._count = 0

    async def run(self, work: Callable[[], T]) -> T:
        if self._count >= self._most:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "models_busy",
                f"{self._count} {self._name} wait for models already",
                retry_after_s=2,
            )
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._count -= 1

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
