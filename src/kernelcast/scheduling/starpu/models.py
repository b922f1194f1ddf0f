"""Performance models of StarPU: what they hold, their text, and where they are written.

Source: StarPU 1.3.10, `src/core/perfmodel/perfmodel_history.c` (`dump_model_file` writes the text
of format 45, `parse_model_file` reads it; alpha and beta of the power law are from sums over
logarithms) and `regression.c` (a, b, c). Times are in microseconds there, sizes in bytes.
"""

import math
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import linear_regression

from scipy.optimize import minimize_scalar

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import writing, written_whole
from kernelcast.scheduling.starpu.codelets import Wanted, Worker

FORMAT = 45
"""``_STARPU_PERFMODEL_VERSION``: also the name of the folder."""
LEAST_SAMPLES = 10
"""``STARPU_CALIBRATE_MINIMUM``: with fewer, StarPU calibrates instead of believing."""
_MICROSECONDS = 1e6
_NEAR = 0.9
_LONGEST_PATH = 255
_HOMES = ("XDG_CACHE_HOME", "STARPU_HOME", "HOME")  # StarPU 1.3.10, src/common/utils.c
_RULE = "#" * 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTime:
    seconds: float
    deviation_s: float = 0.0
    """Standard deviation, in seconds; 0 where it is not known."""
    origin: str
    """Where it comes from: an estimate's tier, ``store``, ``sampled``, ``given``."""
    device_id: str = ""
    """OpenCL device it is of; empty for others."""

    def __post_init__(self) -> None:
        if not (0 < self.seconds < math.inf and 0 <= self.deviation_s < math.inf):
            raise InputError(f"{self}: expected a time above 0, and no negative deviation")


Entry = tuple[Wanted, ExpectedTime]
"""How long tasks of a codelet and size take on a worker."""


def fit_power_law(entries: Sequence[Entry]) -> tuple[float, float] | None:
    """Fit ``time = alpha * size ** beta``; None of sizes within 10 %, which StarPU trusts not."""
    points = _list_points(entries)
    if points[0][0] >= _NEAR * points[-1][0]:
        return None
    try:
        return _line(points, 0.0)
    except OverflowError:
        return None


def fit_offset_power_law(entries: Sequence[Entry]) -> tuple[float, float, float] | None:
    """Fit ``time = a * size ** b + c`` in microseconds by the relative error of times; StarPU's own
    fit, by that of ``time - c``, weighs small sizes most."""
    points = sorted(dict(_list_points(entries)).items())
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


def _list_points(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """List sizes in bytes and times in microseconds, smallest sizes first."""
    return sorted((wanted.size_bytes, time.seconds * _MICROSECONDS) for wanted, time in entries)


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b


def write_model(entries: Sequence[Entry], samples: int = LEAST_SAMPLES) -> str:
    """Write a codelet's times, each as so many measurements."""
    by_worker: dict[Worker, list[Entry]] = {}
    for entry in entries:
        by_worker.setdefault(entry[0].worker, []).append(entry)
    kinds = groupby(sorted(by_worker), key=lambda one: (one.kind, one.device))
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
            lines += _write_entries(by_worker.get(worker, ()), samples)
    return "\n".join(lines) + "\n"


def _write_entries(entries: Sequence[Entry], samples: int) -> list[str]:
    lines = ["# number of entries", str(len(entries))]
    lines.append("# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx")
    reals, counts, curve = [*(0.0,) * 4, *(math.nan,) * 2], (0, 0, 0), None
    if entries:
        points = _list_points(entries)
        logs = [(math.log(size), math.log(time)) for size, time in points]
        # Sums over samples of x, x², y and xy, x the logarithm of the size and y of the time.
        products = zip(*((x, x * x, y, x * y) for x, y in logs), strict=True)
        sums = [samples * math.fsum(one) for one in products]
        reals = [*sums, *(fit_power_law(entries) or (math.nan, math.nan))]
        counts = (samples * len(entries), points[0][0], points[-1][0])
        curve = fit_offset_power_law(entries)
    lines.append("\t".join([*map(_real, reals), str(counts[0]), *(f"{n:<15}" for n in counts[1:])]))
    lines += ["# a\t\tb\t\tc", "\t".join(map(_real, curve or (math.nan,) * 3))]
    lines += ["# not multiple-regression-base", "0"]
    lines.append("# hash\t\tsize\t\tflops\t\tmean (us)\tdev (us)\tsum\t\tsum2\t\tn")
    for wanted, time in entries:  # their sums are those that give its mean and deviation
        mean = time.seconds * _MICROSECONDS
        deviation = time.deviation_s * _MICROSECONDS
        squares = samples * (deviation**2 + mean**2)
        columns = "\t".join(map(_real, (wanted.flops, mean, deviation, mean * samples, squares)))
        lines.append(f"{wanted.footprint:08x}\t{wanted.size_bytes:<15}\t{columns}\t{samples}")
    return [*lines, ""]


def _real(value: float) -> str:
    """Write a number as StarPU does, which reads nan apart."""
    return "nan" if math.isnan(value) else f"{value:<15e}"


def save_model(
    entries: Sequence[Entry],
    folder: Path | None = None,
    *,
    host: str | None = None,
    samples: int = LEAST_SAMPLES,
) -> Path:
    """Write a codelet's file into StarPU's folder of measurements, which the environment names
    unless it is given, as is the name that this machine's files have."""
    if folder is None:
        named = os.environ.get("STARPU_PERF_MODEL_DIR")
        home = next(filter(None, map(os.environ.get, _HOMES)), None)
        if not named and home is None:
            given = ", ".join(("STARPU_PERF_MODEL_DIR", *_HOMES))
            raise InputError(f"StarPU's folder is not known: none of {given} is set")
        folder = Path(named) if named else Path(home or "") / ".starpu" / "sampling"
    if not host:
        host = os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]
    path = folder / "codelets" / str(FORMAT) / f"{entries[0][0].symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    with writing(path, "the performance model"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(entries, samples), encoding="ascii")
    return path
