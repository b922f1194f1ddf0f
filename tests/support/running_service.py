"""A service that runs as users run it: a process over a data folder that holds observations."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from click.testing import CliRunner

from kernelcast.cli import app
from support.service_process import ServiceProcess

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
