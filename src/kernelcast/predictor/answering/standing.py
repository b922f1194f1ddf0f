"""A child process per device that stays: only the first estimate waits for its start.

Starting Python, the drivers and a device takes tenths of a second, ten times as long as a sampling.
A driver's crash or hang still ends the child and not us: the next estimate starts another.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import IO, Any

from kernelcast.predictor.answering.asking import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)
from kernelcast.predictor.answering.devices_at_work import ChildProcesses, ReportProgress
from kernelcast.predictor.isolation import explain_death
from kernelcast.records.errors import (
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    KernelRunError,
)

IDLE_S = 30.0
"""A child without a task ends after so long, and gives its device's memory back."""
_MAIN = "kernelcast.predictor.answering.standing_main"


class _GoneError(Exception):
    """The child had ended before it heard of the task."""


@dataclass(slots=True, kw_only=True)
class _Child:
    """A process, its pipes, and what it wrote on standard error."""

    process: subprocess.Popen[bytes]
    orders: Connection
    answers: Connection
    errors: IO[bytes]

    @classmethod
    def start(cls, idle_s: float) -> "_Child":
        orders_in, orders_out = os.pipe()
        answers_in, answers_out = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MAIN, str(orders_in), str(answers_out), str(idle_s)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(orders_in, answers_out),
            start_new_session=True,  # Ctrl-C reaches us first; we end the child
        )
        os.close(orders_in)
        os.close(answers_out)
        return cls(
            process=process,
            orders=Connection(orders_out, readable=False),
            answers=Connection(answers_in, writable=False),
            errors=errors,
        )

    def end(self) -> None:
        """Kill it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for one in (self.orders, self.answers, self.errors):
            one.close()


@dataclass(slots=True)
class StandingProcesses:
    """Asks each device in a child process of its own, which serves the next task too; an `Asker`.

    Parameters
    ----------
    idle_s : float
        A child without a task ends after so long, in seconds.

    Notes
    -----
    Threads may share one; tasks of one device wait for each other. `close` ends the children;
    they also end with this process, however it ends.
    """

    idle_s: float = IDLE_S
    _children: dict[str, _Child] = field(default_factory=dict)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; what crashes while features are made does not cost the samples.

        Raises
        ------
        KernelcastError
            What the task raised; that the child died or did not answer in time.
        """
        with self._lock:
            lock = self._locks.setdefault(task.device_id, threading.Lock())
        with lock:
            try:
                return self._ask(task, timeout_s, report)
            except _GoneError:  # it had just ended: it was idle for too long
                pass
            try:
                return self._ask(task, timeout_s, report)
            except _GoneError as error:
                raise KernelRunError(str(error)) from error

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone, which needs no device."""
        return ChildProcesses().model(task, timeout_s=timeout_s, report=report)

    def close(self) -> None:
        """End the children; the next task starts others."""
        with self._lock:
            locks = dict(self._locks)
        for device_id, lock in locks.items():
            with lock:
                self._drop(device_id)

    def _drop(self, device_id: str) -> None:
        child = self._children.pop(device_id, None)
        if child is not None:
            child.end()

    def _ask(self, task: EstimateTask, timeout_s: float, report: ReportProgress) -> EstimateOutcome:
        """Give the task to the device's child, starting one where there is none."""
        child = self._children.get(task.device_id)
        if child is None:
            child = self._children[task.device_id] = _Child.start(self.idle_s)
        try:
            return _converse(child, task, timeout_s, report)
        except InputError:  # refused before anything ran: the child waits for the next task
            raise
        except BaseException:
            # Whatever else went wrong, Ctrl-C included, the next task finds a device that was
            # opened anew; a child that is still at work must not go on.
            self._drop(task.device_id)
            raise


def _converse(
    child: _Child, task: EstimateTask, timeout_s: float, report: ReportProgress
) -> EstimateOutcome:
    """Hand over a task and take what comes back."""
    stage, heard, sampled = "starting", False, None
    try:
        child.orders.send_bytes(pickle.dumps(task))
        deadline_s = time.monotonic() + timeout_s
        while child.answers.poll(max(0.0, deadline_s - time.monotonic())):
            kind, content = child.answers.recv()
            heard = True
            if kind == "progress":
                stage = content
                report(stage)
                continue
            if kind in {"error", "bug"}:
                raise _read_failure(kind, content, task.device_id, stage)
            sampled = content
            if kind == "result":
                return content  # type: ignore[no-any-return]  # the task's type
            deadline_s = time.monotonic() + timeout_s
        msg = (
            f"{task.device_id}: no answer within {timeout_s:g} s (stage: {stage}); the kernel may "
            "never end. Its process was stopped; allow more time if it is only slow"
        )
        raise EstimateTimeoutError(msg)
    except (EOFError, ConnectionResetError, BrokenPipeError) as error:
        died = explain_death(child.process, child.errors, task.device_id, stage)
        if not heard:
            raise _GoneError(died) from error
        return _keep_sampled(sampled, KernelRunError(died))
    except KernelcastError as error:
        return _keep_sampled(sampled, error)


def _keep_sampled(sampled: EstimateOutcome | None, error: KernelcastError) -> EstimateOutcome:
    """Give samples that were there before something failed."""
    if sampled is None:
        raise error
    return replace(sampled, row_failure=str(error))


def _read_failure(kind: str, content: Any, device_id: str, stage: str) -> KernelcastError:  # noqa: ANN401
    if kind == "error" and isinstance(content, KernelcastError):
        return content
    return KernelcastError(
        f"{device_id}: kernelcast failed at {stage!r}; please report:\n{content}"
    )
