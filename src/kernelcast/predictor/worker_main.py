"""A child process that does one task for its parent: ``python -m`` this module.

Drivers compile and run foreign code; what crashes or hangs here does not take the parent along.
The task comes as a pickle on standard input, messages go back through the pipe whose descriptor
is the only argument: both ends are this package, on this machine, one parent, one child.
"""

import ctypes
import os
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from kernelcast.predictor.tasks import run_task
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.runtimes import pin_threads


class _ChannelReporter:
    """Sends what a task tells through the pipe."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel

    def __call__(self, stage: str) -> None:
        self._channel.send(("progress", stage))

    def give(self, item: Any) -> None:  # noqa: ANN401 - each task has its own
        self._channel.send(("item", item))

    def give_up(self, error: KernelcastError) -> None:
        self._channel.send(("error", error))
        os._exit(0)  # the thread that waits for the driver does not end


def main() -> None:
    """Do the task and end."""
    _die_with_parent()
    pin_threads()
    name, arguments = pickle.load(sys.stdin.buffer)
    channel = Connection(int(sys.argv[1]), readable=False)
    try:
        result = run_task(name, arguments, _ChannelReporter(channel))
    except KernelcastError as error:
        channel.send(("error", error))
    except Exception:  # noqa: BLE001 - a bug of ours must be told apart from a driver's crash
        channel.send(("bug", traceback.format_exc()))
    else:
        channel.send(("result", result))
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


def _die_with_parent() -> None:
    """Ask Linux to kill us when the parent dies: an endless kernel must not outlive it."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of sys/prctl.h
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    main()
