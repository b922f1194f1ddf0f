"""A user who has nothing yet, a small problem, and the program as a shell or a script sees it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import pyopencl as cl
import pytest
from click.testing import CliRunner

from kernelcast.cli import app
from support.device_queues import make_queue, parametrize_queues
from support.running_service import SCALE

pytest_generate_tests = parametrize_queues

REPOSITORY = Path(__file__).resolve().parents[2]
REFERENCE = REPOSITORY.parent / "shared" / "reference"

SCALE_FILE = f"""\
code: |
{indent(SCALE["code"], "  ")}kernel: scale
global_size: ["{{N}}"]
local_size: [64]
parameters: {{N: 65536}}
args:
  - {{buffer: float32, count: "{{N}}", init: uniform}}
  - {{buffer: float32, count: "{{N}}", init: zeros}}
  - {{scalar: float32, value: 0.5}}
"""
TUNED = """\
code: |
  kernel void add(global float *a, local float *part) {
      part[get_local_id(0)] = a[get_global_id(0)];
      barrier(CLK_LOCAL_MEM_FENCE);
  #if BROKEN
      this does not compile
  #endif
      a[get_global_id(0)] = part[get_local_id(0)] + 1.0f;
  }
kernel: add
build_options: ["-DBROKEN={BROKEN}"]
global_size: [65536]
local_size: ["{LX}"]
parameters: {LX: [16, 64], BROKEN: [0, 1]}
restrictions: ["{LX} + {BROKEN} < 65"]
args: [{buffer: float32, count: 65536, init: uniform}, {local: "4 * {LX}"}]
"""


@dataclass(frozen=True)
class Ended:
    """What a command has left: its exit status and what it wrote."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Read standard output, which has to be JSON and nothing else."""
        return json.loads(self.stdout)


Run = Callable[..., Ended]
Ask = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what the product writes in a folder of this session; drivers keep their caches."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        for name in ("KERNELCAST_STORE", "KERNELCAST_MODELS", "KERNELCAST_TOKEN"):
            environment.delenv(name, raising=False)
        environment.setenv("KERNELCAST_DATA", str(folder))
        environment.setenv("XDG_DATA_HOME", str(folder / "xdg"))
        yield folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have this test begin with an empty data folder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("KERNELCAST_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def run() -> Run:
    """Call the command line in this process, with `input` as standard input."""

    def call(*words: object, input: str | None = None) -> Ended:  # noqa: A002 - as subprocess
        done = CliRunner().invoke(
            app, [*map(str, words)], input=input, catch_exceptions=False, prog_name="kernelcast"
        )
        return Ended(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def ask(run: Run) -> Ask:
    """Run a command with `--json`, which has to end well; read what it prints."""

    def read(*words: object) -> Any:  # noqa: ANN401 - whatever JSON holds
        ended = run(*words, "--json")
        assert ended.status == 0, ended.stderr
        return ended.json()

    return read


@pytest.fixture(scope="session")
def run_process() -> Run:
    """Call the program that is installed, for what only a process can show."""
    program = Path(sys.executable).with_name("kernelcast")
    command = [str(program)] if program.is_file() else [sys.executable, "-m", "kernelcast"]

    def call(*words: object, timeout: float = 120, **variables: str) -> Ended:
        done = subprocess.run(
            [*command, *map(str, words)], capture_output=True, text=True, timeout=timeout,
            env={**os.environ, **variables}, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="module")
def queue(request: pytest.FixtureRequest) -> cl.CommandQueue:
    """Make a queue on each device in turn."""
    return make_queue(request.param)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """Write the problem file of a small kernel, `scale.yaml`, with the parameter N."""
    path = tmp_path / "scale.yaml"
    path.write_text(SCALE_FILE, encoding="utf-8")
    return path


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    """Write the problem file of a kernel with three configurations, one of which is no program."""
    path = tmp_path / "add.yaml"
    path.write_text(TUNED, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def device_ids(session_home: Path, run: Run) -> list[str]:
    """List the ids of the devices that work; a test that asks for them needs one."""
    devices = run("devices", "--json").json()
    usable = [device["id"] for device in devices if device["status"] == "ok"]
    if not usable:
        pytest.fail("no OpenCL device works; `pip install -e '.[cpu]'` brings one")
    return usable


@pytest.fixture(scope="session")
def list_documented(repository: Path) -> Callable[[str], set[str]]:
    """List the keys that the reference promises of a command's objects."""
    text = (repository / "docs/reference/command-line.md").read_text(encoding="utf-8")

    def find(command: str) -> set[str]:
        section = text.split(f"## Objects of `{command} --json`")[1].split("\n## ")[0]
        rows = re.findall(r"^\| (`.+?) \|", section, re.M)
        return {key for row in rows for key in re.findall(r"`(\w+)`", row)}

    return find


@pytest.fixture(scope="session")
def repository() -> Path:
    """Name the folder of the checkout, whose examples are public files."""
    return REPOSITORY


@pytest.fixture(scope="session")
def reference() -> Path:
    """Name the folder of published measurements beside the checkout, or skip."""
    if not REFERENCE.is_dir():
        pytest.skip(f"there are no published measurements in {REFERENCE}")
    return REFERENCE
