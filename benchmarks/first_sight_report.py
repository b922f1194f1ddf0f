"""Writes what answers cost into the documents, from the results of `first_sight` and its service.

Run ``python benchmarks/first_sight_report.py``.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from first_sight_live import BARS_S, tell

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "first_sight"
PAGE = ROOT / "docs" / "how-to" / "schedule-with-estimates.md"
BEGIN, END = "<!-- first sight: begin -->", "<!-- first sight: end -->"
WAYS = {
    "command line, 1 GiB of buffers, first": "command line, first",
    "the same again, another process": "command line, again",
    "wrong kernel name": "command line, wrong name",
    "service, first": "service, first",
    "service, another size": "service, new size",
    "service, the same again": "service, kept",
}


def main() -> None:
    """Render the table."""
    live = [_read(one) for one in sorted(RESULTS.glob("live-*.json"))]
    names = " | ".join(f"`{one['device']}`" for one in live)
    lines = [f"| | {names} |", f"|---|{'---:|' * len(live)}"]
    for question in BARS_S:
        cells = " | ".join(_tell_live(one, question) for one in live)
        lines.append(f"| `Predictor`: {question} | {cells} |")
    for path in sorted(RESULTS.glob("ways-*.json")):
        result = _read(path)
        for name, key in WAYS.items():
            told = tell(median(result["seconds"]["this"][key]))
            ours = (one["device"].startswith(result["device"]) for one in live)
            lines.append(f"| {name} | {' | '.join(told if is_ours else '' for is_ours in ours)} |")
    block = "\n".join((BEGIN, "", *lines, "", END))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{block}{rest.partition(END)[2]}", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _tell_live(result: dict[str, Any], question: str) -> str:
    """Give median and 90th percentile over kernels."""
    times = np.array([one[question]["rest_s"] for one in result["rows"] if question in one])
    middle, most = np.quantile(times, (0.5, 0.9))
    return f"{tell(middle)}, {tell(most)}"


if __name__ == "__main__":
    main()
