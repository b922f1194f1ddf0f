"""One child process: how it is started, spoken to and ended."""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from kernelcast.workers.protocol import Channel, ClosedError
from kernelcast.workers.sandbox import Confinement, confine
from kernelcast.workers.task import BUILDING, COUNTING, Task

_MAIN = "kernelcast.workers.child_main"
VARIABLES = {"POCL_AFFINITY": "1"}
"""Keep threads of a CPU device on their cores. Where they sleep between launches, Linux may wake
two of them on one core and needs some 10 ms to notice: on PoCL, samples of 2 ms then took exactly
twice their time. It works before the runtime is loaded; a choice of the caller's is left alone."""
WROTE = "; it wrote: "
"""Begins what messages quote of a child's standard error."""
_PLEA = "PLEASE submit a bug report"
"""Begins what LLVM writes wherever a process dies that has loaded it, at whoever's fault."""
_LAST_S = 5.0
"""Who has closed its channel and lives on for so long does not end by itself."""


@dataclass(slots=True, kw_only=True)
class ChildProcess:
    """A process, the channel to it, and what it wrote on standard error."""

    process: subprocess.Popen[bytes]
    channel: Channel
    errors: IO[bytes]
    """Of `start`."""

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
        """Start a process in a session of its own; it ends when this one does."""
        ours, theirs = socket.socketpair()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with theirs:
            command = [sys.executable, "-P", "-m", _MAIN, str(theirs.fileno()), str(idle_s)]
            command += steps
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
        self.channel.most_bytes = task.most_bytes
        order = pickle.dumps((task.entry, arguments, task.most_bytes))
        with contextlib.suppress(ClosedError):
            self.channel.send(order, within_s=within_s)

    def explain_death(self, subject: str, stage: str) -> str:
        """Say how it ended; ends it where it has only closed its channel."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_S)
        self.signal(signal.SIGKILL)
        return explain_death(self.process.wait(), self.errors, subject, stage)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        self.errors.close()
        if self.process.stdin is not None:
            self.process.stdin.close()


def explain_death(status: int, errors: IO[bytes], subject: str, stage: str = "") -> str:
    """Say how a process has ended, and what it wrote before."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 64 * 1024))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    written = [line for line in lines if not line.startswith(_PLEA)]
    said = WROTE + " | ".join(written[-5:]) if written else ""
    cause = "A kernel that reads or writes outside its buffers does that"
    if stage == BUILDING:
        cause = "The device's compiler fails at this source; nothing of it has run"
    elif stage == COUNTING:
        cause = (
            "It ran a copy of the kernel that counts what it does: a kernel that reads or writes "
            "outside its buffers does that, or the device's compiler fails at the copy"
        )
    how = f"{name_status(status)}, stage: {stage}" if stage else name_status(status)
    return f"{subject}: the process that ran the kernel died ({how}). {cause}{said}"


def name_status(status: int) -> str:
    """Name an exit status or the signal that ended a process."""
    # By shells' and bubblewrap's custom, whoever waits for a process that a signal ended adds 128.
    number = -status if status < 0 else status - 128
    if number in {Signal.value for Signal in signal.Signals}:
        return f"signal {signal.Signals(number).name}"
    return f"exit status {status}"
