"""Runs a task in a child process, so that a driver's crash or hang ends the task, not us."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import IO, Any

from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError

COUNTING = "counting"
"""Stage in which a copy of the kernel runs that counts what it does."""
WROTE = "; it wrote: "
"""Begins what messages quote of a child's standard error."""
_STDERR_LINES = 5


class MessageKind(StrEnum):
    """What a child process tells."""

    PROGRESS = "progress"
    """A sentence about the stage that begins."""
    ITEM = "item"
    """A result that is ready before the end."""
    RESULT = "result"
    """What the task returned; nothing follows."""


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that a child process tells."""

    kind: MessageKind
    content: Any


@dataclass(slots=True)
class _Child:
    """The process, where its messages arrive, and what it wrote on standard error."""

    process: subprocess.Popen[bytes]
    channel: Connection
    errors: IO[bytes]
    stage: str = "starting"


def run_isolated(
    task: str,
    arguments: Any,  # noqa: ANN401 - each task has its own
    *,
    timeout_s: float,
    subject: str,
    report: Callable[[str], None] = lambda _: None,
) -> Any:  # noqa: ANN401
    """Run a task of `kernelcast.predictor.tasks` in a child process.

    Parameters
    ----------
    task : str
        The task's name.
    arguments : object
        What it is given; must be picklable.
    timeout_s : float
        The child is killed after so many seconds.
    subject : str
        What messages call it: the device's id.
    report : callable, optional
        Is told of each stage.

    Returns
    -------
    object
        What the task returned.

    Raises
    ------
    KernelcastError
        What the task raised.
    KernelRunError
        If the child died, for instance because the kernel wrote out of bounds.
    EstimateTimeoutError
        If it did not end in time.
    """
    for message in stream_isolated(task, arguments, timeout_s=timeout_s, subject=subject):
        if message.kind is MessageKind.RESULT:
            return message.content
        if message.kind is MessageKind.PROGRESS:
            report(message.content)
    msg = f"{subject}: the task {task} ended without a result; please report it"
    raise KernelcastError(msg)


def stream_isolated(
    task: str,
    arguments: Any,  # noqa: ANN401 - each task has its own
    *,
    timeout_s: float,
    subject: str,
) -> Iterator[Message]:
    """Run a task in a child process and give what it tells as it comes.

    Parameters
    ----------
    task, arguments, subject
        As of `run_isolated`.
    timeout_s : float
        The child is killed after so many seconds, counted anew from each item.

    Yields
    ------
    Message
        Stages and items; the result is the last.

    Raises
    ------
    KernelcastError, KernelRunError, EstimateTimeoutError
        As `run_isolated`.
    """
    deadline_s = time.monotonic() + timeout_s
    with _start_child(task, arguments) as child:
        while child.channel.poll(max(0.0, deadline_s - time.monotonic())):
            message = _receive(child, subject)
            if message.kind is MessageKind.ITEM:
                deadline_s = time.monotonic() + timeout_s
            yield message
            if message.kind is MessageKind.RESULT:
                return
        msg = (
            f"{subject}: no answer within {timeout_s:g} s (stage: {child.stage}); the kernel may "
            "never end. Its process was stopped; allow more time if it is only slow"
        )
        raise EstimateTimeoutError(msg)


def _receive(child: _Child, subject: str) -> Message:
    """Take the next message; raise what the child raised."""
    try:
        kind, content = child.channel.recv()
    except (EOFError, ConnectionResetError):
        died = explain_death(child.process, child.errors, subject, child.stage)
        raise KernelRunError(died) from None
    if kind == "error":
        raise content
    if kind == "bug":
        msg = f"{subject}: kernelcast failed at {child.stage!r}; please report:\n{content}"
        raise KernelcastError(msg)
    message = Message(MessageKind(kind), content)
    if message.kind is MessageKind.PROGRESS:
        child.stage = content
    return message


@contextlib.contextmanager
def _start_child(task: str, arguments: Any) -> Iterator[_Child]:  # noqa: ANN401
    """Start the child in a session of its own; whatever happens, it is gone afterwards."""
    read_end, write_end = os.pipe()
    with (
        tempfile.TemporaryFile() as order,
        tempfile.TemporaryFile() as errors,
        Connection(read_end, writable=False) as channel,
    ):
        pickle.dump((task, arguments), order)
        order.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernelcast.predictor.worker_main", str(write_end)],
            stdin=order,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(write_end,),
            start_new_session=True,  # Ctrl-C reaches us first; we end the child
        )
        os.close(write_end)
        try:
            yield _Child(process, channel, errors)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def explain_death(
    process: subprocess.Popen[bytes], errors: IO[bytes], subject: str, stage: str
) -> str:
    """Say how a child process has ended, and what it wrote before."""
    status = process.wait()
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    errors.seek(0)
    written = errors.read().decode(errors="replace").strip().splitlines()
    said = WROTE + " | ".join(written[-_STDERR_LINES:]) if written else ""
    cause = "A kernel that reads or writes outside its buffers does that"
    if stage == COUNTING:
        cause = (
            "It ran a copy of the kernel that counts what it does: a kernel that reads or writes "
            "outside its buffers does that, or the device's compiler fails at the copy"
        )
    return f"{subject}: the process that ran the kernel died ({how}, stage: {stage}). {cause}{said}"
