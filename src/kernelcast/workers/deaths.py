"""How a child process has ended, in words: the one place that says so."""

import os
import signal
from typing import IO

COUNTING = "counting"
"""Stage in which a copy of the kernel runs that counts what it does."""
BUILDING = "building the kernel"
"""Stage in which a device's compiler works, and nothing of the kernel runs."""
WROTE = "; it wrote: "
"""Begins what messages quote of a child's standard error."""
_PLEA = "PLEASE submit a bug report"
"""Begins what LLVM writes wherever a process dies that has loaded it, at whoever's fault."""


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
