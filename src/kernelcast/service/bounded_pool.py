"""Work that runs nothing on a device: a few pieces at a time, each in a process of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeVar

from kernelcast.service.errors import ApiError

T = TypeVar("T")
# Each is a process: more at once would only wait for each other.
_AT_ONCE: Final = 2
_RETRY_S: Final = 2


class BoundedPool:
    """Threads that wait for such processes; of more than `most` pieces the next comes again."""

    def __init__(self, most: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=name)
        self._most = most
        self._name = name
        self._count = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work."""
        if self._count >= self._most:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "models_busy",
                f"{self._count} {self._name} wait for models already",
                retry_after_s=_RETRY_S,
            )
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._count -= 1

    def close(self) -> None:
        """Begin nothing new."""
        self._executor.shutdown(wait=False, cancel_futures=True)
