"""Table and picture of the balance benchmark, made from its result files.

Run ``python benchmarks/balance_report.py``; writes ``results/balance/summary.md`` and, for each
machine, ``ratios.png`` beside its result files.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent / "results" / "balance"
PAIRS = {
    "intel-pocl": "Intel's runtime and PoCL",
    "intel-unequal": "Intel's runtime twice, once without AVX",
    "intel-rusticl": "Intel's runtime and llvmpipe",
}
_WORST = 3
Row = dict[str, Any]


def main() -> None:
    """Write table and pictures."""
    machines = {
        folder.name: {
            name: json.loads(path.read_text(encoding="utf-8"))
            for name in PAIRS
            if (path := folder / f"{name}.json").exists()
        }
        for folder in sorted(RESULTS.iterdir())
        if folder.is_dir()
    }
    text = write_summary(machines)
    print(text)
    for device, pairs in machines.items():
        draw(RESULTS / device / "ratios.png", pairs)


def write_summary(machines: dict[str, dict[str, Row]]) -> str:
    """Write the table of all machines and pairs, and give its text."""
    lines = [
        "# Balanced launches beside the best static split and the better device",
        "",
        "Each device on one core. Times hold everything: sampling, correction, merging.",
        "Ratios are of medians of launches that took turns; `again` is the best static split,",
        "run once more in each turn, over its first: the noise floor, which a balancer",
        "that knows the best split would get. Median, 90th percentile and worst over kernels.",
        "",
        "| machine of | pair | kernels | to the best static split | again | balanced to again | "
        "to the better device | bit for bit a device's result |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for device, pairs in machines.items():
        lines += [_show(device, name, one["kernels"]) for name, one in pairs.items()]
    lines += ["", "Furthest from the best static split:", ""]
    for device, pairs in machines.items():
        for name, one in pairs.items():
            lines += _list_worst(f"{device}, {PAIRS[name]}", one["kernels"])
    text = "\n".join(lines) + "\n"
    (RESULTS / "summary.md").write_text(text, encoding="utf-8")
    return text


def _show(device: str, name: str, rows: Sequence[Row]) -> str:
    equal = sum(row["equality"] != "different" for row in rows)
    again = [row for row in rows if "again_to_static" in row]
    columns = (
        [row["to_static"] for row in rows],
        [row["again_to_static"] for row in again],
        [row["to_static"] / row["again_to_static"] for row in again],
        [row["to_single"] for row in rows],
    )
    spreads = " | ".join(_spread(values) for values in columns)
    return f"| {device} | {PAIRS[name]} | {len(rows)} | {spreads} | {equal} of {len(rows)} |"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{np.median(values):.2f}, {np.percentile(values, 90):.2f}, {max(values):.2f}"


def _list_worst(title: str, rows: Sequence[Row]) -> list[str]:
    worst = sorted(rows, key=lambda row: -row["to_static"])[:_WORST]
    told = "; ".join(
        f"{row['kernel']} {row['to_static']:.2f}"
        + (f" (again {row['again_to_static']:.2f})" if "again_to_static" in row else "")
        + f", {row['balanced_s']:.2f} s, {row['share']:.0%} on the first device, best "
        f"{row['best_static_share']:.0%}"
        for row in worst
    )
    return [f"- {title}: {told}."]


def draw(path: Path, pairs: dict[str, Row]) -> None:
    """Draw the ratios of each pair's kernels, from the best to the worst."""
    figure = Figure(figsize=(4.4 * max(1, len(pairs)), 3.6), layout="constrained")
    axes = figure.subplots(1, max(1, len(pairs)), sharey=True, squeeze=False)[0]
    for axis, (name, one) in zip(axes, pairs.items(), strict=False):
        _draw_pair(axis, one["kernels"])
        axis.set(title=PAIRS[name], xlabel="kernels, each line from best to worst")
    axes[0].set_ylabel("time over that of the best static split")
    axes[0].legend()
    figure.savefig(path, dpi=120)


def _draw_pair(axis: Axes, rows: Sequence[Row]) -> None:
    lines = {
        "balanced": [row["to_static"] for row in rows],
        "the best split again (noise)": [
            row["again_to_static"] for row in rows if "again_to_static" in row
        ],
        "the better device alone": [row["to_static"] / row["to_single"] for row in rows],
    }
    for (label, values), style in zip(lines.items(), ("o-", "x--", ":"), strict=True):
        if values:
            axis.plot(range(1, len(values) + 1), sorted(values), style, label=label)
    axis.axhline(1.0, color="grey", linewidth=0.8)
    axis.set(yscale="log")
    axis.set_yticks([0.9, 1.0, 1.1, 1.2, 1.5, 2.0], ["0.9", "1", "1.1", "1.2", "1.5", "2"])
    axis.minorticks_off()
    axis.grid(visible=True, alpha=0.3)


if __name__ == "__main__":
    main()
