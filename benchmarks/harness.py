"""What benchmarks share: result files with the machine's description, Markdown tables, scores."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

RESULTS = Path(__file__).resolve().parent / "results"


def write_result(path: Path, content: Mapping[str, Any]) -> None:
    """Write a result as JSON, with the machine that it was measured on unless it names one."""
    write_json(path, {"machine": describe_machine(), **content})


def write_json(path: Path, content: object) -> None:
    """Write JSON, and the folder that it lies in."""
    write_text(path, json.dumps(content, indent=1))


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the benchmark wrote
    """Read a result."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_text(path: Path, *lines: str) -> None:
    """Write lines, and the folder that the file lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def replace_block(path: Path, begin: str, end: str, lines: Iterable[str]) -> None:
    """Replace what stands between two marks of a file, where it has such marks."""
    before, mark, rest = path.read_text(encoding="utf-8").partition(begin)
    if mark:
        write_text(path, before + begin, *lines, end + rest.partition(end)[2])


def make_table(headings: Sequence[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """Make the lines of a Markdown table: the first column to the left, numbers to the right.

    >>> make_table(["kernel", "ms"], [["triad", 2.5], ["gemm", None]])
    ['| kernel | ms |', '|---|---:|', '| triad | 2.5 |', '| gemm |  |']
    """
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    are_words = [
        not column or any(cell and not cell.strip("*+-")[:1].isdigit() for cell in column)
        for column in (
            [row[place] for row in cells if place < len(row)] for place in range(len(headings))
        )
    ]
    marks = ["---", *("---" if are else "---:" for are in are_words[1:])]
    return [
        f"| {' | '.join(map(str, headings))} |",
        f"|{'|'.join(marks)}|",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]


def percent(share: float | None, digits: int = 0, *, sign: bool = False) -> str:
    """Write a share in percent; nothing where there is none.

    >>> percent(0.123), percent(-0.05, 1, sign=True), percent(None)
    ('12 %', '-5.0 %', '')
    """
    if share is None or math.isnan(share):
        return ""
    return f"{100 * share:{'+' if sign else ''}.{digits}f} %"


def summarise(errors: Mapping[str, float]) -> dict[str, Any]:
    """Compute mean, median and worst of absolute errors by kernel."""
    worst = max(errors, key=lambda name: abs(errors[name]))
    absolute = np.abs(list(errors.values()))
    return {
        "kernels": len(errors),
        "mean": float(absolute.mean()),
        "median": float(np.median(absolute)),
        "worst": errors[worst],
        "worst_kernel": worst,
    }
