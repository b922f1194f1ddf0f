"""Compiles a loop by the system's C compiler, and times it on one core."""

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.errors import InputError, MeasurementError
from kernelcast.sampling.loop_benchmark.listing import Listing, take_apart

_DRIVER = """
static double kc_now(clockid_t clock)
{{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec + 1e-9 * at.tv_nsec;
}}

static void kc_fill(void)
{{
{fill}
}}

__attribute__((noinline)) static void kc_run(void)
{{
{scalars}
    {loop}
{keep}
}}

int main(int count, char **words)
{{
    const double least_s = count > 1 ? atof(words[1]) : 0.05;
    const int samples = count > 2 ? atoi(words[2]) : 5;
    kc_fill();
    kc_run();
    long repeats = 1;
    for (;;) {{ /* warm up, and find how many passes are long enough */
        const double start = kc_now(CLOCK_MONOTONIC);
        for (long pass = 0; pass < repeats; ++pass) {{
            kc_run();
            __asm__ volatile("" ::: "memory");
        }}
        const double passed = kc_now(CLOCK_MONOTONIC) - start;
        if (passed >= least_s || repeats >= 1L << 40)
            break;
        const double wanted = 1.2 * least_s / (passed > 1e-9 ? passed : 1e-9);
        repeats = (long)(repeats * (wanted < 2 ? 2 : wanted > 100 ? 100 : wanted)) + 1;
    }}
    for (int sample = 0; sample < samples; ++sample) {{
        const double start = kc_now(CLOCK_MONOTONIC);
        const double cpu = kc_now(CLOCK_PROCESS_CPUTIME_ID);
        for (long pass = 0; pass < repeats; ++pass) {{
            kc_run();
            __asm__ volatile("" ::: "memory");
        }}
        const double cpu_s = kc_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("%.9e %.9e\\n", (kc_now(CLOCK_MONOTONIC) - start) / repeats, cpu_s / repeats);
    }}
    return 0;
}}
"""


def write_program(listing: Listing) -> str:
    """Write the program.

    Arrays stand at file scope, where they may be large, and are filled first: pages that were
    never written all are one page of zeros, which every cache holds. Scalars are local variables
    whose values the compiler does not know.

    Examples
    --------
    >>> from kernelcast.sampling.loop_benchmark.listing import take_apart
    >>> text = write_program(take_apart("float a[N]; for (int i = 0; i < N; ++i) a[i] = 1.f;"))
    >>> "static float a[N]" in text
    True
    """
    head = [
        "#define _POSIX_C_SOURCE 200809L",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <time.h>",
        *listing.directives,
        "volatile double kc_value = 0.5, kc_sink;",
    ]
    arrays = [
        f"static {one.type_name} {one.name}{one.dimensions} __attribute__((aligned(64)));"
        for one in listing.arrays
    ]
    fill = [
        f"    for (size_t n = 0; n < sizeof {one.name} / sizeof({one.type_name}); ++n)\n"
        f"        (({one.type_name} *){one.name})[n] = ({one.type_name})(1 + n % 7 * kc_value);"
        for one in listing.arrays
    ]
    scalars = [
        f"    {one.type_name} {one.name} = {one.value or f'({one.type_name})kc_value'};"
        for one in listing.scalars
    ]
    keep = [f"    kc_sink = (double){one.name};" for one in listing.scalars]
    body = _DRIVER.format(
        fill="\n".join(fill), scalars="\n".join(scalars), loop=listing.loop, keep="\n".join(keep)
    )
    return "\n".join([*head, *arrays, body])


RUN = "kc_run"
"""The function that holds the loop."""
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast")
_LARGE_BYTES = 1 << 30
"""From here on, static arrays do not fit the usual code model of x86-64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSampling:
    """How long to measure."""

    least_s: float = 0.05
    """Shortest time of a sample: the loop is repeated until it takes so long."""
    samples: int = 5
    limit_s: float = 600.0
    """After which a program is taken for stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopToRun:
    """A loop of one size."""

    source: str
    constants: Mapping[str, int]
    """Values of its constants; the compiler knows them."""
    array_bytes: int = 0
    """Of all arrays."""
    compiler: str = ""
    """A C compiler; the first of `COMPILERS` that there is when empty, or `CC`."""
    flags: Sequence[str] = FLAGS
    """For the compiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMeasurement:
    """Times of one pass over the whole nest."""

    wall_s: tuple[float, ...]
    """Samples by the clock on the wall."""
    cpu_s: tuple[float, ...]
    """The same by the processor's time."""
    compiler: str

    @property
    def seconds(self) -> float:
        """Median of the wall times."""
        return statistics.median(self.wall_s)

    @property
    def cpu_seconds(self) -> float:
        """Median of the processor's times."""
        return statistics.median(self.cpu_s)

    @property
    def shortest_s(self) -> float:
        """The processor's time of the sample that other programs disturbed least."""
        return min(self.cpu_s)


def find_compiler(wanted: str = "") -> str | None:
    """Find a C compiler; None if there is none."""
    if wanted and shutil.which(wanted) is None:
        msg = f"C compiler {wanted!r} is not found; give another one, or leave the choice"
        raise InputError(msg)
    names = [wanted] if wanted else [os.environ.get("CC", ""), *COMPILERS]
    return next((one for one in names if one and shutil.which(one)), None)


def _require_compiler(wanted: str) -> str:
    found = find_compiler(wanted)
    if found is None:
        msg = (
            f"no C compiler is found: install gcc or clang; looked for $CC, {', '.join(COMPILERS)}"
        )
        raise InputError(msg)
    return found


def measure_loop(loop: LoopToRun, sampling: LoopSampling | None = None) -> LoopMeasurement:
    """Compile, warm up and time a loop.

    Raises
    ------
    InputError
        If there is no C compiler, or it is no listing that can be compiled.
    MeasurementError
        If it ends with an error, or not in time.
    """
    sampling = sampling or LoopSampling()
    compiler = _require_compiler(loop.compiler)
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        program = _compile(loop, compiler, Path(folder))
        lines = _run([str(program), str(sampling.least_s), str(sampling.samples)], sampling.limit_s)
    pairs = [tuple(float(one) for one in line.split()) for line in lines.splitlines()]
    return LoopMeasurement(
        wall_s=tuple(one[0] for one in pairs),
        cpu_s=tuple(one[1] for one in pairs),
        compiler=compiler,
    )


def compile_to_assembly(loop: LoopToRun) -> tuple[str, str]:
    """Give the compiler's name, and the assembly of the program that `measure_loop` runs.

    Raises
    ------
    InputError
        If there is no C compiler for x86-64, or the loop cannot be compiled.
    """
    compiler = _require_compiler(loop.compiler)
    target = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=False)
    if not target.stdout.startswith("x86_64"):
        msg = (
            f"{compiler} compiles for {target.stdout.strip()}; loops are found in x86_64 code only"
        )
        raise InputError(msg)
    with tempfile.TemporaryDirectory(prefix="kernelcast-loop-") as folder:
        made = _compile(loop, compiler, Path(folder), ["-S", "-fno-asynchronous-unwind-tables"])
        return compiler, made.read_text(encoding="utf-8")


def _compile(loop: LoopToRun, compiler: str, folder: Path, more: Sequence[str] = ()) -> Path:
    source, made = folder / "loop.c", folder / "loop"
    source.write_text(write_program(take_apart(loop.source)), encoding="utf-8")
    constants = [f"-D{name}={value}" for name, value in loop.constants.items()]
    model = ["-mcmodel=medium"] if loop.array_bytes >= _LARGE_BYTES else []
    command = [
        compiler, *loop.flags, *model, *constants, str(source), *more, "-o", str(made), "-lm",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = next(
            (one for one in done.stderr.splitlines() if "error" in one), done.stderr.strip()
        )
        msg = f"{compiler} cannot compile the loop: {complaint.replace(str(folder), '')}"
        raise InputError(msg)
    return made


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
