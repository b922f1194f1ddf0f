"""How far the analytic CPU model is off on kernels that no rule was made for.

Rows are those of ``results/unseen_launches`` (by ``unseen_launches.py``) whose
loops the source ends; intervals are wider for others. Their errors are held against the half widths
of 90 % that the corpus asks for on their runtime. The factor between both is one for all runtimes,
each kernel weighing the same; to judge it, it is found without the kernel that is asked.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelcast.models.conformal import Calibration
from kernelcast.models.evidence.analytic_errors import calibrate_errors, find_half_width
from kernelcast.training.registry import name_runtime

FOLDER = Path(__file__).resolve().parent / "results/unseen_launches"
COVERAGE = 0.9
_SAME = 1.01
"""Between the factors of two intervals that nothing about the launch has widened."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A launch of a kernel that no rule was made for."""

    kernel: str
    device: str
    error: float
    """Logarithm of the measured over the analytic time."""
    share: float
    """Of the half width that the corpus asks for."""


def read_unseen(corpus: Mapping[str, Calibration]) -> list[Unseen]:
    """Read what was measured, beside intervals of the corpus alone."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        device = result["device"]
        width = find_half_width(corpus[name_runtime(device)], COVERAGE)
        rows = [one for one in result["rows"] if "told_s" in one.get("static", {})]
        usual = min(one["static"]["high_s"] / one["static"]["told_s"] for one in rows)
        for one in rows:
            static = one["static"]
            if static["high_s"] / static["told_s"] <= _SAME * usual:
                error = math.log(one["whole"]["measured_s"] / static["told_s"])
                found.append(Unseen(one["name"], device, error, error / width))
    return found


def find_factor(rows: Sequence[Unseen]) -> float:
    """Give the factor by which intervals of the corpus have to be wider."""
    shares = calibrate_errors(np.array([one.share for one in rows]), [one.kernel for one in rows])
    return find_half_width(shares, COVERAGE)


def judge_unseen(rows: Sequence[Unseen]) -> dict[str, Any]:
    """Judge times, intervals of the corpus, and wider ones, by device."""
    without = {
        kernel: find_factor([one for one in rows if one.kernel != kernel])
        for kernel in {one.kernel for one in rows}
    }
    found: dict[str, Any] = {"factor": find_factor(rows)}
    for device in [*sorted({one.device for one in rows}), "all"]:
        own = [one for one in rows if device in (one.device, "all")]
        logs, shares = (
            np.array([getattr(one, name) for one in own]) for name in ("error", "share")
        )
        found[device] = {
            "rows": len(own),
            "median": float(np.median(np.abs(np.expm1(-logs)))),
            "within_2": float(np.mean(np.abs(logs) <= math.log(2))),
            "bias": math.exp(-float(np.median(logs))),
            "corpus_holds": float(np.mean(np.abs(shares) <= 1)),
            "wider_holds": float(np.mean([abs(one.share) <= without[one.kernel] for one in own])),
        }
    return found


def render_unseen(found: Mapping[str, Any]) -> list[str]:
    """Give a table."""
    return [
        "| device | kernels | median error | within a factor 2 | predicted over measured, median "
        "| 90 % intervals of the corpus hold | wider ones hold |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(f"| {device} | {one['rows']} | {100 * one['median']:.0f}% | {100 * one['within_2']:.0f}% "
          f"| {one['bias']:.2f} | {100 * one['corpus_holds']:.0f}% "
          f"| {100 * one['wider_holds']:.0f}% |"
          for device, one in found.items() if device != "factor"),
        "",
        f"The wider ones are {found['factor']:.2f} times as wide, in logarithms.",
    ]  # fmt: skip
