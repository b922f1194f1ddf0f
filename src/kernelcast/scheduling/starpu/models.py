"""Performance models of StarPU: what they hold, their text, and where they are written.

Source: StarPU 1.3.10, `src/core/perfmodel/perfmodel_history.c` (`dump_model_file` writes the text
of format 45, `parse_model_file` reads it; alpha and beta of the power law are from sums over
logarithms) and `regression.c` (a, b, c). Times are in microseconds there, sizes in bytes.
"""

import math
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from pathlib import Path
from statistics import linear_regression

from scipy.optimize import minimize_scalar

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import writing, written_whole

FORMAT = 45
"""``_STARPU_PERFMODEL_VERSION``: also the name of the folder."""
LEAST_SAMPLES = 10
"""``STARPU_CALIBRATE_MINIMUM``: with fewer, StarPU calibrates instead of believing."""
_MOST_IMPLEMENTATIONS = 4
"""``STARPU_MAXIMPLEMENTATIONS`` of Debian's build."""
_MICROSECONDS = 1e6
_NEAR = 0.9
_LONGEST_PATH = 255
_HOMES = ("XDG_CACHE_HOME", "STARPU_HOME", "HOME")  # StarPU 1.3.10, src/common/utils.c
_RULE = "#" * 20
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKER = re.compile(r"(?P<kind>cpu|cuda|opencl)(?P<device>\d*)(?:_impl(?P<implementation>\d))?")


class WorkerKind(IntEnum):
    """``enum starpu_worker_archtype``."""

    CPU = 0
    CUDA = 1
    OPENCL = 2


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Worker:
    """A kind of worker, as performance models tell them apart."""

    kind: WorkerKind
    device: int = 0
    """StarPU's number of the device; 0 for every CPU core, which count as equal."""
    implementation: int = 0
    """Which of the codelet's functions for this kind."""

    def __str__(self) -> str:
        return f"{self.kind.name.lower()}{self.device}_impl{self.implementation}"


def parse_worker(text: str) -> Worker:
    match = _WORKER.fullmatch(text.strip().lower())
    if match is None:
        msg = f"worker {text!r}: expected cpu, openclN or cudaN, for example opencl0 or cpu0_impl1"
        raise InputError(msg)
    worker = Worker(
        kind=WorkerKind[match["kind"].upper()],
        device=int(match["device"] or 0),
        implementation=int(match["implementation"] or 0),
    )
    if worker.kind is WorkerKind.CPU and worker.device:
        raise InputError(f"worker {text!r}: StarPU has one model for all CPU cores; write cpu")
    if worker.implementation >= _MOST_IMPLEMENTATIONS:
        msg = f"worker {text!r}: StarPU numbers implementations 0 to {_MOST_IMPLEMENTATIONS - 1}"
        raise InputError(msg)
    return worker


def check_symbol(symbol: str) -> None:
    if not _SYMBOL.fullmatch(symbol):
        raise InputError(f"codelet {symbol!r}: expected letters, digits and underscores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How long a codelet takes on a worker at one size."""

    footprint: int
    """Under which StarPU looks it up, 32 bits."""
    size_bytes: int
    """What regressions are over: bytes of the task's data, or what ``size_base`` gives."""
    seconds: float
    deviation_s: float = 0.0
    flops: float = 0.0
    """Operations of the task as the program sets ``starpu_task.flops``; 0 where it does not."""
    samples: int = LEAST_SAMPLES

    def __post_init__(self) -> None:
        is_there = min(self.size_bytes, self.samples) >= 1 and 0 < self.seconds < math.inf
        is_right = all(0 <= one < math.inf for one in (self.deviation_s, self.flops))
        if not (is_there and is_right and 0 <= self.footprint < 2**32):
            raise InputError(
                f"{self}: expected a footprint of 32 bits, size, samples and time above 0, and no "
                "negative number"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeletModel:
    """The performance model of one codelet."""

    symbol: str
    entries: Mapping[Worker, tuple[Entry, ...]]
    """At least one worker, each with at least one entry; footprints of a worker differ."""

    def __post_init__(self) -> None:
        check_symbol(self.symbol)
        if not self.entries or not all(self.entries.values()):
            msg = f"codelet {self.symbol}: has no times; give at least one worker and size"
            raise InputError(msg)
        for worker, entries in self.entries.items():
            found = [one.footprint for one in entries]
            if len(found) != len({*found}):
                raise InputError(
                    f"codelet {self.symbol} on {worker}: two sizes have one footprint; StarPU "
                    "cannot tell them apart either, give the codelet a size_base or footprint"
                )


def _sum_logarithms(entries: Sequence[Entry]) -> tuple[float, float, float, float]:
    """Sum x, x², y and xy over samples, x the logarithm of the size and y that of the time."""
    points = [
        (one.samples, math.log(one.size_bytes), math.log(one.seconds * _MICROSECONDS))
        for one in entries
    ]
    return (
        math.fsum(n * x for n, x, _ in points),
        math.fsum(n * x * x for n, x, _ in points),
        math.fsum(n * y for n, _, y in points),
        math.fsum(n * x * y for n, x, y in points),
    )


def fit_power_law(entries: Sequence[Entry]) -> tuple[float, float] | None:
    """Fit ``time = alpha * size ** beta``; None of sizes within 10 %, which StarPU trusts not."""
    sum_x, sum_xx, sum_y, sum_xy = _sum_logarithms(entries)
    samples, sizes = sum(one.samples for one in entries), [one.size_bytes for one in entries]
    spread = samples * sum_xx - sum_x**2
    if min(sizes) >= _NEAR * max(sizes) or spread <= 0:
        return None
    beta = (samples * sum_xy - sum_x * sum_y) / spread
    exponent = (sum_y - beta * sum_x) / samples
    return (math.exp(exponent), beta) if abs(exponent) < 700 else None  # of doubles


def fit_offset_power_law(entries: Sequence[Entry]) -> tuple[float, float, float] | None:
    """Fit ``time = a * size ** b + c`` in microseconds by the relative error of times; StarPU's own
    fit, by that of ``time - c``, weighs small sizes most."""
    points = sorted({one.size_bytes: one.seconds * _MICROSECONDS for one in entries}.items())
    if len(points) < 3 or points[0][0] >= _NEAR * points[-1][0]:
        return None
    least = min(time for _, time in points)

    def error_of(offset: float) -> float:
        a, b = _line(points, offset)
        return sum((math.log((a * size**b + offset) / time)) ** 2 for size, time in points)

    try:
        found = minimize_scalar(
            error_of, bounds=(0.0, 0.99 * least), method="bounded", options={"xatol": 1e-12 * least}
        )
        offset = min((0.0, float(found.x)), key=error_of)
        return *_line(points, offset), offset
    except (OverflowError, ValueError):  # a or a power of a size leaves the range of numbers
        return None


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b


def write_model(model: CodeletModel) -> str:
    kinds = groupby(sorted(model.entries), key=lambda one: (one.kind, one.device))
    by_device = [(kind, device, list(workers)) for (kind, device), workers in kinds]
    lines = [_RULE, "# Performance Model Version", str(FORMAT), "", _RULE, "# COMBs",
             "# number of combinations", str(len(by_device))]  # fmt: skip
    for number, (kind, device, workers) in enumerate(by_device):
        lines += [
            _RULE, f"# COMB_{number}", "# number of types devices", "1",
            _RULE, "# DEV_0", "# device type (CPU - 0, CUDA - 1, OPENCL - 2)", str(int(kind)),
            _RULE, "# DEV_0", "# device id", str(device),
            _RULE, "# DEV_0", "# number of cores", "1",
        ]  # fmt: skip
        # Every implementation up to the last one that has times; those between have none.
        count = 1 + max(one.implementation for one in workers)
        lines += ["#" * 10, "# number of implementations", str(count)]
        for implementation in range(count):
            worker = Worker(kind=kind, device=device, implementation=implementation)
            lines += ["#####", f"# Model for {worker} (Comb{number})"]
            lines += _write_entries(model.entries.get(worker, ()))
    return "\n".join(lines) + "\n"


def _write_entries(entries: Sequence[Entry]) -> list[str]:
    lines = ["# number of entries", str(len(entries))]
    lines.append("# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx")
    reals, counts, curve = [*(0.0,) * 4, *(math.nan,) * 2], (0, 0, 0), None
    if entries:
        reals = [*_sum_logarithms(entries), *(fit_power_law(entries) or (math.nan, math.nan))]
        sizes = [one.size_bytes for one in entries]
        counts = (sum(one.samples for one in entries), min(sizes), max(sizes))
        curve = fit_offset_power_law(entries)
    lines.append("\t".join([*map(_real, reals), str(counts[0]), *(f"{n:<15}" for n in counts[1:])]))
    lines += ["# a\t\tb\t\tc", "\t".join(map(_real, curve or (math.nan,) * 3))]
    lines += ["# not multiple-regression-base", "0"]
    lines.append("# hash\t\tsize\t\tflops\t\tmean (us)\tdev (us)\tsum\t\tsum2\t\tn")
    for entry in entries:  # their sums are those that give its mean and deviation
        mean, deviation = entry.seconds * _MICROSECONDS, entry.deviation_s * _MICROSECONDS
        total = mean * entry.samples
        squares = entry.samples * (deviation**2 + mean**2)
        columns = "\t".join(map(_real, (entry.flops, mean, deviation, total, squares)))
        lines.append(f"{entry.footprint:08x}\t{entry.size_bytes:<15}\t{columns}\t{entry.samples}")
    return [*lines, ""]


def _real(value: float) -> str:
    """Write a number as StarPU does, which reads nan apart."""
    return "nan" if math.isnan(value) else f"{value:<15e}"


def default_folder() -> Path:
    """Give the folder of StarPU's measurements: STARPU_PERF_MODEL_DIR or ``~/.starpu/sampling``."""
    named = os.environ.get("STARPU_PERF_MODEL_DIR")
    if named:
        return Path(named)
    for variable in _HOMES:
        if home := os.environ.get(variable):
            return Path(home) / ".starpu" / "sampling"
    msg = f"StarPU's folder is not known: none of STARPU_PERF_MODEL_DIR, {', '.join(_HOMES)} is set"
    raise InputError(msg)


def default_host() -> str:
    """Give the name that this machine's files have: STARPU_HOSTNAME, or the host's up to a dot."""
    return os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]


def save_model(model: CodeletModel, folder: Path, *, host: str) -> Path:
    path = folder / "codelets" / str(FORMAT) / f"{model.symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    with writing(path, "the performance model"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(model), encoding="ascii")
    return path
