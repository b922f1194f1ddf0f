"""The text of a StarPU performance model, format 45 (StarPU 1.3 and 1.4).

Source: StarPU 1.3.10, `src/core/perfmodel/perfmodel_history.c`: `dump_model_file` writes it,
`parse_model_file` reads it; comments are lines that begin with ``#``.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kernelcast.records.errors import InputError
from kernelcast.scheduling.starpu.records import (
    CodeletModel,
    Entry,
    Worker,
    WorkerKind,
)
from kernelcast.scheduling.starpu.regression import (
    MICROSECONDS,
    fit_offset_power_law,
    sum_logarithms,
)

FORMAT = 45
"""``_STARPU_PERFMODEL_VERSION``: also the name of the folder."""
_RULE = "#" * 20
_NUMBERS_OF_ENTRY = 8


def write_model(model: CodeletModel) -> str:
    """Write the text of a performance model.

    Parameters
    ----------
    model : CodeletModel
        The codelet's times. One text serves codelets of the types STARPU_HISTORY_BASED,
        STARPU_REGRESSION_BASED and STARPU_NL_REGRESSION_BASED.

    Returns
    -------
    str
        `read_model` is the inverse, up to the digits written.
    """
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
    """Read the history of a performance model, ours or one that StarPU has calibrated.

    Parameters
    ----------
    text : str
        Content of the file.
    symbol : str
        The codelet's, which the text does not hold.

    Returns
    -------
    CodeletModel
        Entries without any sample are left out, as StarPU keeps them before it has measured.
    """
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
    mean, deviation = entry.seconds * MICROSECONDS, entry.deviation_s * MICROSECONDS
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
            seconds=float(row[3]) / MICROSECONDS,
            deviation_s=float(row[4]) / MICROSECONDS,
            samples=int(row[7]),
        )
        for row in rows
        if int(row[7]) > 0
    )
