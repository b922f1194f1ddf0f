"""Tasks in child processes: a driver's crash or hang ends the child and the task, not us.

A child does one task, or stays for further ones: starting Python, the drivers and a device takes
tenths of a second, ten times as long as a sampling.
"""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from kernelcast.records.errors import (
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    KernelRunError,
    NoAnswerYetError,
)
from kernelcast.workers.protocol import (
    BUILDING,
    COUNTING,
    Channel,
    ClosedError,
    Message,
    MessageKind,
    Task,
    read_message,
)
from kernelcast.workers.sandbox import Confinement, confine
from kernelcast.workers.wire import NotDecodableError, prepare

R = TypeVar("R")
VARIABLES = {"POCL_AFFINITY": "1"}
"""Keep threads of a CPU device on their cores. Where they sleep between launches, Linux may wake
two of them on one core and needs some 10 ms to notice: on PoCL, samples of 2 ms then took exactly
twice their time. It works before the runtime is loaded; a choice of the caller's is left alone."""
WROTE = "; it wrote: "
"""Begins what messages quote of a child's standard error."""
SPARE = ""
"""Device of children that only read: the first device that has no child takes one of them over."""
MOST_STAGES = 10_000
"""That a task may tell between two items; none of ours tells 200."""
_PLEA = "PLEASE submit a bug report"
"""Begins what LLVM writes wherever a process dies that has loaded it, at whoever's fault."""
_LAST_S = 5.0
"""Who has closed its channel and lives on for so long does not end by itself."""
_IDLE_S = 30.0
"""A child without a task ends after so long, and gives its device's memory back."""


class UnheardError(KernelRunError):
    """Is raised when a child died without a word: one that stays had perhaps just ended."""


@dataclass(slots=True, kw_only=True)
class ChildProcess:
    """A process, the channel to it, and what it wrote on standard error."""

    process: subprocess.Popen[bytes]
    channel: Channel
    errors: IO[bytes]

    @classmethod
    def start(
        cls,
        *,
        idle_s: float = 0.0,
        steps: Sequence[str] = (),
        confinement: Confinement | None = None,
        variables: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> "ChildProcess":
        """Start a process in a session of its own; it ends when this one does.

        What it gets ready by steps before its first task: see `kernelcast.workers.child_main`.
        """
        ours, theirs = socket.socketpair()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with theirs:
            main = ("-P", "-m", "kernelcast.workers.child_main")
            command = [sys.executable, *main, str(theirs.fileno()), str(idle_s), *steps]
            environment = {**VARIABLES, **os.environ, **(variables or {})}
            if confinement is not None:
                command, environment = confine(command, environment, confinement)
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # the lifeline
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(theirs.fileno(), *descriptors),
                env=environment,
                start_new_session=True,  # Ctrl-C reaches us first; we end the child
            )
        return cls(process=process, channel=Channel(ours), errors=errors)

    def order(self, task: Task[Any], arguments: object, *, within_s: float) -> None:
        """Send it a task; if it has died, the channel ends."""
        with contextlib.suppress(ClosedError):
            self.channel.send(pickle.dumps((task.entry, arguments)), within_s=within_s)

    def explain_death(self, subject: str, stage: str) -> str:
        """Say how it ended and what it wrote before; ends it where it has only hung up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_S)
        self.signal(signal.SIGKILL)
        status = self.process.wait()
        # By shells' and bubblewrap's custom, whoever waits for a process that a signal ended adds
        # 128.
        number = -status if status < 0 else status - 128
        is_signal = number in {one.value for one in signal.Signals}
        how = f"signal {signal.Signals(number).name}" if is_signal else f"exit status {status}"
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 64 * 1024))
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        written = [line for line in lines if not line.startswith(_PLEA)]
        cause = "A kernel that reads or writes outside its buffers does that"
        if stage == BUILDING:
            cause = "The device's compiler fails at this source; nothing of it has run"
        elif stage == COUNTING:
            cause = (
                "It ran a copy of the kernel that counts what it does: a kernel that reads or "
                "writes outside its buffers does that, or the device's compiler fails at the copy"
            )
        when = f", stage: {stage}" if stage else ""
        said = WROTE + " | ".join(written[-5:]) if written else ""
        return f"{subject}: the process that ran the kernel died ({how}{when}). {cause}{said}"

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.channel.socket.close()
        self.errors.close()
        if self.process.stdin is not None:
            self.process.stdin.close()


def converse(
    child: ChildProcess, task: Task[R], arguments: object, *, timeout_s: float, subject: str
) -> Generator[Message, None, R]:
    """Send a child a task, pass on its messages, and return the result.

    The child is fresh, or done with all earlier tasks. After any error but one that the task raised
    it is of no more use; one that died without a word is an `UnheardError`.
    """
    stage, stages, items, is_any = "starting", 0, 0, False
    ends_s = time.monotonic() + timeout_s
    try:
        child.order(task, arguments, within_s=timeout_s)
        prepare(task.returns, task.gives)
        while True:
            frame = child.channel.receive(within_s=max(0.0, ends_s - time.monotonic()))
            message = read_message(frame, returns=task.returns, gives=task.gives)
            is_any = True
            match message.kind:
                case MessageKind.PROGRESS:
                    stage, stages = message.content, stages + 1
                case MessageKind.ITEM:
                    stages, items = 0, items + 1
                    if not task.is_timed_as_a_whole:
                        ends_s = time.monotonic() + timeout_s
                case MessageKind.ERROR:
                    raise message.content
                case MessageKind.BUG:
                    msg = f"{subject}: kernelcast failed at {stage!r}; please report:\n"
                    raise KernelcastError(msg + message.content)
            if stages > MOST_STAGES or items > task.most_items:
                raise NotDecodableError("more messages than its task can have")
            yield message
            if message.kind is MessageKind.RESULT:
                result: R = message.content
                return result
    except TimeoutError:
        suspect = "device's compiler" if stage == BUILDING else "kernel"
        raise EstimateTimeoutError(
            f"{subject}: no answer within {timeout_s:g} s (stage: {stage}); the {suspect} "
            "may never end. Its process was stopped; allow more time if it is only slow"
        ) from None
    except NotDecodableError as error:
        raise KernelRunError(
            f"{subject}: the process that ran the kernel sent what is no answer (stage: "
            f"{stage}): {error}. A kernel that writes outside its buffers may do that"
        ) from None
    except ClosedError:
        died = child.explain_death(subject, stage)
        raise (KernelRunError if is_any else UnheardError)(died) from None


def _follow(
    task: Task[R],
    arguments: object,
    *,
    timeout_s: float,
    subject: str,
    confinement: Confinement | None = None,
) -> Generator[Message, None, R]:
    child = ChildProcess.start(confinement=confinement)
    try:
        return (yield from converse(child, task, arguments, timeout_s=timeout_s, subject=subject))
    finally:
        child.end()


def run_isolated(
    task: Task[R],
    arguments: object,
    *,
    timeout_s: float,
    subject: str,
    report: Callable[[str], None] = lambda _: None,
    confinement: Confinement | None = None,
) -> R:
    messages = _follow(
        task, arguments, timeout_s=timeout_s, subject=subject, confinement=confinement
    )
    return take_result(messages, report)


def stream_isolated(
    task: Task[Any],
    arguments: object,
    *,
    timeout_s: float,
    subject: str,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[Any]:
    """Run a task in a child process of its own and yield its items as they come.

    Its time limit is counted anew from each item unless the task says otherwise; errors are those
    of `run_isolated`.
    """
    with closing(_follow(task, arguments, timeout_s=timeout_s, subject=subject)) as messages:
        for message in messages:
            if message.kind is MessageKind.ITEM:
                yield message.content
            elif message.kind is MessageKind.PROGRESS:
                report(message.content)


def take_result(messages: Generator[Message, None, R], report: Callable[[str], None]) -> R:
    with closing(messages):  # whatever a listener raises, the child waits for nobody
        while True:  # to their end: a warm child is ended where somebody leaves before
            try:
                message = next(messages)
            except StopIteration as end:
                result: R = end.value
                return result
            if message.kind is MessageKind.PROGRESS:
                report(message.content)


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

    def start(self, steps: Sequence[str]) -> None:
        """Start the process, which gets ready by steps; see `ChildProcess.start`."""
        with self._lock:
            self._take(steps)

    def stream(
        self, task: Task[R], arguments: object, *, timeout_s: float, subject: str
    ) -> Generator[Message, None, R]:
        """Have it do a task and give what it tells as it comes, see `converse`."""
        with self._lock:
            ended = self._ended
            for is_last_try in (False, True):
                try:
                    return (yield from converse(
                        self._take(), task, arguments, timeout_s=timeout_s, subject=subject
                    ))  # fmt: skip
                except (InputError, NoAnswerYetError):
                    raise  # nothing runs any more: the child waits for the next task
                except UnheardError:  # it had just ended: it was idle for too long
                    self._drop()
                    if is_last_try or ended != self._ended:
                        raise
                except BaseException:
                    # Whatever else went wrong, Ctrl-C and a listener that left included, the next
                    # task finds a device that was opened anew; a child at work must not go on.
                    self._drop()
                    raise
            raise AssertionError("the last try returns or raises")

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
            start = partial(ChildProcess.start, idle_s=_IDLE_S, confinement=self.confinement)
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

    def run(
        self, device: str, task: Task[R], arguments: object, *, timeout_s: float, subject: str,
        caller: str = "", report: Callable[[str], None] = lambda _: None,
    ) -> R:  # fmt: skip
        """Have a caller's child of a device, or of `SPARE`, do a task."""
        with self.hold(device, caller) as child:
            messages = child.stream(task, arguments, timeout_s=timeout_s, subject=subject)
            return take_result(messages, report)

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
