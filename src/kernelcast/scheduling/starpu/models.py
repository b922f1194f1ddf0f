"""Performance models of StarPU: what they hold, their text, and where they are written.

Source: StarPU 1.3.10, `src/core/perfmodel/perfmodel_history.c` (`dump_model_file` writes the text
of format 45, `parse_model_file` reads it; alpha and beta of the power law are from sums over
logarithms) and `regression.c` (a, b, c). Times are in microseconds there, sizes in bytes.
"""

import math
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import written_whole

FORMAT = 45
"""``_STARPU_PERFMODEL_VERSION``: also the name of the folder."""
LEAST_SAMPLES = 10
"""``STARPU_CALIBRATE_MINIMUM``: with fewer, StarPU calibrates instead of believing."""
_MOST_IMPLEMENTATIONS = 4
"""``STARPU_MAXIMPLEMENTATIONS`` of Debian's build."""
_MICROSECONDS = 1e6
_FEWEST_FOR_OFFSET = 3
_NEAR = 0.9
_LARGEST_EXPONENT = 700.0
_LARGEST_FOOTPRINT = 2**32 - 1
_LONGEST_PATH = 255
_NUMBERS_OF_ENTRY = 8
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
    """Read a worker such as ``cpu``, ``opencl0`` or ``cpu0_impl1``."""
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
        msg = f"worker {text!r}: StarPU has one model for all CPU cores; write cpu"
        raise InputError(msg)
    if worker.implementation >= _MOST_IMPLEMENTATIONS:
        msg = f"worker {text!r}: StarPU numbers implementations 0 to {_MOST_IMPLEMENTATIONS - 1}"
        raise InputError(msg)
    return worker


def check_symbol(symbol: str) -> None:
    """Make sure that a name can be the symbol of a performance model."""
    if not _SYMBOL.fullmatch(symbol):
        msg = f"codelet {symbol!r}: expected letters, digits and underscores"
        raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How long a codelet takes on a worker at one size."""

    footprint: int
    """Under which StarPU looks it up, 32 bits."""
    size_bytes: int
    """What regressions are over: bytes of the task's data, or what ``size_base`` gives."""
    seconds: float
    """Mean time."""
    deviation_s: float = 0.0
    """Standard deviation, in seconds."""
    flops: float = 0.0
    """Operations of the task as the program sets ``starpu_task.flops``; 0 where it does not."""
    samples: int = LEAST_SAMPLES
    """Measurements that it counts as."""

    def __post_init__(self) -> None:
        if not 0 <= self.footprint <= _LARGEST_FOOTPRINT:
            msg = f"footprint {self.footprint}: expected 0 to {_LARGEST_FOOTPRINT} (32 bits)"
            raise InputError(msg)
        if self.size_bytes < 1 or self.samples < 1:
            msg = (
                f"entry {self.footprint:08x}: size {self.size_bytes}, {self.samples} samples; "
                "expected at least 1 of both"
            )
            raise InputError(msg)
        others = (self.deviation_s, self.flops)
        if not 0 < self.seconds < math.inf or not all(0 <= one < math.inf for one in others):
            msg = (
                f"entry {self.footprint:08x}: {self.seconds} s, deviation {self.deviation_s} s, "
                f"{self.flops} flops; expected a positive time, and no negative number"
            )
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeletModel:
    """The performance model of one codelet."""

    symbol: str
    """``starpu_perfmodel.symbol``."""
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
                msg = (
                    f"codelet {self.symbol} on {worker}: two sizes have one footprint; StarPU "
                    "cannot tell them apart either, give the codelet a size_base or footprint"
                )
                raise InputError(msg)


class LogSums(NamedTuple):
    """Sums over measurements, x the logarithm of the size and y that of the time."""

    x: float
    xx: float
    y: float
    xy: float
    samples: int
    smallest_bytes: int
    largest_bytes: int

    def power_law(self) -> tuple[float, float] | None:
        """Give alpha and beta of ``time = alpha * size ** beta``; None of near sizes."""
        spread = self.samples * self.xx - self.x**2
        if self.smallest_bytes >= _NEAR * self.largest_bytes or spread <= 0:
            return None
        beta = (self.samples * self.xy - self.x * self.y) / spread
        exponent = (self.y - beta * self.x) / self.samples
        return (math.exp(exponent), beta) if abs(exponent) < _LARGEST_EXPONENT else None


def sum_logarithms(entries: Sequence[Entry]) -> LogSums:
    """Sum over entries, each counted as often as it has samples."""
    points = [
        (one.samples, math.log(one.size_bytes), math.log(one.seconds * _MICROSECONDS))
        for one in entries
    ]
    sizes = [one.size_bytes for one in entries]
    return LogSums(
        x=math.fsum(n * x for n, x, _ in points),
        xx=math.fsum(n * x * x for n, x, _ in points),
        y=math.fsum(n * y for n, _, y in points),
        xy=math.fsum(n * x * y for n, x, y in points),
        samples=sum(n for n, _, _ in points),
        smallest_bytes=min(sizes),
        largest_bytes=max(sizes),
    )


def fit_offset_power_law(entries: Sequence[Entry]) -> tuple[float, float, float] | None:
    """Fit ``time = a * size ** b + c`` in microseconds by the relative error of times; StarPU's own
    fit, by that of ``time - c``, weighs small sizes most."""
    points = sorted({one.size_bytes: one.seconds * _MICROSECONDS for one in entries}.items())
    if len(points) < _FEWEST_FOR_OFFSET or points[0][0] >= _NEAR * points[-1][0]:
        return None
    try:
        return _fit_curve(points)
    except (OverflowError, ValueError):  # a or a power of a size leaves the range of numbers
        return None


def _fit_curve(points: Sequence[tuple[int, float]]) -> tuple[float, float, float]:
    least = min(time for _, time in points)

    def error_of(offset: float) -> float:
        a, b = _line(points, offset)
        return sum((math.log((a * size**b + offset) / time)) ** 2 for size, time in points)

    found = minimize_scalar(
        error_of, bounds=(0.0, 0.99 * least), method="bounded", options={"xatol": 1e-12 * least}
    )
    offset = min((0.0, float(found.x)), key=error_of)
    a, b = _line(points, offset)
    return a, b, offset


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b


def write_model(model: CodeletModel) -> str:
    """Write the text of a performance model."""
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
        lines += _write_implementations(model, number, workers)
    return "\n".join(lines) + "\n"


def read_model(text: str, *, symbol: str) -> CodeletModel:
    """Read the history of a performance model, ours or one that StarPU has calibrated."""
    lines = (line for line in map(str.strip, text.splitlines()) if line and line[0] != "#")
    try:
        return CodeletModel(symbol=symbol, entries=dict(_read_entries(lines)))
    except (StopIteration, ValueError, RuntimeError) as error:
        msg = f"performance model of {symbol}: is cut off or malformed ({error!r})"
        raise InputError(msg) from error


def _write_implementations(model: CodeletModel, comb: int, workers: Sequence[Worker]) -> list[str]:
    """Write every implementation up to the last one that has times; those between have none."""
    count = 1 + max(one.implementation for one in workers)
    lines = ["#" * 10, "# number of implementations", str(count)]
    first = workers[0]
    for number in range(count):
        worker = Worker(kind=first.kind, device=first.device, implementation=number)
        lines += ["#####", f"# Model for {worker} (Comb{comb})"]
        lines += _write_entries(model.entries.get(worker, ()))
    return lines


def _write_entries(entries: Sequence[Entry]) -> list[str]:
    lines = ["# number of entries", str(len(entries))]
    lines.append("# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx")
    if entries:
        sums = sum_logarithms(entries)
        alpha, beta = sums.power_law() or (math.nan, math.nan)
        reals = (sums.x, sums.xx, sums.y, sums.xy, alpha, beta)
        counts = (sums.samples, sums.smallest_bytes, sums.largest_bytes)
        curve = fit_offset_power_law(entries) or (math.nan,) * 3
    else:
        reals, counts, curve = (0.0,) * 4 + (math.nan,) * 2, (0, 0, 0), (math.nan,) * 3
    lines.append("\t".join([*map(_real, reals), str(counts[0]), *(f"{n:<15}" for n in counts[1:])]))
    lines += ["# a\t\tb\t\tc", "\t".join(map(_real, curve))]
    lines += ["# not multiple-regression-base", "0"]
    lines.append("# hash\t\tsize\t\tflops\t\tmean (us)\tdev (us)\tsum\t\tsum2\t\tn")
    return [*lines, *map(_write_entry, entries), ""]


def _write_entry(entry: Entry) -> str:
    """Write the line of an entry; its sums are those that give its mean and deviation."""
    mean, deviation = entry.seconds * _MICROSECONDS, entry.deviation_s * _MICROSECONDS
    total = mean * entry.samples
    squares = entry.samples * (deviation**2 + mean**2)
    reals = "\t".join(map(_real, (entry.flops, mean, deviation, total, squares)))
    return f"{entry.footprint:08x}\t{entry.size_bytes:<15}\t{reals}\t{entry.samples}"


def _real(value: float) -> str:
    """Write a number as StarPU does, which reads nan apart."""
    return "nan" if math.isnan(value) else f"{value:<15e}"


def _read_entries(lines: Iterator[str]) -> Iterator[tuple[Worker, tuple[Entry, ...]]]:
    version = int(next(lines))
    if version != FORMAT:
        msg = f"performance model: format {version}, expected {FORMAT}"
        raise InputError(msg)
    for _ in range(int(next(lines))):
        kinds = [(int(next(lines)), int(next(lines)), int(next(lines)))
                 for _ in range(int(next(lines)))]  # fmt: skip
        for implementation in range(int(next(lines))):
            found = _read_implementation(lines)
            if len(kinds) == 1 and found:  # times of several workers together are not ours
                kind, device, _ = kinds[0]
                yield (
                    Worker(kind=WorkerKind(kind), device=device, implementation=implementation),
                    found,
                )


def _read_implementation(lines: Iterator[str]) -> tuple[Entry, ...]:
    count = int(next(lines))
    for _ in range(3):  # both regressions, and that over several parameters
        next(lines)
    rows = [re.split(r"\s+", next(lines)) for _ in range(count)]
    if any(len(row) != _NUMBERS_OF_ENTRY for row in rows):
        msg = f"an entry has other than {_NUMBERS_OF_ENTRY} numbers"
        raise ValueError(msg)
    return tuple(
        Entry(
            footprint=int(row[0], 16),
            size_bytes=int(row[1]),
            flops=0.0 if row[2] == "nan" else float(row[2]),
            seconds=float(row[3]) / _MICROSECONDS,
            deviation_s=float(row[4]) / _MICROSECONDS,
            samples=int(row[7]),
        )
        for row in rows
        if int(row[7]) > 0
    )


def default_folder() -> Path:
    """Give the folder of StarPU's measurements: STARPU_PERF_MODEL_DIR or ``~/.starpu/sampling``."""
    named = os.environ.get("STARPU_PERF_MODEL_DIR")
    if named:
        return Path(named)
    for variable in _HOMES:
        home = os.environ.get(variable)
        if home:
            return Path(home) / ".starpu" / "sampling"
    msg = f"StarPU's folder is not known: none of STARPU_PERF_MODEL_DIR, {', '.join(_HOMES)} is set"
    raise InputError(msg)


def default_host() -> str:
    """Give the name that this machine's files have: STARPU_HOSTNAME, or the host's up to a dot."""
    return os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]


def save_model(model: CodeletModel, folder: Path, *, host: str) -> Path:
    """Write a performance model where StarPU looks for it."""
    path = folder / "codelets" / str(FORMAT) / f"{model.symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(model), encoding="ascii")
    except OSError as error:
        msg = f"{path}: the performance model cannot be written: {error.strerror or error}"
        raise InputError(msg) from error
    return path
