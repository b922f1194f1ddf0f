"""Built-in functions of OpenCL C as bitcode: our own, compiled once, libdevice and libclc.

Ours come first: libclc's ids know neither offsets nor windows of a launch. Math functions on
NVIDIA's GPUs are libdevice's where it is installed (a CUDA toolkit, the wheels of nvcc). What is
still missing comes from libclc (Debian's ``libclc-15``), where that is installed; it is linked for
those kernels alone, since its 8 MB double the time of a small kernel (35 to 65 ms).
"""

import functools
import importlib.util
import os
import tempfile
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Final

from kernelcast.compiling.cache import digest, read, write
from kernelcast.compiling.compiler import Compiler, run_limited
from kernelcast.compiling.targets import CodeFormat, Target
from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import CompileError

BASE_HEADER: Final = Path(__file__).with_name("base.h")
_SOURCES: Final = Path(__file__).with_name("builtins")
_OWN: Final = {
    CodeFormat.IR: (),
    CodeFormat.PTX: ("nvptx", "common"),
    CodeFormat.AMD: ("amdgcn", "common"),
    CodeFormat.X86: ("common",),
}
_LIBCLC: Final = {CodeFormat.PTX: "nvptx64--nvidiacl.bc", CodeFormat.AMD: "amdgcn--amdhsa.bc"}
_LIBCLC_FOLDERS: Final = ("/usr/lib/clc", "/usr/share/clc", "/usr/local/share/clc")
_TOOLKITS: Final = ("CUDA_HOME", "CUDA_PATH")
_LIBDEVICE: Final = "nvvm/libdevice/libdevice.10.bc"
# Fences and shuffles that wait for a warp came with Volta; what is linked takes its caller's.
_LEAST_PROCESSOR: Final = {CodeFormat.PTX: ("-target-cpu", "sm_70", "-target-feature", "+ptx60")}
_DECIDING: Final = frozenset({".h", ".cl", ".py"})


def list_libraries(target: Target, compiler: Compiler, folder: Path) -> tuple[Path, ...]:
    """List the bitcode to link first, in its order; what comes first is taken. Ours is written to
    a folder."""
    libdevice = find_libdevice() if target.format is CodeFormat.PTX else None
    paths = []
    for name in (*_OWN[target.format], *(["libdevice"] if libdevice else ())):
        paths.append(folder / f"{name}.bc")
        paths[-1].write_bytes(_compile(name, target.format, compiler))
    return (*paths, *([libdevice] if libdevice else ()))


def find_libclc(code_format: CodeFormat) -> Path | None:
    """Find LLVM's library of built-in functions for GPUs of a form of code."""
    name = _LIBCLC.get(code_format)
    paths = (Path(folder, name) for folder in _LIBCLC_FOLDERS) if name else ()
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def find_libdevice() -> Path | None:
    """Find NVIDIA's library of math functions: in wheels, else in a CUDA toolkit."""
    paths = (folder / _LIBDEVICE for part in list_cuda_folders() for folder in part)
    return next((path for path in paths if path.is_file()), None)


def list_cuda_folders() -> tuple[list[Path], list[Path]]:
    """List the folders of NVIDIA's wheels, and those of CUDA toolkits."""
    spec = importlib.util.find_spec("nvidia")
    wheels = spec.submodule_search_locations if spec else None
    toolkits = [os.environ[name] for name in _TOOLKITS if os.environ.get(name)]
    return (
        [path for wheel in wheels or () for path in sorted(Path(wheel).iterdir())],
        [*map(Path, toolkits), Path("/usr/local/cuda")],
    )


@functools.cache
def digest_code(*rooms: str) -> str:
    """Make one name for the package's own code that decides what is kept, headers included."""
    folders = [BASE_HEADER.parents[1] / room for room in rooms or ("compiling",)]
    files = sorted(path for folder in folders for path in folder.rglob("*.*"))
    return digest(path.read_bytes() for path in files if path.suffix in _DECIDING)


@functools.cache
def _compile(name: str, code_format: CodeFormat, compiler: Compiler) -> bytes:
    """Compile one of our sources, which is optimised with the kernel that takes it."""
    key = digest((digest_code(), name, code_format, compiler.identity))
    entry = read(key)
    if entry is None:
        target = Target.parse({"ptx": "sm_70", "amd": "gfx90a"}.get(code_format, "x86"))
        command = [
            *compiler.command, "-cc1", "-triple", target.triple,
            *_LEAST_PROCESSOR.get(code_format, ()), "-x", "cl", "-cl-std=CL2.0",
            *Dialect().list_flags("CL2.0"), "-nostdsysteminc", "-nobuiltininc",
            "-include", str(BASE_HEADER), "-w", "-O2", "-disable-llvm-passes",
            "-emit-llvm-bc", "-o", "library.bc", str(_SOURCES / f"{name}.cl"),
        ]  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="kernelcast-compile-") as made:
            status, output = run_limited(command, Path(made), 120)
            if status != 0:
                raise CompileError(
                    f"{compiler.identity} cannot compile the built-in functions {name}.cl: {output}"
                )
            entry = {"bitcode": b64encode(Path(made, "library.bc").read_bytes()).decode()}
        write(key, entry)
    return b64decode(entry["bitcode"])
