"""Child processes that stay: only the first task of each waits for its start.

Starting Python, the drivers and a device takes tenths of a second, ten times as long as a sampling.
A driver's crash or hang still ends the child and not us: the next task starts another.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kernelcast.records.errors import InputError, KernelRunError, NoAnswerYetError
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.protocol import Message
from kernelcast.workers.running import UnheardError, converse
from kernelcast.workers.sandbox import Confinement
from kernelcast.workers.task import Task

SPARE = ""
"""Key of a child that belongs to nobody yet: the first task of a new key takes it over."""
IDLE_S = 30.0
"""A child without a task ends after so long, and gives its device's memory back."""


@dataclass(slots=True)
class WarmChild:
    """One child that does one task after the other; it is started when it is needed, or before."""

    confinement: Confinement | None = None
    """What it may see; None: what we see."""
    shared: tuple[Path, str] | None = None
    """A file that each child opens by itself, so that one's locks hold against others, made where
    it is missing; and ``module:function``, called in a child with the file's descriptor as text."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _child: ChildProcess | None = None
    _done: int = 0
    _ended: int = 0

    @property
    def is_running(self) -> bool:
        """Whether the next task finds a process, and need not start one."""
        child = self._child
        return child is not None and child.process.poll() is None

    def start(self, steps: Sequence[str] = ()) -> None:
        """Start the process, which gets ready by steps; see `ChildProcess.start`."""
        with self._lock:
            self._take(steps)

    def stream(
        self, task: Task[Any], arguments: object, *, timeout_s: float, subject: str
    ) -> Iterator[Message]:
        """Have it do a task and give what it tells as it comes, see `stream_isolated`."""
        with self._lock:
            ended = self._ended
            for is_last_try in (False, True):
                try:
                    yield from converse(
                        self._take(), task, arguments, timeout_s=timeout_s, subject=subject
                    )
                except (InputError, NoAnswerYetError):
                    raise  # nothing runs any more: the child waits for the next task
                except UnheardError as error:  # it had just ended: it was idle for too long
                    self._drop()
                    if is_last_try or ended != self._ended:
                        raise KernelRunError(str(error)) from None
                except BaseException:
                    # Whatever else went wrong, Ctrl-C and a listener that left included, the next
                    # task finds a device that was opened anew; a child at work must not go on.
                    self._drop()
                    raise
                else:
                    return

    def close(self) -> None:
        """End the process, whatever it does; the next task starts another."""
        self._ended += 1
        child = self._child
        if child is not None and child.process.poll() is None:
            child.signal(signal.SIGKILL)  # who waits for it has the lock
        with self._lock:
            self._drop()

    def _take(self, steps: Sequence[str] = ()) -> ChildProcess:
        """Take the process, or start one where there is none."""
        # Programs and their buffers are remembered: a new process gives the memory back.
        if self._child is None or self._done >= 200:
            self._drop()
            start = partial(ChildProcess.start, idle_s=IDLE_S, confinement=self.confinement)
            if self.shared is None:
                self._child = start(steps=steps)
            else:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                descriptor = os.open(self.shared[0], flags, 0o600)
                try:
                    first = f"{self.shared[1]}:{descriptor}"
                    self._child = start(steps=[first, *steps], descriptors=[descriptor])
                finally:
                    os.close(descriptor)
        self._done += 1
        return self._child

    def _drop(self) -> None:
        child, self._child, self._done = self._child, None, 0
        if child is not None:
            child.end()


@dataclass(slots=True)
class WarmChildren:
    """A child process for each key, which does one task after the other."""

    _places: dict[str, WarmChild] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_ahead(self, steps: Sequence[str]) -> None:
        """Start a spare child that gets ready by steps, unless there are children already."""
        with self._lock:
            if self._places:
                return
            spare = self._places[SPARE] = WarmChild()
        spare.start(steps)

    def stream(
        self, key: str, task: Task[Any], arguments: object, *, timeout_s: float, subject: str
    ) -> Iterator[Message]:
        """Have the key's child do a task, see `WarmChild.stream`; `SPARE` is a later key's."""
        with self._lock:
            if key not in self._places:
                self._places[key] = self._places.pop(SPARE, WarmChild())
            child = self._places[key]
        yield from child.stream(task, arguments, timeout_s=timeout_s, subject=subject)

    def close(self) -> None:
        """End the children; the next task starts others."""
        with self._lock:
            children = [*self._places.values()]
        for one in children:
            one.close()
