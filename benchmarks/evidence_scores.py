"""Scores of lines of evidence, over all rows and by what rows are like."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from evidence_rows import Stored

from kernelcast.models.evidence.calibration import EvidenceRow

MAIN = "two moments"
CLASSES = (0.0, 0.02, 0.04, 0.08, math.inf)
"""Of the noise of a row's whole runs."""
Told = tuple[float, float, bool]
"""ln error, half width of the interval, and whether it holds the measured time."""
Lines = dict[str, dict[int, Told]]


def summarise(told: Mapping[int, Told]) -> dict[str, Any]:
    """Score a line, and what its intervals hold."""
    errors, widths, inside = (np.array(one) for one in zip(*told.values(), strict=True))
    answered = np.isfinite(errors)
    return {
        **score(errors[answered]),
        "without_answer": int((~answered).sum()),
        "held": float(inside[answered].mean()),
        "half_width": float(np.median(widths[answered])),
    }


def score(errors: np.ndarray) -> dict[str, float]:
    """Give mean, median and the rest of relative errors, of errors in ln."""
    sizes = np.abs(np.expm1(np.clip(errors, -20.0, 20.0)))
    return {
        "answers": len(sizes),
        "mean": float(sizes.mean()),
        "median": float(np.median(sizes)),
        "p90": float(np.quantile(sizes, 0.9)),
        "worst": float(sizes.max()),
        "bias": float(np.median(errors)),
    }


DIVIDED = (
    "set 0", MAIN, f"{MAIN}, corrected", f"{MAIN}, three other sizes",
    "no sampling, three other sizes", "no sampling, all other sizes",
)  # fmt: skip


def _take(lines: Lines, wanted: Callable[[int], bool]) -> dict[str, dict[str, float]]:
    found = {}
    for name in DIVIDED:
        errors = np.array([one[0] for place, one in lines[name].items() if wanted(place)])
        if len(errors):
            found[name] = score(errors)
    return found


def divide_by_noise(
    stored: Sequence[Stored], lines: Lines, whole: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Divide by the noise of a row's whole runs."""
    noise = [one.observation.runs.noise or 0.0 for one in stored]
    found = []
    for low, high in pairwise(CLASSES):
        places = {place for place, one in enumerate(noise) if low <= one < high}
        runs = [whole[place] for place in places if len(whole[place])]
        if runs:
            found.append({
                "from": low, "to": None if math.isinf(high) else high, "rows": len(places),
                "one whole run for the others": score(np.concatenate(runs)),
                **_take(lines, places.__contains__),
            })  # fmt: skip
    return found


def divide_by_evenness(stored: Sequence[Stored], lines: Lines) -> dict[str, Any]:
    """Divide by whether work was found to be even."""
    return {
        name: _take(lines, lambda place, even=even: stored[place].is_even is even)  # type: ignore[misc]  # bound now
        for name, even in (("even", True), ("uneven", False))
    }


def divide_by_age(rows: Sequence[EvidenceRow], lines: Lines) -> dict[str, Any]:
    """Divide by whether another size was measured within an hour."""
    times: dict[str, list[float]] = defaultdict(list)
    for one in rows:
        times[one.kernel].append(one.size.at_s)
    recent = [
        sum(abs(at_s - one.size.at_s) < 3600.0 for at_s in times[one.kernel]) > 1 for one in rows
    ]
    return {
        name: _take(lines, lambda place, wanted=wanted: recent[place] is wanted)  # type: ignore[misc]  # bound now
        for name, wanted in (("another size within an hour", True), ("none", False))
    }
