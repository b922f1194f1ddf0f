"""Compiles a C loop and times it: what the CPU model predicts, measured."""

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelcast.records.errors import InputError, MeasurementError

RUN = "kc_run"
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast")
_COMPILERS = ("cc", "gcc", "clang")


def measure_loop(
    program: str, options: Sequence[str] = FLAGS, compiler: str = "", *, least_s: float = 0.05,
    samples: int = 5,
) -> dict[str, Any]:  # fmt: skip
    """Compile a C program with options, by ``$CC`` or the first compiler that there is unless one
    is named, and time samples of at least that length: in the median by the clock and by the
    processor, and the processor's time of the one that other programs disturbed least. A program
    that takes ten minutes is stuck."""
    compiler = _require_compiler(compiler)
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        made = _compile(program, options, compiler, Path(folder))
        command = [str(made), str(least_s), str(samples)]
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
    return {
        "wall_s": statistics.median(wall_s), "cpu_s": statistics.median(cpu_s),
        "shortest_s": min(cpu_s), "compiler": compiler,
    }  # fmt: skip


def compile_to_assembly(
    program: str, options: Sequence[str] = FLAGS, compiler: str = ""
) -> tuple[str, str]:
    """Find the compiler's name, and the assembly of the program that `measure_loop` runs."""
    compiler = _require_compiler(compiler)
    target = _run([compiler, "-dumpmachine"]).stdout.strip()
    if not target.startswith("x86_64"):
        raise InputError(f"{compiler} compiles for {target}; loops are found in x86_64 code only")
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        as_text = (*options, "-S", "-fno-asynchronous-unwind-tables")
        made = _compile(program, as_text, compiler, Path(folder))
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


def _compile(program: str, options: Sequence[str], compiler: str, folder: Path) -> Path:
    source, made = folder / "loop.c", folder / "loop"
    source.write_text(program, encoding="utf-8")
    done = _run([compiler, *options, str(source), "-o", str(made), "-lm"])
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        complaint = (lines or [done.stderr.strip()])[0].replace(str(folder), "")
        raise InputError(f"{compiler} cannot compile the loop: {complaint}")
    return made


def _run(command: Sequence[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
