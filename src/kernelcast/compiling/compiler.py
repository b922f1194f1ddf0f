"""Finds a clang that knows OpenCL C, and runs it within limits of time and memory."""

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.compiling import cache
from kernelcast.records.errors import CompileError, InputError, MissingExtraError

VARIABLE = "KERNELCAST_CLANG"
LEAST_VERSION = 15
"""Earlier ones lack built-in functions of OpenCL C 3.0 and files that only appear to be there."""
_VERSION = re.compile(r"clang version (\d+)\.(\d+)\.(\d+)[^\n]*")
_ANSWER_LIMIT_S = 120
_INSTALL = (
    "install it with `pip install 'kernelcast[compile]'`, install clang 15 or later on the path, "
    f"or set {VARIABLE} to such a clang"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    command: tuple[str, ...]
    version: tuple[int, int, int]
    identity: str


@functools.cache
def find_compiler() -> Compiler:
    """Find what ``KERNELCAST_CLANG`` names, else the newest on the path and of ziglang."""
    chosen = os.environ.get(VARIABLE)
    # clang-40 is a name to look for in some nine years.
    named = (shutil.which(f"clang-{number}") for number in range(40, 14, -1))
    # The binary of the wheel starts in 5 ms; its Python module takes 20 ms more.
    spec = None if chosen else importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec else None
    zig = shutil.which(str(Path(folders[0], "zig"))) if folders else None
    found = (
        (shutil.which(chosen),) if chosen
        else (zig, shutil.which("clang"), next(filter(None, named), None))
    )  # fmt: skip
    candidates = [one for path in filter(None, found) if (one := _ask_version(path))]
    best = max(candidates, key=lambda one: one.version, default=None)
    if best is not None and best.version[0] >= LEAST_VERSION:
        return best
    if chosen:
        raise InputError(
            f"{VARIABLE} is {chosen!r}, which is no clang of version {LEAST_VERSION} or later; "
            "give the path of one, or of zig, or leave the variable out"
        )
    msg = f"no clang of version {LEAST_VERSION} or later was found to compile with; {_INSTALL}"
    raise MissingExtraError(msg)


def _ask_version(path: str) -> Compiler | None:
    command = (path, "clang") if Path(path).stem == "zig" else (path,)
    try:
        answer = ask((*command, "--version"))
    except CompileError:
        return None
    match = _VERSION.search(answer)
    if match is None or "Apple" in answer:  # whose versions are not LLVM's
        return None
    version = (int(match[1]), int(match[2]), int(match[3]))
    return Compiler(command=command, version=version, identity=match[0])


def list_processors(compiler: Compiler, triple: str) -> list[str]:
    answer = ask((*compiler.command, "-cc1", "-triple", triple, "-print-supported-cpus"))
    return re.findall(r"^\t(\S+)$", answer, re.MULTILINE)


@functools.lru_cache(maxsize=64)
def ask(command: tuple[str, ...], code: str = "") -> str:
    """Ask a program about itself or a file ``code``, which takes 20 ms and more; what it says is
    kept until the program changes."""
    try:
        status = Path(command[0]).stat()
        key = cache.digest((*command, code, f"answer {status.st_size} {status.st_mtime_ns}"))
        entry = cache.read(key)
        if entry is None:
            with tempfile.TemporaryDirectory(prefix="kernelcast-compile-") as made:
                Path(made, "code").write_text(code, encoding="utf-8")
                ended, output = run_limited(command, Path(made), _ANSWER_LIMIT_S)
            if ended != 0:
                raise CompileError(output.strip() or f"{command[0]} ended with status {ended}")
            entry = {"answer": output}
            cache.write(key, entry)
    except OSError as error:
        raise CompileError(f"{command[0]} cannot be run: {error}") from error
    answer: str = entry["answer"]
    return answer


def run_limited(command: Sequence[str], folder: Path, limit_s: float) -> tuple[int, str]:
    """Run a compiler in a folder; return its exit status and what it said."""
    environment = {
        name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
        if name in os.environ
    }  # fmt: skip
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**environment, "LC_ALL": "C", "TMPDIR": str(folder)},
    ) as process:  # fmt: skip
        _limit(process.pid, limit_s)
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise CompileError(
                f"the compiler did not end within {limit_s:g} s; make the source smaller, "
                "or give it more time"
            ) from None
        except BaseException:
            process.kill()
            raise
    return process.returncode, output.decode(errors="replace")


def _limit(pid: int, limit_s: float) -> None:
    """Limit what a process may take, also if this one dies; where the system can."""
    if sys.platform != "linux":
        return
    import resource

    for kind, most in (
        # Address space: zig's binary and its reservations take 1 GB.
        (resource.RLIMIT_AS, 8 << 30), (resource.RLIMIT_FSIZE, 256 << 20),
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, int(limit_s) + 1),
    ):  # fmt: skip
        with contextlib.suppress(OSError, ValueError):  # it has ended, or its limit is lower
            resource.prlimit(pid, kind, (most, most))
