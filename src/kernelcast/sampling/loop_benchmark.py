"""Compiles a C loop and times it: what the CPU model predicts, measured."""

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.errors import InputError, MeasurementError

RUN = "kc_run"
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast")
_COMPILERS = ("cc", "gcc", "clang")


@dataclass(frozen=True, slots=True)
class LoopToRun:
    program: str
    constants: Mapping[str, int]
    array_bytes: int = 0
    compiler: str = ""
    """A C compiler; when empty, ``$CC`` or the first that there is."""
    flags: Sequence[str] = FLAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMeasurement:
    seconds: float
    """By the clock, in the median of the samples."""
    cpu_seconds: float
    shortest_s: float
    """The processor's time of the sample that other programs disturbed least."""
    compiler: str


def measure_loop(loop: LoopToRun, *, least_s: float = 0.05, samples: int = 5) -> LoopMeasurement:
    """Time samples of at least that length; a program that takes ten minutes is stuck."""
    compiler = _require_compiler(loop.compiler)
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        program = _compile(loop, compiler, Path(folder))
        command = [str(program), str(least_s), str(samples)]
        try:
            done = _run(command, timeout=600.0)
        except subprocess.TimeoutExpired as error:
            raise MeasurementError(
                "the loop did not end within 600 s; give a smaller size"
            ) from error
    if done.returncode:
        raise MeasurementError(
            f"the loop ended with status {done.returncode}; an index may lie outside its array, "
            "or the arrays do not fit into memory"
        )
    times = [float(word) for word in done.stdout.split()]
    wall_s, cpu_s = times[::2], times[1::2]
    return LoopMeasurement(
        seconds=statistics.median(wall_s), cpu_seconds=statistics.median(cpu_s),
        shortest_s=min(cpu_s), compiler=compiler,
    )  # fmt: skip


def compile_to_assembly(loop: LoopToRun) -> tuple[str, str]:
    """Find the compiler's name, and the assembly of the program that `measure_loop` runs."""
    compiler = _require_compiler(loop.compiler)
    target = _run([compiler, "-dumpmachine"]).stdout.strip()
    if not target.startswith("x86_64"):
        raise InputError(f"{compiler} compiles for {target}; loops are found in x86_64 code only")
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        made = _compile(loop, compiler, Path(folder), ["-S", "-fno-asynchronous-unwind-tables"])
        return compiler, made.read_text(encoding="utf-8")


def find_compiler(wanted: str = "") -> str | None:
    if wanted and shutil.which(wanted) is None:
        msg = f"C compiler {wanted!r} is not found; give another one, or leave the choice"
        raise InputError(msg)
    names = [wanted] if wanted else [os.environ.get("CC", ""), *_COMPILERS]
    return next((name for name in names if name and shutil.which(name)), None)


def _require_compiler(wanted: str) -> str:
    found = find_compiler(wanted)
    if found is None:
        names = ", ".join(_COMPILERS)
        raise InputError(f"no C compiler is found: install gcc or clang; looked for $CC, {names}")
    return found


def _compile(loop: LoopToRun, compiler: str, folder: Path, more: Sequence[str] = ()) -> Path:
    source, made = folder / "loop.c", folder / "loop"
    source.write_text(loop.program, encoding="utf-8")
    constants = [f"-D{name}={value}" for name, value in loop.constants.items()]
    # Larger static arrays do not fit the usual code model of x86-64.
    model = ["-mcmodel=medium"] if loop.array_bytes >= 2**30 else []
    options = [*loop.flags, *model, *constants, str(source), *more, "-o", str(made), "-lm"]
    done = _run([compiler, *options])
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        complaint = (lines or [done.stderr.strip()])[0].replace(str(folder), "")
        raise InputError(f"{compiler} cannot compile the loop: {complaint}")
    return made


def _run(command: Sequence[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
