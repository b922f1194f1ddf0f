"""Samplings wait here: one at a time on a device, few in the queue, no longer than told."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, NoReturn, TypeVar

from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.service.device_lock import DeviceLock
from kernelcast.service.errors import ApiError
from kernelcast.service.metrics import Metrics
from kernelcast.service.settings import Limits

T = TypeVar("T")
_USUAL_S: Final = 2.0
_WEIGHT: Final = 0.3


class Lane:
    """The queue of one device in one process.

    Parameters
    ----------
    device_id : str
        The device.
    limits : Limits
        How many may wait, and how long.
    metrics : Metrics
        Are told.
    """

    def __init__(self, device_id: str, limits: Limits, metrics: Metrics) -> None:
        self._device_id = device_id
        self._limits = limits
        self._metrics = metrics
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"sampling {device_id}")
        self._lock = DeviceLock(device_id)
        self._count = 0
        self._usual_s = _USUAL_S

    async def run(self, work: Callable[[], T]) -> T:
        """Do work that measures on the device.

        Raises
        ------
        ApiError
            503 if the queue is full, or the device is held by somebody else for too long.
        """
        if self._count > self._limits.queue:  # the one at work does not wait
            self._metrics.sampling_refused.labels(self._device_id).inc()
            self._refuse(f"{self._count} samplings are waiting for it already")
        self._count += 1
        self._metrics.queue_length.labels(self._device_id).set(self._count)
        future = asyncio.get_running_loop().run_in_executor(self._executor, self._work, work)
        try:
            # Whoever asked may go away; the sampling goes on, and its answer is kept.
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._leave()
            else:
                future.add_done_callback(lambda _: self._leave())

    def close(self) -> None:
        """Begin no further sampling."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _leave(self) -> None:
        self._count -= 1
        self._metrics.queue_length.labels(self._device_id).set(self._count)

    def _work(self, work: Callable[[], T]) -> T:
        if not self._lock.acquire(self._limits.wait_seconds):
            self._metrics.sampling_refused.labels(self._device_id).inc()
            self._refuse("a job or another process measures on it")
        started_s = time.monotonic()
        try:
            return work()
        except (KernelRunError, EstimateTimeoutError) as error:
            reason = "timeout" if isinstance(error, EstimateTimeoutError) else "crash"
            self._metrics.worker_restarts.labels(self._device_id, reason).inc()
            raise
        finally:
            self._lock.release()
            self._usual_s += _WEIGHT * (time.monotonic() - started_s - self._usual_s)

    def _refuse(self, why: str) -> NoReturn:
        wait_s = max(1, math.ceil(self._usual_s * max(1, self._count)))
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "device_busy",
            f"{self._device_id}: {why}; try again in {wait_s} s",
            detail={"device_id": self._device_id},
            retry_after_s=wait_s,
        )


class Lanes:
    """The queues of all devices."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._lanes: dict[str, Lane] = {}

    def of(self, device_id: str) -> Lane:
        """Give the queue of a device."""
        if device_id not in self._lanes:
            self._lanes[device_id] = Lane(device_id, self._limits, self._metrics)
        return self._lanes[device_id]

    def close(self) -> None:
        """Begin no further sampling."""
        for one in self._lanes.values():
            one.close()
