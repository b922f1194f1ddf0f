"""A service that runs as users run it: a process over a data folder that holds observations."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Self, TypeVar

import httpx
from click.testing import CliRunner

from kernelcast.cli import app

Plain = dict[str, Any]
T = TypeVar("T")

ROWS: Final = Path(__file__).parents[1] / "acceptance" / "data" / "measured_kernels.parquet"
"""54 observations of 27 kernels on one CPU device, as `kernelcast data export` wrote them."""
ROWS_DEVICE: Final = "intel-amd-epyc-55ea"
ROWS_KERNEL: Final = "NVIDIA/nbody/nbody"
SCOPES: Final = ("estimate", "observe", "run", "admin")
SCALE: Final[Plain] = {
    "name": "scale",
    "code": """\
kernel void scale(global const float *x, global float *y, float factor)
{
    size_t i = get_global_id(0);
    float sum = x[i];
    for (int k = 0; k < 64; ++k)
        sum = fma(sum, factor, 1.0f);
    y[i] = sum;
}
""",
    "kernel": "scale",
    "global_size": [65536],
    "local_size": [64],
    "args": [
        {"buffer": "float32", "count": 65536, "init": "uniform"},
        {"buffer": "float32", "count": 65536},
        {"scalar": "float32", "value": 0.5},
    ],
}
"""A problem that takes a fraction of a millisecond."""
_PATIENCE_S: Final = 240.0


def command(*words: object) -> str:
    """Call the command line in this process; give what it wrote to standard output."""
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def make_token(data: Path, name: str, scopes: Sequence[str] = SCOPES) -> Plain:
    """Make a token for the service over a data folder."""
    options = [word for scope in scopes for word in ("--scope", scope)]
    database = data / "observations.sqlite"
    made: Plain = json.loads(
        command("serve", "token", "create", name, *options, "--database", database, "--json")
    )
    return made


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
        ends_s = time.monotonic() + _PATIENCE_S
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
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # of those that end meanwhile
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = words.decode(errors="replace")
    for one in [*found]:
        found |= list_children(one)
    return found


@contextmanager
def serve_rows(data: Path, *options: str) -> Iterator[tuple[ServiceProcess, Plain]]:
    """Serve a data folder that holds `ROWS`, and runs what is sent with the token that it gives."""
    data.mkdir(parents=True)
    command("data", "import", ROWS, "--store", data / "observations.sqlite")
    token = make_token(data, "all")
    with ServiceProcess(
        data, "--allow-run", "--require-tokens", "--refine", "0", *options
    ) as service:
        yield service, token


def choose_device(ids: Iterable[str]) -> str:
    """Give the embedded CPU device, whose compiler is quick, or the first one."""
    known = [*ids]
    return next((one for one in known if one.startswith("intel")), known[0])


def wait_until(look: Callable[[], T], is_good: Callable[[T], bool]) -> T:
    """Look again and again until what is seen is good."""
    ends_s = time.monotonic() + _PATIENCE_S
    while not is_good(seen := look()):
        assert time.monotonic() < ends_s, seen
        time.sleep(0.1)
    return seen
