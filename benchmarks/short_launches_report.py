"""Writes what `short_launches` has measured as tables."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
NEAR = 1.4
"""Factor within which an answer is called near."""
WORST = 10
LENGTHS = (
    ("below 1 ms", 0.0, 1e-3),
    ("1 to 10 ms", 1e-3, 1e-2),
    ("above 10 ms", 1e-2, float("inf")),
    ("all", 0.0, float("inf")),
)
HEAD = """# First answers of short launches

Kernels of kinds that no calibration holds; one answer of a predictor that knows nothing, beside
the 20 % quantile of whole runs, less what their threads waited for processors. *Near*: within a
factor of 1.4. *Bias*: median of told by measured. *Holds*: whole runs inside intervals for 90 %.
*First run*, *second run*: what these whole runs say of the rest, median error and share near.
Written by `benchmarks/short_launches.py`.
"""

Row = dict[str, Any]


def folder_of(chosen: str) -> Path:
    """Give the folder of results of a set of kernels."""
    folder = RESULTS / chosen.replace("_kernels", "_launches")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_summary(chosen: str) -> str:
    """Write and give the summary of all devices about a set of kernels."""
    folder = folder_of(chosen)
    results = [json.loads(one.read_text(encoding="utf-8")) for one in sorted(folder.glob("*.json"))]
    text = "\n".join([HEAD, *(line for one in results for line in describe_device(one))])
    (folder / "summary.md").write_text(text, encoding="utf-8")
    return text


def describe_device(result: dict[str, Any]) -> Iterator[str]:
    """Give the lines about a device."""
    machine = result["machine"]
    rows = [one for one in result["rows"] if "error" not in one]
    yield f"## {result['device']}\n"
    yield (
        f"{machine['processor']}, {machine['cores']} cores, kernelcast "
        f"{machine['versions']['kernelcast']}, {machine['date']}; load {machine['load_1_min']} "
        "when it began.\n"
    )
    if not rows:
        yield "No kernel was measured.\n"
        return
    yield from list_lengths(rows)
    yield ""
    yield from list_worst(rows)
    yield ""
    yield from describe_static(rows)
    for one in result["rows"]:
        if "error" in one:
            yield f"No answer: {one['name']}, {one['error']}\n"


def list_lengths(rows: Sequence[Row]) -> Iterator[str]:
    """Give the table by length of the launch."""
    yield "| launches | number | median error | near | bias | holds | first run | second run |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, least_s, most_s in LENGTHS:
        chosen = [one for one in rows if least_s <= one["whole"]["measured_s"] < most_s]
        if not chosen:
            continue
        factors = compare(chosen, "answer")
        runs = " | ".join(
            "{}, {}".format(
                *score([one["whole"][key] / one["whole"]["measured_s"] for one in chosen])
            )
            for key in ("first_s", "second_s")
        )
        cells = (name, str(len(chosen)), *score(factors), f"{np.median(factors):.2f}")
        yield f"| {' | '.join(cells)} | {share(list_held(chosen, 'answer'))} | {runs} |"


def list_worst(rows: Sequence[Row]) -> Iterator[str]:
    """Give the table of the answers that are farthest off."""
    yield "| farthest off | measured | told by measured | interval | spread of whole runs |"
    yield "|---|---:|---:|---:|---:|"
    factors = dict(zip((one["name"] for one in rows), compare(rows, "answer"), strict=True))
    for one in sorted(rows, key=lambda row: -abs(np.log(factors[row["name"]])))[:WORST]:
        measured_s, answer = one["whole"]["measured_s"], one["answer"]
        low, high = answer["low_s"] / measured_s, answer["high_s"] / measured_s
        yield (
            f"| {one['name']} | {1e3 * measured_s:.3g} ms | {factors[one['name']]:.2f} "
            f"| {low:.2f} to {high:.2f} | {one['whole']['spread']:.2f} |"
        )


def describe_static(rows: Sequence[Row]) -> Iterator[str]:
    """Say in one line how answers that run nothing do."""
    asked = [one for one in rows if "static" in one]
    answered = [one for one in asked if "error" not in one["static"]]
    if not asked:
        yield "Static answers: none, the device was not calibrated.\n"
    elif not answered:
        yield f"Static answers: for none of {len(asked)}.\n"
    else:
        factors = compare(answered, "static")
        error, near = score(factors)
        yield (
            f"Static answers, calibrated: for {len(answered)} of {len(asked)}; median error "
            f"{error}, near {near}, bias {np.median(factors):.2f}, "
            f"holds {share(list_held(answered, 'static'))}.\n"
        )


def compare(rows: Iterable[Row], key: str) -> list[float]:
    """Give what was told by what was measured."""
    return [one[key]["told_s"] / one["whole"]["measured_s"] for one in rows]


def list_held(rows: Iterable[Row], key: str) -> list[bool]:
    """Give whether intervals hold what was measured."""
    return [one[key]["low_s"] <= one["whole"]["measured_s"] <= one[key]["high_s"] for one in rows]


def score(factors: Sequence[float]) -> tuple[str, str]:
    """Give median error and share of those that are near."""
    error = float(np.median(np.abs(np.array(factors) - 1)))
    return f"{100 * error:.0f} %", share([1 / NEAR <= one <= NEAR for one in factors])


def share(those: Sequence[bool]) -> str:
    """Give the share that holds."""
    return f"{100 * sum(those) / len(those):.0f} %"
