"""Table and figure of the accuracy benchmark, made from its result files.

Run ``python benchmarks/accuracy_report.py [--set heldout]``; writes ``summary.md`` and
``errors.png`` beside the result files. The figure follows Fig. 11 of the sampling paper: one bar
per kernel, the noise of repeated whole runs beside it.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from harness import RESULTS, read_json, replace_block, write_text

mpl.use("Agg")
from matplotlib import pyplot as plt

PAGE = RESULTS.parent.parent / "docs" / "explanation" / "accuracy.md"
FOLDERS = {"examples": "accuracy", "heldout": "accuracy-heldout"}
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
SHORTEST_S = 0.1
FEWEST_WORK_GROUPS = 256
WORST_SHOWN = 5


def main() -> None:
    """Render all result files of one set, and the page's overview of all sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(FOLDERS), default="examples")
    chosen = parser.parse_args().set
    folder = RESULTS / FOLDERS[chosen]
    files = _read(folder)
    text = "\n".join(_table(content) for content in files)
    write_text(folder / "summary.md", f"# Accuracy: {chosen}", "", text)
    _draw(files, folder / "errors.png")
    _write_overview()
    print(text)


def _read(folder: Path) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted(folder.glob("*.json"))]


def _write_overview() -> None:
    """Put one row per set and device between the page's markers."""
    lines = [
        "| kernels | device | mean error | median | worst | single estimates: median "
        "| sampling cost: median | noise: mean |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, folder in FOLDERS.items():
        for content in _read(RESULTS / folder):
            rows = [_figures(row) for row in content["rows"] if "trials" in row]
            rows = [row for row in rows if row["counts"]]
            errors = np.abs([row["median_error"] for row in rows])
            single = np.abs(np.concatenate([row["errors"] for row in rows]))
            lines.append(
                f"| {name} ({len(rows)}) | {content['device']['platform']} | {errors.mean():.1%} "
                f"| {np.median(errors):.1%} | {errors.max():.0%} | {np.median(single):.1%} "
                f"| {np.median([row['cost'] for row in rows]):.1%} "
                f"| {np.mean([row['noise'] for row in rows]):.1%} |"
            )
    replace_block(PAGE, BEGIN, END, ["", *lines, ""])


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    """Derive a row's figures: errors of single estimates, noise, cost, coverage."""
    whole = np.array(row["whole_seconds"])
    measured = float(np.median(whole))
    predicted = np.array([trial["seconds"] for trial in row["trials"]])
    low, high = np.quantile(whole, [0.1, 0.9])
    inside = [trial["low"] <= measured <= trial["high"] for trial in row["trials"]]
    spent = np.array([trial["sampling_seconds"] for trial in row["trials"]])
    overhead = np.array([trial["overhead_seconds"] for trial in row["trials"]])
    return {
        "problem": row["problem"],
        "measured": measured,
        "noise": (high - low) / 2 / measured,
        "errors": predicted / measured - 1,
        "median_error": float(np.median(predicted)) / measured - 1,
        "cost": float(np.median(spent)) / measured,
        "most_cost": float(spent.max()) / measured,
        "overhead": float(np.median(overhead)),
        "coverage": float(np.mean(inside)),
        "counts": measured >= SHORTEST_S and row["work_groups"] >= FEWEST_WORK_GROUPS,
    }


def _table(content: dict[str, Any]) -> str:
    device, machine = content["device"], content["machine"]
    rows = [_figures(row) for row in content["rows"] if "trials" in row]
    failed = [row for row in content["rows"] if "error_message" in row]
    lines = [
        f"## {device['id']}",
        "",
        f"{device['name']}, {device['platform']} {device['driver']}; {machine['processor']}, "
        f"{machine['cores']} cores; {machine['date']}, load {machine['load_1_min']}.",
        "",
        "| kernel | measured | noise | error (median) | single estimates | cost | in 90 % |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    lines += [
        f"| {row['problem']}{'' if row['counts'] else ' (below 0.1 s)'} "
        f"| {row['measured'] * 1e3:.0f} ms | {row['noise']:.1%} | {row['median_error']:+.1%} "
        f"| {' '.join(f'{error:+.0%}' for error in row['errors'])} "
        f"| {row['cost']:.1%} | {row['coverage']:.0%} |"
        for row in rows
    ]
    lines += [""] + [
        f"- not run: {row['problem']}: {row['error_message'].splitlines()[0]}" for row in failed
    ]
    counted = [row for row in rows if row["counts"]]
    return "\n".join([*lines, "", *_summary(counted), ""])


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["No kernel of at least 0.1 s and 256 work-groups."]
    single = np.abs(np.concatenate([row["errors"] for row in rows]))
    middle = np.abs([row["median_error"] for row in rows])
    worst = sorted(rows, key=lambda row: -abs(row["median_error"]))[:WORST_SHOWN]
    noise = np.array([row["noise"] for row in rows])
    return [
        f"Kernels of at least 0.1 s and 256 work-groups: {len(rows)}.",
        "",
        "| absolute error | mean | median | 90th percentile | worst |",
        "|---|---:|---:|---:|---:|",
        _quantiles(f"median of {len(rows[0]['errors'])} estimates", middle),
        _quantiles("single estimates", single),
        _quantiles("noise of whole runs", noise),
        "",
        f"Sampling cost: median {np.median([row['cost'] for row in rows]):.1%}, most "
        f"{max(row['most_cost'] for row in rows):.1%}. Intervals meant to hold 90 % hold "
        f"{np.mean([row['coverage'] for row in rows]):.0%}.",
        "",
        "Worst: " + ", ".join(f"{row['problem']} {row['median_error']:+.0%}" for row in worst)
        + ".",
    ]  # fmt: skip


def _quantiles(name: str, values: np.ndarray) -> str:
    return (
        f"| {name} | {values.mean():.1%} | {np.median(values):.1%} "
        f"| {np.quantile(values, 0.9):.1%} | {values.max():.1%} |"
    )


def _draw(files: list[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(
        len(files), 1, figsize=(11, 3.2 * len(files)), squeeze=False, layout="constrained"
    )
    for axis, content in zip(axes[:, 0], files, strict=True):
        rows = [_figures(row) for row in content["rows"] if "trials" in row]
        places = np.arange(len(rows))
        errors = [100 * abs(row["median_error"]) for row in rows]
        axis.bar(places - 0.2, errors, 0.4, label="error, median of the estimates")
        axis.bar(
            places + 0.2, [100 * row["noise"] for row in rows], 0.4, color="0.7",
            label="noise of whole runs",
        )  # fmt: skip
        for place, row in zip(places, rows, strict=True):
            single = 100 * np.abs(row["errors"])
            axis.plot(np.full(len(single), place - 0.2), single, "k.", markersize=3)
        axis.set_xticks(places, [row["problem"] for row in rows], rotation=35, ha="right")
        axis.set_ylabel("error in %")
        axis.set_ylim(0, min(60, max(20, 1.1 * max(errors, default=20))))
        axis.set_title(f"{content['device']['platform']}: {content['device']['name']}")
        axis.axhline(8, color="tab:red", linewidth=0.8, linestyle="--")
        axis.legend(loc="upper right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
