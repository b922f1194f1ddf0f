"""Tries an installed kernelcast where little is there: no home, compiler, network, system OpenCL.

``python tests/fresh_environments.py build/wheel/venv`` takes the environment that `make wheel` has
filled from the wheel. Each case is a mount namespace of bubblewrap around one command; where
bubblewrap does not work nothing is tried, and that is said. The exit status says whether all held.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.processes import keep_busy, run_in_terminal

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = str(ROOT / "examples/triad/triad.yaml")
VENDORS = Path("/etc/OpenCL")
COMPILERS = ("gcc", "cc", "c++", "g++", "clang", "ld", "as")
COLUMNS = 80
MOST_BYTES = 660e6
_LIMIT_S = 300


class Case:
    """One environment: what is mounted over what is there, and what is set."""

    def __init__(self, environment: Path) -> None:
        self.environment = environment
        self.mounts: list[str] = []
        self.variables: dict[str, str] = {"HOME": "/tmp"}

    def hide(self, *paths: Path) -> None:
        """Put something empty over files and folders."""
        for one in filter(Path.exists, paths):
            self.mounts += ["--tmpfs"] if one.is_dir() else ["--ro-bind", "/dev/null"]
            self.mounts.append(str(one))

    def run(self, *words: str, columns: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command of kernelcast, which writes below /tmp alone and reaches nobody."""
        place = str(self.environment)
        known = {"PATH": f"{place}/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **self.variables}
        command = [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
            "--ro-bind", place, place, "--ro-bind", str(ROOT), str(ROOT), "--unshare-net",
            "--die-with-parent", *self.mounts, "--clearenv",
            *(word for name, value in known.items() for word in ("--setenv", name, value)),
            "--", "kernelcast", *words,
        ]  # fmt: skip
        if columns:
            return run_in_terminal(command, columns)
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )

    def estimate(self) -> list[dict[str, Any]]:
        """Ask for an estimate; each device must have answered."""
        done = self.run("estimate", PROBLEM, "--param", "N=4000000", "--json")
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
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
    case.variables["HOME"] = str(ROOT)
    return f"{len(case.estimate())} devices answered"


def try_no_home(case: Case) -> str:
    """Answer without a home at all."""
    del case.variables["HOME"]
    return f"{len(case.estimate())} devices answered"


def try_no_compiler(case: Case) -> str:
    """Answer without any compiler or linker of the system; count with a clang, or say so."""
    found = {Path(path).resolve() for name in COMPILERS if (path := shutil.which(name))}
    case.hide(VENDORS, *sorted(found))
    case.estimate()
    counted = case.run("features", PROBLEM, "--param", "N=4000000", "--json")
    assert counted.returncode == 0 or "kernelcast[compile]" in counted.stderr, counted.stderr
    return f"without {len(found)} programs"


def try_no_system_opencl(case: Case) -> str:
    """Find the embedded device by itself."""
    case.hide(VENDORS)
    done = case.run("devices", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["id"].partition("-")[0] for one in found] == ["intel"]
    return str(found[0]["id"])


def try_no_opencl(case: Case) -> str:
    """Say what to install where there is no device."""
    libraries = sorted(case.environment.rglob("libintelocl.so*"))
    case.hide(VENDORS, *(one for one in libraries if not one.is_symlink()))
    done = case.run("devices")
    assert done.returncode == 1, done.stdout
    assert "kernelcast[cpu]" in done.stderr + done.stdout
    return "said what to install"


def try_several_platforms(case: Case) -> str:
    """Keep devices of several platforms apart, and answer on each."""
    case.variables["RUSTICL_ENABLE"] = "llvmpipe"
    ids = [one["device_id"] for one in case.estimate()]
    assert len({*ids}) == len(ids)
    return ", ".join(ids)


def try_narrow_terminal(case: Case) -> str:
    """List devices within 80 columns."""
    done = case.run("devices", columns=COLUMNS)
    assert done.returncode == 0, done.stderr
    widest = max(len(line.rstrip()) for line in done.stdout.splitlines())
    assert widest <= COLUMNS, done.stdout
    return f"{widest} columns"


def try_busy_machine(case: Case) -> str:
    """Answer while other programs take all cores, and say so."""
    with keep_busy():
        answers = case.estimate()
    told = sum(one.get("now") is not None for one in answers)
    return f"{told} of {len(answers)} answers hold a second time"


CASES: tuple[Callable[[Case], str], ...] = (
    try_size, try_read_only_home, try_no_home, try_no_compiler, try_no_system_opencl, try_no_opencl,
    try_several_platforms, try_narrow_terminal, try_busy_machine,
)  # fmt: skip


def main() -> int:
    """Try all cases."""
    words = ["bwrap", "--ro-bind", "/", "/", "--unshare-net", "--", "true"]
    if shutil.which("bwrap") is None or subprocess.run(words, check=False).returncode != 0:
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
