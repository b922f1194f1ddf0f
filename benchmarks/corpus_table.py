"""Writes docs/reference/corpus.md from the corpus and its results.

Results are made by::

    kernelcast corpus check --json > benchmarks/results/corpus/checks.json
    python benchmarks/corpus_times.py --usual --json benchmarks/results/corpus/times.json

Rows of further kernels can be added to both, from other devices too: a column is a runtime, and a
kernel's last row for it counts.

``python benchmarks/corpus_table.py`` then writes the page; with ``--check`` it only says, by its
exit status, whether the page is up to date.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelcast.training_data.applications import Application, CorpusKernel, find_applications

RESULTS = Path(__file__).resolve().parent / "results" / "corpus"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "corpus.md"
_HEADER = """# The benchmark corpus

<!-- Written by benchmarks/corpus_table.py; do not edit. -->

{kernels} kernels of {applications} applications, {table_2} of them named in Table 2 of the
sampling paper. All are our own implementations. `kernelcast corpus ls` lists them,
`kernelcast corpus check` compares what they compute with NumPy, `kernelcast corpus write` copies
them into a folder.

Columns of runtimes: how the check ended ("-": not checked), and the least time of two whole runs at
the usual size, with the usual local size, while other processes were at work on the machine. "size"
is the parameter that makes the launch larger, with its least and greatest value.

Checks: {checks}, on {devices}.
"""

Results = Sequence[Mapping[str, Any]]


def make_page(applications: Sequence[Application], checks: Results, times: Results) -> str:
    """Give the text of the page."""
    kernels = [kernel for one in applications for kernel in one.kernels]
    known = {kernel.name for kernel in kernels}
    devices = list(dict.fromkeys(row["device_id"] for row in checks))
    runtimes = list(dict.fromkeys(find_runtime(one) for one in devices))
    counts = Counter(row["status"] for row in checks if row["kernel"] in known)
    header = _HEADER.format(
        kernels=len(kernels),
        applications=len(applications),
        table_2=sum(kernel.table_2 is not None for kernel in kernels),
        checks=", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        devices=", ".join(devices),
    )
    cells = _Cells(checks, times)
    suites = dict.fromkeys(one.suite for one in applications)
    sections = [
        "\n".join(_list_suite([one for one in applications if one.suite is suite], runtimes, cells))
        for suite in sorted(suites)
    ]
    return "\n\n".join([header.rstrip(), *sections]) + "\n"


def find_runtime(device_id: str) -> str:
    """Give the part of a device's id that names its runtime.

    Examples
    --------
    >>> find_runtime("pocl-skylake-avx512-amd-5d25")
    'pocl'
    """
    return device_id.partition("-")[0]


class _Cells:
    """What is written into the columns of the runtimes."""

    def __init__(self, checks: Results, times: Results) -> None:
        self._statuses = {
            (row["kernel"], find_runtime(row["device_id"])): row["status"] for row in checks
        }
        self._seconds = {
            (row["kernel"], find_runtime(row["device_id"]), tuple(row["local_size"])): row[
                "seconds"
            ]
            for row in times
            if "seconds" in row
        }

    def of(self, kernel: CorpusKernel, runtime: str) -> str:
        """Give status and time of a kernel on a runtime."""
        status = self._statuses.get((kernel.name, runtime), "-")
        seconds = self._seconds.get((kernel.name, runtime, kernel.local_sizes[0]))
        return status if seconds is None else f"{status}, {seconds:.2f} s"


def _list_suite(
    applications: Sequence[Application], runtimes: Sequence[str], cells: _Cells
) -> Iterator[str]:
    yield f"## {applications[0].suite}\n"
    yield f"| kernel | what | Table 2 | size | local sizes | {' | '.join(runtimes)} |"
    yield "|---" * (5 + len(runtimes)) + "|"
    for application in applications:
        for kernel in application.kernels:
            columns = [
                f"`{kernel.name}`",
                "; ".join(filter(None, (application.title, kernel.note))),
                kernel.table_2 or "",
                f"{kernel.size.parameter} {kernel.size.least:,} to {kernel.size.most:,}",
                ", ".join("x".join(map(str, one)) for one in kernel.local_sizes),
                *(cells.of(kernel, runtime) for runtime in runtimes),
            ]
            yield f"| {' | '.join(columns)} |"


def main(arguments: Sequence[str]) -> int:
    """Write or check the page; give the exit status."""
    checks, times = (
        json.loads((RESULTS / name).read_text(encoding="utf-8"))
        for name in ("checks.json", "times.json")
    )
    text = make_page(find_applications(), checks, times)
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is out of date; run `python benchmarks/corpus_table.py`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
