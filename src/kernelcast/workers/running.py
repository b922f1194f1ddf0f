"""Runs a task in a child process, so that a driver's crash or hang ends the task, not us."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, TypeVar

from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.protocol import ClosedError, Message, MessageKind, read_message
from kernelcast.workers.sandbox import Confinement
from kernelcast.workers.task import BUILDING, Task
from kernelcast.workers.wire import NotDecodableError, prepare

R = TypeVar("R")
MOST_STAGES = 10_000
"""That a task may tell between two items; none of ours tells 200."""


class UnheardError(KernelRunError):
    """Is raised when a child died without a word: a warm one had perhaps just ended."""


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
    return take_result(task, messages, subject, report)


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


def take_result(
    task: Task[R],
    messages: Generator[Message, None, None],
    subject: str,
    report: Callable[[str], None] = lambda _: None,
) -> R:
    results: list[R] = []
    with closing(messages):  # whatever a listener raises, the child waits for nobody
        for message in messages:  # to their end: a warm child is ended where somebody leaves before
            if message.kind is MessageKind.RESULT:
                results.append(message.content)
            elif message.kind is MessageKind.PROGRESS:
                report(message.content)
    if results:
        return results[0]
    msg = f"{subject}: the task {task.name} ended without a result; please report it"
    raise KernelcastError(msg)


def _follow(
    task: Task[Any],
    arguments: object,
    *,
    timeout_s: float,
    subject: str,
    confinement: Confinement | None = None,
) -> Generator[Message, None, None]:
    child = ChildProcess.start(confinement=confinement)
    try:
        yield from converse(child, task, arguments, timeout_s=timeout_s, subject=subject)
    except UnheardError as error:
        raise KernelRunError(str(error)) from None
    finally:
        child.end()


def converse(
    child: ChildProcess, task: Task[Any], arguments: object, *, timeout_s: float, subject: str
) -> Generator[Message, None, None]:
    """Send a child a task and pass on its messages.

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
                return
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
