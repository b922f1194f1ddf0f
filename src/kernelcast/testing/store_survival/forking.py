"""Processes forked from this one: real ones, to be killed, without the cost of imports."""

import contextlib
import gc
import importlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kernelcast.workers.lifeline import die_with_parent

_MODULES: Final = (
    "alembic.command", "anyio._backends._asyncio", "fsspec.implementations.local",
    "kernelcast.cli.data.commands", "kernelcast.cli.serve.run",
    "kernelcast.reports.accuracy.held_rows", "kernelcast.reports.accuracy.model_answers",
    "kernelcast.training.table", "matplotlib.figure", "pandas", "psycopg",
    "pyarrow.compute", "uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto", "uvloop",
)  # fmt: skip


def preload() -> None:
    """Import what commands and pages import only when they need it."""
    for one in _MODULES:
        with contextlib.suppress(ImportError):  # PostgreSQL's driver is an extra
            importlib.import_module(one)
    gc.freeze()  # forked processes share what is there


class Forked:
    """A process that does some work and ends.

    Parameters
    ----------
    work : callable
        What it does; its result or `SystemExit` is the exit status.
    """

    def __init__(self, work: Callable[[], int | None], log: Path) -> None:
        self._status: int | None = None
        lifeline, self._held = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # From Python 3.12 on, a fork beside other libraries' threads warns.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._held)
            _be_child(work, log, lifeline)
        os.close(lifeline)
        with contextlib.suppress(OSError):  # it has done so itself, and perhaps ended
            os.setpgid(self.pid, self.pid)

    def is_running(self) -> bool:
        """Tell whether it has not ended."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
                os.close(self._held)
        return self._status is None

    def wait(self, timeout_s: float) -> int | None:
        """Wait until it ends; give its status, None when it is killed for taking too long."""
        ends_s = time.monotonic() + timeout_s
        while self.is_running():
            if time.monotonic() > ends_s:
                self.kill()
                return None
            time.sleep(0.002)
        return self._status

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.is_running():
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill it by SIGKILL and wait for its end."""
        self.send(signal.SIGKILL)
        while self.is_running():
            time.sleep(0.001)


def _be_child(work: Callable[[], int | None], log: Path, lifeline: int) -> None:
    """Do the work and end; returns never."""
    status = 70
    try:
        os.setpgid(0, 0)
        die_with_parent(lifeline)
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, stream, stream)):
            os.dup2(descriptor, number)
        status = work() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the log says what it was
        traceback.print_exc()
    finally:
        # Not the parent's handlers; but what was written, and what ends with the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
