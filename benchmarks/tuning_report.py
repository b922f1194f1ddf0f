"""Table of the tuning benchmark, made from its result files.

Run ``python benchmarks/tuning_report.py``; writes ``summary-<clock>.md`` beside the result files.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

_CLOCKS = {
    "wall": "A configuration's time is its fastest run.",
    "cpu": "All times are processor times of all threads, since others used the machine; a "
    "configuration's is the median of its runs.",
}
RESULTS = Path(__file__).resolve().parent / "results" / "tuning"


def main() -> None:
    """Write the summaries."""
    for path in sorted(RESULTS.glob("compared-*.json")):
        print(write_summary(RESULTS, path.stem.partition("-")[2]))


def write_summary(folder: Path, clock: str) -> str:
    """Write ``summary-<clock>.md`` of a folder of results, and give its text."""
    content = json.loads((folder / f"compared-{clock}.json").read_text(encoding="utf-8"))
    rows = content["rows"]
    machine = content["machine"]
    lines = [
        "# Configurations chosen by models",
        "",
        f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['date']}, load "
        f"{machine['load_1_min']} when compared. Shares are of the best measured speed; times "
        f"count builds. {_CLOCKS[clock]} `Measured again`: the chosen and "
        "the best ones once more, in turn; the best of many noisy measurements is better on paper "
        "than in fact.",
        "",
        *_table(rows, content["top"]),
        "",
        *_search_table(rows, content["top"]),
    ]
    text = "\n".join(lines) + "\n"
    (folder / f"summary-{clock}.md").write_text(text, encoding="utf-8")
    return text


def _table(rows: list[dict[str, Any]], top: int) -> list[str]:
    lines = [
        f"| device | example | configurations | pick | best of top {top} | measured again: pick "
        f"| best of top {top} | best of all before | median configuration | rank correlation "
        "| models | exhaustive | times faster | hybrid pick | hybrid, times faster |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        hybrid, again = row.get("hybrid"), row["again"]
        lines.append(
            f"| {_short(row['device'])} | {row['example']} | {row['configurations']} "
            f"| {row['pick_share']:.0%} | {row['top_share']:.0%} | {again['pick_share']:.0%} "
            f"| {again['top_share']:.0%} | {again['exhaustive_share']:.0%} "
            f"| {row['median_share']:.0%} "
            f"| {row['rank_correlation']:.2f} | {row['models_s']:.1f} s "
            f"| {row['exhaustive_s']:.0f} s | {row['speedup']:.0f} "
            + (f"| {hybrid['pick_share']:.0%} | {hybrid['speedup']:.1f} |" if hybrid else "| | |")
        )
    for device in dict.fromkeys(row["device"] for row in rows):
        own = [row for row in rows if row["device"] == device]
        lines.append(_median_line(f"{_short(device)}, median", own))
    lines.append(_median_line("all, median", rows))
    return lines


def _median_line(name: str, rows: list[dict[str, Any]]) -> str:
    def of(key: str) -> float:
        return median(float(row[key]) for row in rows)

    def again(key: str) -> float:
        return median(float(row["again"][key]) for row in rows)

    hybrid = [row["hybrid"] for row in rows if row.get("hybrid")]
    tail = "| | |"
    if hybrid:
        pick = median(one["pick_share"] for one in hybrid)
        tail = f"| {pick:.0%} | {median(one['speedup'] for one in hybrid):.1f} |"
    return (
        f"| **{name}** | | | **{of('pick_share'):.0%}** | **{of('top_share'):.0%}** "
        f"| **{again('pick_share'):.0%}** | **{again('top_share'):.0%}** "
        f"| {again('exhaustive_share'):.0%} "
        f"| {of('median_share'):.0%} | {of('rank_correlation'):.2f} | {of('models_s'):.1f} s "
        f"| {of('exhaustive_s'):.0f} s | **{of('speedup'):.0f}** {tail}"
    )


def _search_table(rows: list[dict[str, Any]], top: int) -> list[str]:
    lines = [
        f"Ours measures its top {top}. The others are simulated from the same measured times: the "
        "median of random choice is computed, Kernel Tuner's searches ran 11 times each. `same "
        "time`: as many measurements as fit the time of ours.",
        "",
        f"| device | example | ours, top {top} | random, {top} | Kernel Tuner random, {top} "
        f"| Kernel Tuner Bayesian, {top} | same time: measurements | random | Kernel Tuner random "
        "| Kernel Tuner Bayesian |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        count, time = row["searches"]["same_count"], row["searches"]["same_time"]
        lines.append(
            f"| {_short(row['device'])} | {row['example']} | {row['top_share']:.0%} "
            f"| {_cells(count)} | {time['count']} | {_cells(time)} |"
        )
    return lines


def _cells(entry: dict[str, Any]) -> str:
    names = ("random", "kernel_tuner_random_sample", "kernel_tuner_bayes_opt")
    return " | ".join("-" if entry[one] is None else f"{entry[one]:.0%}" for one in names)


def _short(device: str) -> str:
    return device.partition("-")[0]


if __name__ == "__main__":
    main()
