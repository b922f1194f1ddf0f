"""One page of the GPU model against the V100's counters, and a picture, from the result files.

``python benchmarks/warpspeed_report.py`` reads what ``v100_volumes.py``, ``v100_time.py --write``,
``warpspeed_ranking.py`` and ``gpu_model_speed.py`` wrote, and writes ``summary.md`` and
``predicted_measured.png`` into ``benchmarks/results/v100_stencil``.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "v100_stencil"
HALVES = ("chosen", "reported")
VOLUMES = {
    "DRAM_to_L2": ("DRAM load", 0.025),
    "L2_to_L1": ("L2 load", 0.05),
    "L2_to_DRAM": ("DRAM store", 0.025),
    "L2_written": ("L2 writes", None),
}
MODELLED = "kernelcast, modelled volumes, {}"
MEASURED = "kernelcast, measured volumes, {}"
HONESTY = """\
The 40 clean records were sorted by local size. Constants were chosen on every second one
(*chosen*); the others (*reported*) took part in no fit. But several forms of the model were
compared while it was written, and both halves come from one kernel on one device: neighbours in the
list are alike. Figures for the reported half say how well constants carry over to other local
sizes, not to other kernels.
"""


def read(name: str) -> dict[str, Any]:
    """Read a result file."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def write_volumes(volumes: dict[str, Any]) -> list[str]:
    """Write the mean absolute errors of bytes."""
    lines = [
        "## Volumes: mean absolute error",
        "",
        "| | chosen | reported | asked |",
        "|---|---|---|---|",
    ]
    for key, (title, goal) in VOLUMES.items():
        errors = [f"{volumes[half]['mean_absolute_errors'][key]:.2%}" for half in HALVES]
        lines.append(f"| {title} | {' | '.join(errors)} | {f'{goal:.1%}' if goal else '-'} |")
    return lines


def write_time(times: dict[str, Any]) -> list[str]:
    """Write what is asked of run times."""
    rows = {
        "mean absolute error": ("mean_absolute_error", ".1%", "10 %"),
        "bias": ("bias", "+.1%", "-"),
        "worst error": ("worst_error", "+.1%", "-"),
        "Kendall tau": ("kendall_tau", ".3f", "0.9"),
        "speed of the predicted best / best": ("share_of_best", ".1%", "97 %"),
    }
    columns = [MODELLED.format(one) for one in (*HALVES, "all")]
    columns += [MEASURED.format(one) for one in HALVES]
    lines = [
        "## Run time", "",
        "| | chosen | reported | all | chosen, volumes measured | reported, likewise | asked |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for title, (key, form, goal) in rows.items():
        found = " | ".join(format(times[one][key], form) for one in columns)
        lines.append(f"| {title} | {found} | {goal} |")
    old = times["paper-2022, modelled volumes, all"]
    lines += [
        "",
        "The paper's plain maximum of FP, L1, L2 and DRAM with our volumes, all records: "
        f"{old['mean_absolute_error']:.1%} (bias {old['bias']:+.1%}, "
        f"tau {old['kendall_tau']:.2f}).",
    ]
    return lines


def write_ranking(ranking: dict[str, Any]) -> list[str]:
    """Write where the paper's configurations stand."""
    lines = [
        "## The paper's pick on the A100", "",
        "Work-groups of 1024, no folding, 2y or 2z. The paper ranks (16,2,32) folded 2z first and "
        "measured (64,4,4) folded 2z as the fastest, 4 % ahead.", "",
        "| hit rates | first | (16,2,32) 2z | (64,4,4) 2z |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, one in ranking.items():
        if isinstance(one, dict):
            first, count = one["first"][0], one["configurations"]
            places = [
                f"rank {row['rank']} of {count}, {row['share_of_first']:.1%} of the first"
                for key, row in one.items() if key.startswith("best")
            ]  # fmt: skip
            label = f"{tuple(first['local_size'])}, folded {first['fold']}"
            lines.append(f"| {name} | {label} | {' | '.join(places)} |")
    return lines


def write_speed(speed: dict[str, Any]) -> list[str]:
    """Write CPU times by grid size."""
    sides = [str(one) for one in speed["sides"]]
    lines = [
        "## Speed: CPU ms per configuration, by grid side", "",
        f"| stencil | local size | {' | '.join(sides)} | asked |",
        f"|---|---|{'---|' * len(sides)}---|",
    ]  # fmt: skip
    for row in speed["rows"]:
        times = " | ".join(f"{row['cpu_ms_by_side'][side]:.1f}" for side in sides)
        size = "x".join(map(str, row["local_size"]))
        lines.append(f"| {row['stencil']} | {size} | {times} | {row['goal_ms']:.0f} |")
    sweep = speed["sweep"]
    lines += [
        "",
        f"A sweep of {sweep['local_sizes']} local sizes takes {sweep['cpu_s']:.2f} s of CPU time "
        f"(asked: {sweep['goal_s']:.2g} s). The machine was shared with other work meanwhile.",
    ]
    return lines


def draw(volumes: dict[str, Any], times: dict[str, Any], target: Path) -> None:
    """Draw predicted over measured: three volumes and the run time."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 4), layout="constrained")
    sizes = [[tuple(row["local_size"]) for row in volumes[half]["records"]] for half in HALVES]
    for axis, key in zip(axes, VOLUMES, strict=False):
        for half, colour in zip(HALVES, ("tab:grey", "tab:blue"), strict=True):
            rows = volumes[half]["records"]
            axis.scatter(
                [row["measured"][key] for row in rows], [row["predicted"][key] for row in rows],
                s=14, c=colour, label=half,
            )  # fmt: skip
        axis.set_title(f"{VOLUMES[key][0]}, B/update")
    rows = {tuple(row["local_size"]): row for row in times["records, modelled volumes"]}
    for own, colour, half in zip(sizes, ("tab:grey", "tab:blue"), HALVES, strict=True):
        axes[3].scatter(
            [1e3 * rows[size]["measured_s"] for size in own],
            [1e3 * rows[size]["predicted_s"] for size in own], s=14, c=colour, label=half,
        )  # fmt: skip
    axes[3].set_title("run time, ms")
    for axis in axes:
        low, high = axis.get_xlim()
        axis.axline((low, low), (high, high), color="black", linewidth=0.7)
        axis.set_xlabel("measured")
    axes[0].set_ylabel("predicted")
    axes[0].legend()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main() -> None:
    """Write the page and the picture."""
    volumes, times = read("v100_stencil/volumes.json"), read("v100_stencil/time.json")
    parts = [
        ["# GPU model: 3D 25-point stencil, double precision, 640x512x512", "",
         "V100 counters of the Warpspeed project. Made by `benchmarks/warpspeed_report.py`.", "",
         *HONESTY.splitlines(), "", "![predicted over measured](predicted_measured.png)"],
        write_volumes(volumes),
        write_time(times),
        write_ranking(read("v100_stencil/ranking.json")),
        write_speed(read("gpu_model_speed/speed.json")),
    ]  # fmt: skip
    text = "\n\n".join("\n".join(part) for part in parts) + "\n"
    (FOLDER / "summary.md").write_text(text, encoding="utf-8")
    draw(volumes, times, FOLDER / "predicted_measured.png")
    print(text)


if __name__ == "__main__":
    main()
