"""Finds what compiles, and runs it within limits of time and memory: clang, ptxas, libraries.

Of the libraries with OpenCL C's built-in functions our own, compiled once, comes first: libclc's
ids know neither offsets nor windows of a launch. Math functions on NVIDIA's GPUs are libdevice's
where it is installed (a CUDA toolkit, the wheels of nvcc). What is still missing comes from libclc
(Debian's ``libclc-15``), where that is installed; it is linked for those kernels alone, since its
8 MB double the time of a small kernel (35 to 65 ms).
"""

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kernelcast.compiling import cache
from kernelcast.compiling.targets import CodeFormat, Target
from kernelcast.records.errors import CompileError, InputError, MissingExtraError
from kernelcast.records.kernel import Dialect

VARIABLE: Final = "KERNELCAST_CLANG"
LEAST_VERSION: Final = 15
"""Earlier ones lack built-in functions of OpenCL C 3.0 and files that only appear to be there."""
_VERSION: Final = re.compile(r"clang version (\d+)\.(\d+)\.(\d+)[^\n]*")
BASE_HEADER: Final = Path(__file__).with_name("base.h")
_OWN: Final = {
    CodeFormat.IR: (),
    CodeFormat.PTX: ("nvptx", "common"),
    CodeFormat.AMD: ("amdgcn", "common"),
    CodeFormat.X86: ("common",),
}
_LIBCLC: Final = {CodeFormat.PTX: "nvptx64--nvidiacl.bc", CodeFormat.AMD: "amdgcn--amdhsa.bc"}
_LIBCLC_FOLDERS: Final = ("/usr/lib/clc", "/usr/share/clc", "/usr/local/share/clc")
# Fences and shuffles that wait for a warp came with Volta; what is linked takes its caller's.
_LEAST_PROCESSOR: Final = {CodeFormat.PTX: ("-target-cpu", "sm_70", "-target-feature", "+ptx60")}


class Compiler(NamedTuple):
    command: tuple[str, ...]
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
    paths = (
        (shutil.which(chosen),) if chosen
        else (zig, shutil.which("clang"), next(filter(None, named), None))
    )  # fmt: skip
    found: dict[tuple[int, ...], Compiler] = {}
    for path in filter(None, paths):
        command = (path, "clang") if Path(path).stem == "zig" else (path,)
        with contextlib.suppress(CompileError):
            answer = ask((*command, "--version"))
            match = _VERSION.search(answer)
            if match and "Apple" not in answer:  # whose versions are not LLVM's
                found.setdefault(tuple(map(int, match.groups())), Compiler(command, match[0]))
    newest = max(found, default=(0,))
    if newest[0] >= LEAST_VERSION:
        return found[newest]
    if chosen:
        raise InputError(
            f"{VARIABLE} is {chosen!r}, which is no clang of version {LEAST_VERSION} or later; "
            "give the path of one, or of zig, or leave the variable out"
        )
    raise MissingExtraError(
        f"no clang of version {LEAST_VERSION} or later was found to compile with; install it with "
        f"`pip install 'kernelcast[compile]'`, install clang {LEAST_VERSION} or later on the path, "
        f"or set {VARIABLE} to such a clang"
    )


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
                ended, output = run_limited(command, Path(made), 120)
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
    kept = {"PATH", "SYSTEMROOT", "LD_LIBRARY_PATH"} & os.environ.keys()
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**{name: os.environ[name] for name in kept}, "LC_ALL": "C", "TMPDIR": str(folder)},
    ) as process:  # fmt: skip
        if sys.platform == "linux":
            import resource

            for kind, most in (
                # Address space: zig's binary and its reservations take 1 GB.
                (resource.RLIMIT_AS, 8 << 30), (resource.RLIMIT_FSIZE, 256 << 20),
                # The limit of processor time holds also if this process dies.
                (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, int(limit_s) + 1),
            ):  # fmt: skip
                with contextlib.suppress(OSError, ValueError):  # it ended, or its limit is lower
                    resource.prlimit(process.pid, kind, (most, most))
        try:
            output, _ = process.communicate(timeout=limit_s)
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise CompileError(
                f"the compiler did not end within {limit_s:g} s; make the source smaller, "
                "or give it more time"
            ) from None
    return process.returncode, output.decode(errors="replace")


def list_libraries(target: Target, folder: Path) -> tuple[Path, ...]:
    """List the bitcode to link first, in its order; what comes first is taken. Ours is written to
    a folder."""
    libdevice = find_libdevice() if target.format is CodeFormat.PTX else None
    paths = []
    for name in (*_OWN[target.format], *(["libdevice"] if libdevice else ())):
        paths.append(folder / f"{name}.bc")
        paths[-1].write_bytes(_compile_own(name, target.format))
    return (*paths, *([libdevice] if libdevice else ()))


@functools.cache
def _compile_own(name: str, code_format: CodeFormat) -> bytes:
    """Compile one of our sources, which is optimised with the kernel that takes it."""
    compiler = find_compiler()
    key = cache.digest((digest_code(), name, code_format, compiler.identity))
    entry = cache.read(key)
    if entry is None:
        target = Target.parse({"ptx": "sm_70", "amd": "gfx90a"}.get(code_format, "x86"))
        command = [
            *compiler.command, "-cc1", "-triple", target.triple,
            *_LEAST_PROCESSOR.get(code_format, ()), "-x", "cl", "-cl-std=CL2.0",
            *Dialect().list_flags("CL2.0"), "-nostdsysteminc", "-nobuiltininc",
            "-include", str(BASE_HEADER), "-w", "-O2", "-disable-llvm-passes",
            "-emit-llvm-bc", "-o", "library.bc", str(BASE_HEADER.parent / f"builtins/{name}.cl"),
        ]  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="kernelcast-compile-") as made:
            status, output = run_limited(command, Path(made), 120)
            if status != 0:
                raise CompileError(
                    f"{compiler.identity} cannot compile the built-in functions {name}.cl: {output}"
                )
            entry = {"bitcode": b64encode(Path(made, "library.bc").read_bytes()).decode()}
        cache.write(key, entry)
    return b64decode(entry["bitcode"])


def find_libclc(code_format: CodeFormat) -> Path | None:
    """Find LLVM's library of built-in functions for GPUs of a form of code."""
    name = _LIBCLC.get(code_format)
    paths = (Path(folder, name) for folder in _LIBCLC_FOLDERS) if name else ()
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def find_libdevice() -> Path | None:
    """Find NVIDIA's library of math functions: in wheels, else in a CUDA toolkit."""
    wheels, toolkits = _list_cuda_folders()
    paths = (folder / "nvvm/libdevice/libdevice.10.bc" for folder in (*wheels, *toolkits))
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def find_ptxas() -> Path | None:
    wheels, toolkits = ([str(path / "bin") for path in part] for part in _list_cuda_folders())
    folders = [*reversed(wheels), os.environ.get("PATH", os.defpath), *toolkits]
    found = shutil.which("ptxas", path=os.pathsep.join(folders))
    return Path(found) if found else None


def _list_cuda_folders() -> tuple[list[Path], list[Path]]:
    """List the folders of NVIDIA's wheels, and those of CUDA toolkits."""
    spec = importlib.util.find_spec("nvidia")
    wheels = spec.submodule_search_locations if spec else None
    named = filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH")))
    return (
        [path for wheel in wheels or () for path in sorted(Path(wheel).iterdir())],
        [*map(Path, named), Path("/usr/local/cuda")],
    )


@functools.cache
def digest_code(*rooms: str) -> str:
    """Make one name for the package's own code that decides what is kept, headers included."""
    folders = [BASE_HEADER.parents[1] / room for room in rooms or ("compiling",)]
    files = sorted(path for folder in folders for path in folder.rglob("*.*"))
    return cache.digest(path.read_bytes() for path in files if path.suffix in {".h", ".cl", ".py"})
