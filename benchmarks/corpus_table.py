"""Writes docs/reference/corpus.md from the corpus and what its check says.

``kernelcast corpus check --json > benchmarks/results/corpus/checks.json`` makes the checks; rows of
other devices can be added, and a kernel's last row for a runtime counts.

``python benchmarks/corpus_table.py`` then writes the page; with ``--check`` it only says, by its
exit status, whether the page is up to date.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelcast.training_data.applications import Application, find_applications

CHECKS = Path(__file__).resolve().parent / "results" / "corpus" / "checks.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "corpus.md"
_HEADER = """# The benchmark corpus

<!-- Written by benchmarks/corpus_table.py; do not edit. -->

{kernels} kernels of {applications} applications, {table_2} of them named in Table 2 of the
sampling paper (name in brackets). All are our own implementations. `kernelcast corpus ls` lists
them with their size parameters and local sizes, `check` compares what they compute with NumPy,
`write` copies them into a folder.

Checks: {checks}, on {devices}. {exceptions}
"""


def make_page(applications: Sequence[Application], checks: Sequence[Mapping[str, Any]]) -> str:
    """Give the text of the page."""
    kernels = {kernel.name: kernel for one in applications for kernel in one.kernels}
    rows = [row for row in checks if row["kernel"] in kernels]
    others: dict[str, list[str]] = {}
    for (name, runtime), status in {
        (row["kernel"], row["device_id"].partition("-")[0]): row["status"] for row in rows
    }.items():
        if status != "passed":
            others.setdefault(f"{status} on {runtime}", []).append(f"`{name}`")
    others["not checked"] = [f"`{one}`" for one in sorted({*kernels} - {x["kernel"] for x in rows})]
    counts = Counter(row["status"] for row in rows)
    header = _HEADER.format(
        kernels=len(kernels),
        applications=len(applications),
        table_2=sum(kernel.table_2 is not None for kernel in kernels.values()),
        checks=", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        devices=", ".join(dict.fromkeys(f"`{row['device_id']}`" for row in checks)),
        exceptions=" ".join(
            f"{how.capitalize()}: {', '.join(names)}." for how, names in others.items() if names
        ),
    )
    suites = sorted({one.suite for one in applications})
    sections = [
        "\n".join(_list_suite([one for one in applications if one.suite is suite]))
        for suite in suites
    ]
    return "\n\n".join([header.rstrip(), *sections]) + "\n"


def _list_suite(applications: Sequence[Application]) -> Iterator[str]:
    yield f"## {applications[0].suite}\n"
    yield "| kernel | what |\n|---|---|"
    for application in applications:
        title = application.title
        if len(application.kernels) > 1:
            yield f"| *{application.kernels[0].application}* | *{title}* |"
            title = ""
        for kernel in application.kernels:
            name = f"`{kernel.name}`" + (f" ({kernel.table_2})" if kernel.table_2 else "")
            what = "; ".join(filter(None, (title, kernel.note)))
            yield f"| {name} | {what} |"


def main(arguments: Sequence[str]) -> int:
    """Write or check the page; give the exit status."""
    checks = json.loads(CHECKS.read_text(encoding="utf-8"))
    text = make_page(find_applications(), checks)
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is out of date; run `python benchmarks/corpus_table.py`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
