"""Runs the service in a process of its own, to be ended in any way."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, Self

import httpx

_START_S = 240.0


class ServiceProcess:
    """A service over a data folder."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.log = data / "service.log"
        self._options = options
        self._port = find_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        if self._process is None:
            raise AssertionError("the service was not started")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.data.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "KERNELCAST_DATA": str(self.data)}
        for name in ("KERNELCAST_STORE", "KERNELCAST_MODELS"):
            environment.pop(name, None)
        self._stream = self.log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernelcast", "serve", "--port", str(self._port),
             *self._options],
            env=environment,
            stderr=self._stream,
            start_new_session=True,
        )  # fmt: skip
        ends_s = time.monotonic() + _START_S
        while time.monotonic() < ends_s and self._process.poll() is None:
            # An HTTP client is costly to make: not before anybody listens.
            with (
                contextlib.suppress(httpx.TransportError, OSError),
                socket.create_connection(("127.0.0.1", self._port), timeout=5),
            ):
                if httpx.get(f"{self.url}/health", timeout=5).is_success:
                    return
            time.sleep(0.05)
        text = self.log.read_text(encoding="utf-8")
        raise AssertionError(f"the service does not answer; it wrote:\n{text[-3000:]}")

    def kill(self) -> None:
        """Kill it with everything that it has started in its own session."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def stop(self) -> int:
        """End it in order; give its exit status."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(240)
        self.kill()
        return status

    def read_log(self) -> list[dict[str, Any]]:
        """Give the lines of the log; each is JSON."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]


def find_port() -> int:
    """Find a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def list_children(pid: int) -> dict[int, str]:
    """Give the processes that a process has started, and theirs: their command lines by id."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        one = int(folder.name)
        parents[one] = int(status.rpartition(")")[2].split()[1])
        commands[one] = command.replace(b"\0", b" ").decode(errors="replace")
    found = {pid}
    for _ in range(len(parents)):
        more = {one for one, parent in parents.items() if parent in found} - found
        if not more:
            break
        found |= more
    return {one: commands[one] for one in found - {pid} if one in commands}
