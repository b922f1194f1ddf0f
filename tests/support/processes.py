"""Terminals and busy machines for programs that are tried."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence


def run_in_terminal(
    command: Sequence[str], columns: int, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        os.close(theirs)
        found = b""
        # The end of a terminal that nobody writes to any more is an error.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                found += part
        _, complaints = process.communicate(timeout=300)
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())
    return subprocess.CompletedProcess(command, process.returncode, text, complaints)


@contextlib.contextmanager
def keep_busy() -> Iterator[None]:
    """Keep every processor busy twice meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        time.sleep(0.5)
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()
