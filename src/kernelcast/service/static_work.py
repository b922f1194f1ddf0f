"""Questions that run nothing on a device: a few at a time, each in a process of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeVar

from kernelcast.service.errors import ApiError

T = TypeVar("T")
TIME_LIMIT_S: Final = 60.0
"""Of one question, in seconds: what somebody has typed may take for ever."""
# Each is a process: more at once would only wait for each other.
_AT_ONCE: Final = 2
_MOST: Final = 16
_RETRY_S: Final = 2


class StaticWork:
    """Does such work in threads that wait for its processes."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="static work")
        self._count = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work."""
        if self._count >= _MOST:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "models_busy",
                f"{self._count} questions wait for models already",
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
