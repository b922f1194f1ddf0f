"""Child processes that stay: only the first task of each waits for its start.

Starting Python, the drivers and a device takes tenths of a second, ten times as long as a sampling.
A driver's crash or hang still ends the child and not us: the next task starts another.
"""

import os
import signal
import threading
from collections import Counter, OrderedDict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
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
"""Device of children that only read: the first device that has no child takes one of them over."""
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
    ) -> Generator[Message, None, None]:
        """Have it do a task and give what it tells as it comes, see `converse`."""
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
    """A child process for each device and caller, which does one task after the other."""

    confinement: Confinement | None = None
    """See `WarmChild`, as `shared`."""
    shared: tuple[Path, str] | None = None
    _ready_for: tuple[str, ...] = ()
    _step: str = ""
    _spares: dict[str, WarmChild] = field(default_factory=dict)
    _children: OrderedDict[tuple[str, str], WarmChild] = field(default_factory=OrderedDict)
    _at_work: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def start_ahead(self, steps: Sequence[str]) -> None:
        """Start a child that gets ready by steps and is any device's, unless there are some."""
        with self._lock:
            if self._children or self._spares:
                return
            spare = self._spares[SPARE] = self._make()
        spare.start(steps)

    def keep_ready(self, devices: Sequence[str], step: str) -> None:
        """Start a child for each device that has none, for the next new caller, and wait for none;
        keep it so. Each calls `step`, a ``module:function``, with its device."""
        with self._lock:
            self._ready_for, self._step = tuple(devices), step
            self._start_spares()

    def stream(
        self, device: str, task: Task[Any], arguments: object, *, timeout_s: float, subject: str,
        caller: str = "",
    ) -> Generator[Message, None, None]:  # fmt: skip
        """Have a caller's child of a device, or of `SPARE`, do a task, see `WarmChild.stream`."""
        with self.hold(device, caller) as child:
            yield from child.stream(task, arguments, timeout_s=timeout_s, subject=subject)

    def close(self) -> None:
        """End the children; the next task starts others, and none is kept ready any more."""
        with self._lock:
            self._is_closed = True
            children = [*self._spares.values(), *self._children.values()]
            self._spares.clear()
            self._children.clear()
        for one in children:
            one.close()

    @contextmanager
    def hold(self, device: str, caller: str = "") -> Iterator[WarmChild]:
        """Give the caller's child: its own, or one that is nobody's yet."""
        key = (device, caller)
        with self._lock:
            self._at_work[key] += 1
            own = child = self._children.pop(key, None)
            if child is None or (self._at_work[key] == 1 and not child.is_running):
                child = (
                    self._spares.pop(device, None)
                    or child
                    or self._children.pop((SPARE, caller), None)
                    or self._spares.pop(SPARE, None)
                    or self._make()
                )
            self._children[key] = child
            idle = [one for one in self._children if one[0] == device and not self._at_work[one]]
            # Two of each device are kept, beside those at work.
            dropped = [self._children.pop(one) for one in idle[:-1]]
            if own is not None and own is not child:  # it had ended, idle for long or by a crash
                dropped.append(own)
        for one in dropped:
            one.close()
        try:
            yield child
        finally:
            with self._lock:
                self._at_work[key] -= 1
                self._at_work += Counter()  # drops those that are done
                self._start_spares()

    def _make(self) -> WarmChild:
        return WarmChild(self.confinement, self.shared)

    def _start_spares(self) -> None:
        """Start what is missing, unless a task is at work, which that would disturb."""
        for device in () if self._is_closed or self._at_work else self._ready_for:
            if device not in self._spares:
                spare = self._spares[device] = self._make()
                spare.start([f"{self._step}:{device}"])
