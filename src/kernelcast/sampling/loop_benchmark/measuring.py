"""Compiles a loop and times it: by the system's C compiler, else as an OpenCL kernel.

The C compiler comes first: a loop on one core is what the models describe, and what its author
will compile. Where there is none, an OpenCL device's compiler stands in for it, with one work-item.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelcast.records.errors import InputError, MeasurementError
from kernelcast.sampling.loop_benchmark.c_program import write_program
from kernelcast.sampling.loop_benchmark.listing import take_apart

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast")
_LARGE_BYTES = 1 << 30
"""From here on, static arrays do not fit the usual code model of x86-64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure.

    Parameters
    ----------
    least_s : float
        Shortest time of a sample: the loop is repeated until it takes so long.
    limit_s : float
        After which a program is taken for stuck.
    """

    least_s: float = 0.05
    samples: int = 5
    limit_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopToRun:
    """A loop of one size.

    Parameters
    ----------
    constants : mapping of str to int
        Values of its constants; the compiler knows them.
    elements : mapping of str to int
        Elements of each array.
    compiler : str
        A C compiler; the first of `COMPILERS` that there is when empty, or `CC`.
    flags : sequence of str
        For the compiler.
    """

    source: str
    constants: Mapping[str, int]
    elements: Mapping[str, int] = field(default_factory=dict)
    array_bytes: int = 0
    compiler: str = ""
    flags: Sequence[str] = FLAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMeasurement:
    """Times of one pass over the whole nest.

    Parameters
    ----------
    wall_s, cpu_s : tuple of float
        Samples, by the clock on the wall and by the processor's time; the latter is empty where
        nobody tells.
    """

    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    compiler: str

    @property
    def seconds(self) -> float:
        """Median of the wall times."""
        return statistics.median(self.wall_s)

    @property
    def cpu_seconds(self) -> float | None:
        """Median of the processor's times."""
        return statistics.median(self.cpu_s) if self.cpu_s else None

    @property
    def shortest_s(self) -> float:
        """The sample that other programs disturbed least: processor's time where it is known."""
        return min(self.cpu_s or self.wall_s)


def find_compiler(wanted: str = "") -> str | None:
    """Find a C compiler; None if there is none."""
    if wanted and shutil.which(wanted) is None:
        msg = f"C compiler {wanted!r} is not found; give another one, or leave the choice"
        raise InputError(msg)
    names = [wanted] if wanted else [os.environ.get("CC", ""), *COMPILERS]
    return next((one for one in names if one and shutil.which(one)), None)


def measure_loop(loop: LoopToRun, effort: Effort | None = None) -> LoopMeasurement:
    """Compile, warm up and time a loop.

    Raises
    ------
    InputError
        If it is no listing that can be compiled.
    MeasurementError
        If it ends with an error, or not in time.
    """
    effort = effort or Effort()
    compiler = find_compiler(loop.compiler)
    if compiler is None:
        # Drivers take a moment to load.
        from kernelcast.sampling.loop_benchmark.opencl_loop import measure_as_kernel

        wall_s, name = measure_as_kernel(
            loop.source, loop.constants, loop.elements, least_s=effort.least_s,
            samples=effort.samples,
        )  # fmt: skip
        return LoopMeasurement(wall_s=wall_s, cpu_s=(), compiler=name)
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        program = _compile(loop, compiler, Path(folder))
        lines = _run([str(program), str(effort.least_s), str(effort.samples)], effort.limit_s)
    pairs = [tuple(float(one) for one in line.split()) for line in lines.splitlines()]
    return LoopMeasurement(
        wall_s=tuple(one[0] for one in pairs),
        cpu_s=tuple(one[1] for one in pairs),
        compiler=compiler,
    )


def _compile(loop: LoopToRun, compiler: str, folder: Path) -> Path:
    source, program = folder / "loop.c", folder / "loop"
    source.write_text(write_program(take_apart(loop.source)), encoding="utf-8")
    constants = [f"-D{name}={value}" for name, value in loop.constants.items()]
    model = ["-mcmodel=medium"] if loop.array_bytes >= _LARGE_BYTES else []
    command = [
        compiler, *loop.flags, *model, *constants, str(source), "-o", str(program), "-lm",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = next(
            (one for one in done.stderr.splitlines() if "error" in one), done.stderr.strip()
        )
        msg = f"{compiler} cannot compile the loop: {complaint.replace(str(folder), '')}"
        raise InputError(msg)
    return program


def _run(command: Sequence[str], limit_s: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        msg = f"the loop did not end within {limit_s:g} s; give a smaller size"
        raise MeasurementError(msg) from error
    if done.returncode:
        msg = (
            f"the loop ended with status {done.returncode}; an index may lie outside its array, "
            "or the arrays do not fit into memory"
        )
        raise MeasurementError(msg)
    return done.stdout
