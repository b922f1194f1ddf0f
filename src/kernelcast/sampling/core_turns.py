"""Turns of processes that measure on the same processors: each else finds the other at work.

Whoever builds and fills buffers shares the processors with others who do; who times work-groups has
them alone. Each waits for a while at most: a process whose kernel hangs stops no other one.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class CoreTurns:
    """Turns of this process, each waited for at most so many seconds; none are taken before there
    is a file to lock."""

    def __init__(self, most_s: float = 1.0) -> None:
        self._most_s = most_s
        self._descriptor: int | None = None

    def use(self, descriptor: int) -> None:
        """Take turns with the processes that have opened the same file, each by itself."""
        os.set_inheritable(descriptor, False)  # compilers that drivers start must not keep it open
        self._descriptor = descriptor

    def preparing(self) -> AbstractContextManager[None]:
        return self._holding(fcntl.LOCK_SH)

    def measuring(self) -> AbstractContextManager[None]:
        """Let nobody else prepare or measure meanwhile; a turn of this process ends before."""
        return self._holding(fcntl.LOCK_EX)

    @contextmanager
    def _holding(self, kind: int) -> Iterator[None]:
        if self._descriptor is None:
            yield
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        ends_s = time.monotonic() + self._most_s
        while True:
            try:
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends_s:
                    break
                time.sleep(1e-3)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


TURNS = CoreTurns()
"""Those of this process."""


def take_turns_by(descriptor: str) -> None:
    """Have this process take turns by a file that it has inherited."""
    TURNS.use(int(descriptor))
