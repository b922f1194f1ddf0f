"""Tries an installed kernelcast where little is there: no home, compiler, network, system OpenCL.

``python tests/fresh_environments.py build/wheel/venv`` takes the environment that `make wheel` has
filled from the wheel. Each case is a mount namespace of bubblewrap around one command; where
bubblewrap does not work nothing is tried, and that is said. The exit status says whether all held.
"""

import contextlib
import json
import multiprocessing
import os
import pty
import re
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = str(ROOT / "examples/triad/triad.yaml")
ESTIMATE = ("estimate", PROBLEM, "--param", "N=4000000", "--json")
VENDORS = "/etc/OpenCL"
COMPILERS = ("gcc", "cc", "c++", "g++", "clang", "ld", "as")
COLUMNS = 80
MOST_BYTES = 660e6
_LIMIT_S = 300


class Case:
    """One environment: what is mounted over what is there, and what is set."""

    def __init__(self, environment: Path) -> None:
        self.environment = environment
        self.mounts: list[str] = []
        self.variables: dict[str, str] = {}

    def hide_folder(self, path: str) -> "Case":
        """Put an empty folder over one."""
        if Path(path).is_dir():
            self.mounts += ["--tmpfs", path]
        return self

    def hide_files(self, paths: Sequence[Path]) -> "Case":
        """Put an empty file over each."""
        for one in paths:
            self.mounts += ["--ro-bind", "/dev/null", str(one)]
        return self

    def run(self, *words: str, columns: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command of kernelcast, which writes below /tmp alone and reaches nobody."""
        place = str(self.environment)
        command = [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
            "--ro-bind", place, place, "--ro-bind", str(ROOT), str(ROOT), "--unshare-net",
            "--die-with-parent", *self.mounts, "--clearenv",
        ]  # fmt: skip
        known = {"PATH": f"{place}/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **self.variables}
        for name, value in known.items():
            command += ["--setenv", name, value]
        command += ["--", "kernelcast", *words]
        if columns:
            return run_in_terminal(command, columns)
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )


def run_in_terminal(command: Sequence[str], columns: int) -> subprocess.CompletedProcess[str]:
    """Run a command that writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        found = b""
        # The end of a terminal that nobody writes to any more is an error.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                found += part
        _, complaints = process.communicate(timeout=_LIMIT_S)
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())
    return subprocess.CompletedProcess(list(command), process.returncode, text, complaints)


def read_answers(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Read what an estimate has answered; each device must have."""
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    assert answers
    for one in answers:
        assert one["low"] <= one["seconds"] <= one["high"], one
    return answers


def try_size(case: Case) -> str:
    """Take less than 660 MB, Intel's runtime aside, which lies beside the packages of Python."""
    (packages,) = case.environment.glob("lib/python*/site-packages")
    size = sum(one.stat().st_size for one in packages.rglob("*") if one.is_file())
    assert size < MOST_BYTES, f"{size / 1e6:.0f} MB"
    return f"{size / 1e6:.0f} MB"


def try_read_only_home(case: Case) -> str:
    """Answer where a home is there that cannot be written."""
    case.variables["HOME"] = str(ROOT)  # there, and not to be written
    done = case.run(*ESTIMATE)
    answers = read_answers(done)
    assert "Traceback" not in done.stderr
    return f"{len(answers)} devices answered"


def try_no_home(case: Case) -> str:
    """Answer without a home at all."""
    return f"{len(read_answers(case.run(*ESTIMATE)))} devices answered"


def try_no_compiler(case: Case) -> str:
    """Answer without any compiler or linker of the system; count with a clang, or say so."""
    found = {Path(path).resolve() for name in COMPILERS if (path := shutil.which(name))}
    case.hide_folder(VENDORS).hide_files(sorted(found)).variables["HOME"] = "/tmp"
    read_answers(case.run(*ESTIMATE))
    counted = case.run("features", PROBLEM, "--param", "N=4000000", "--json")
    assert counted.returncode == 0 or "kernelcast[compile]" in counted.stderr, counted.stderr
    return f"without {len(found)} programs"


def try_no_system_opencl(case: Case) -> str:
    """Find the embedded device by itself."""
    case.hide_folder(VENDORS).variables["HOME"] = "/tmp"
    done = case.run("devices", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["id"].partition("-")[0] for one in found] == ["intel"]
    return str(found[0]["id"])


def try_no_opencl(case: Case) -> str:
    """Say what to install where there is no device."""
    libraries = sorted(Path(case.environment).rglob("libintelocl.so*"))
    case.hide_folder(VENDORS).hide_files([one for one in libraries if not one.is_symlink()])
    case.variables["HOME"] = "/tmp"
    done = case.run("devices")
    assert done.returncode == 1, done.stdout
    assert "kernelcast[cpu]" in done.stderr + done.stdout
    return "said what to install"


def try_several_platforms(case: Case) -> str:
    """Keep devices of several platforms apart, and answer on each."""
    case.variables |= {"HOME": "/tmp", "RUSTICL_ENABLE": "llvmpipe"}
    answers = read_answers(case.run(*ESTIMATE))
    ids = [one["device_id"] for one in answers]
    assert len({*ids}) == len(ids)
    return ", ".join(ids)


def try_narrow_terminal(case: Case) -> str:
    """List devices within 80 columns."""
    case.variables["HOME"] = "/tmp"
    done = case.run("devices", columns=COLUMNS)
    assert done.returncode == 0, done.stderr
    widest = max(len(line.rstrip()) for line in done.stdout.splitlines())
    assert widest <= COLUMNS, done.stdout
    return f"{widest} columns"


def try_busy_machine(case: Case) -> str:
    """Answer while other programs take all cores, and say so."""
    case.variables["HOME"] = "/tmp"
    with burn(2 * (os.cpu_count() or 1)):
        answers = read_answers(case.run(*ESTIMATE))
    told = sum(one.get("now") is not None for one in answers)
    return f"{told} of {len(answers)} answers hold a second time"


@contextmanager
def burn(count: int) -> Iterator[None]:
    """Keep cores busy meanwhile."""
    workers = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(count)]
    for one in workers:
        one.start()
    try:
        yield
    finally:
        for one in workers:
            one.terminate()
            one.join()


def _burn() -> None:
    while True:
        sum(range(1000))


CASES: tuple[Callable[[Case], str], ...] = (
    try_size, try_read_only_home, try_no_home, try_no_compiler, try_no_system_opencl, try_no_opencl,
    try_several_platforms, try_narrow_terminal, try_busy_machine,
)  # fmt: skip


def can_confine() -> bool:
    """Tell whether bubblewrap works here."""
    if shutil.which("bwrap") is None:
        return False
    words = ["bwrap", "--ro-bind", "/", "/", "--unshare-net", "--", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def main() -> int:
    """Try all cases."""
    if not can_confine():
        sys.stdout.write("bubblewrap does not work here: no environment was tried\n")
        return 0
    environment = Path(sys.argv[1]).resolve()
    failures = 0
    for case in CASES:
        name = case.__name__.removeprefix("try_").replace("_", " ")
        try:
            told = case(Case(environment))
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as error:
            failures += 1
            told = f"FAILED: {error}"
        sys.stdout.write(f"{name}: {told}\n")
        sys.stdout.flush()
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
