"""What accuracy buys: makespans of simulated clusters over the error of estimates.

Three clusters of up to 10,000 devices, one of them with a longer program too. Writes JSON under
benchmarks/results/cluster_simulation and the charts that docs/explanation/what-accuracy-buys.md
shows. Nothing runs on a device.

    python benchmarks/cluster_simulation.py [--validation FILE] [--only NAME]
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from cluster_simulator import (
    ErrorModel,
    Estimates,
    History,
    Knowledge,
    Shape,
    make_cluster,
    make_graph,
    simulate,
)
from harness import write_json
from machine import describe_machine
from matplotlib.figure import Figure

from kernelcast.models.validation.report import report_from_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cluster_simulation"
PICTURES = ROOT / "docs" / "explanation" / "pictures"
ERRORS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
FEWER_ERRORS = (0.05, 0.1, 0.2, 0.5)  # one run on 10,000 devices takes seconds
LAUNCHES = 50
HETEROGENEITY = 0.5
LOOKAHEAD = 8
# A scheduler that knows little does better not to bind tasks early.
LATE = 2
SIZES: dict[str, dict[str, Any]] = {
    "10-devices": {"devices": 10, "tasks": 1000, "models": 5, "repeats": 5},
    "100-devices": {"devices": 100, "tasks": 5000, "models": 10, "repeats": 5},
    "100-devices-long": {"devices": 100, "tasks": 50_000, "models": 10, "repeats": 1},
    "10000-devices": {
        "devices": 10_000,
        "tasks": 100_000,
        "models": 20,
        "repeats": 1,
        "shapes": (Shape.INDEPENDENT, Shape.LAYERED),
    },
}
LINES = {"history, 1 run each": ("#228833", "--"), "history, 10 runs each": ("#228833", ":"),
         "no knowledge": ("#ee6677", "-.")}  # fmt: skip


def read_validation(path: Path) -> list[ErrorModel]:
    """Read the ratios of predicted to measured time of a validation's models."""
    rows = report_from_json(path.read_text(encoding="utf-8")).rows
    errors = []
    for model in rows.models:
        pairs = zip(model["seconds"], rows.measured_s, strict=True)
        ratios = tuple(predicted / measured for predicted, measured in pairs if predicted)
        mean_error = sum(abs(ratio - 1) for ratio in ratios) / len(ratios)
        errors.append(ErrorModel(model["model"], mean_error, ratios))
    return errors


def run_shape(size: dict[str, Any], shape: Shape, errors: Sequence[ErrorModel]) -> list[Any]:
    """Simulate every way of knowing on a shape: a row for each, with its ratios of all repeats."""
    rows: dict[str, dict[str, Any]] = {}
    for seed in range(size["repeats"]):
        drawn = {"devices": size["devices"], "launches": LAUNCHES, "seed": seed}
        graph = make_graph(shape, size["tasks"], **drawn)
        cluster = make_cluster(models=size["models"], heterogeneity=HETEROGENEITY, **drawn)
        times_s = cluster.times_s
        bound_s = cluster.lower_bound_s(graph)
        ways: list[tuple[str, ErrorModel | None, int, Knowledge]] = [
            ("perfect knowledge", None, LOOKAHEAD, Estimates(cluster, times_s))
        ]
        for error in errors:
            estimates_s = times_s * error.draw(times_s.shape, seed)
            label = f"estimates, {error.label}"
            ways.append((label, error, LOOKAHEAD, Estimates(cluster, estimates_s)))
        ways += [
            ("history, 1 run each", None, LATE, History(cluster, runs=1)),
            ("history, 10 runs each", None, LATE, History(cluster, runs=10)),
            ("no knowledge", None, LATE, Knowledge(cluster)),
        ]
        perfect_s = 0.0
        for label, way_error, lookahead, knowledge in ways:
            print(f"{shape}, {label}, seed {seed}", file=sys.stderr)
            took_s = simulate(graph, cluster, knowledge, lookahead)
            perfect_s = perfect_s or took_s  # perfect knowledge is the first way
            row = rows.setdefault(label, {"shape": shape, "knowledge": label, "error": way_error,
                                          "ratios": [], "bound_ratios": []})  # fmt: skip
            row["ratios"].append(took_s / perfect_s)
            row["bound_ratios"].append(took_s / bound_s)
    return [*rows.values()]


def draw(path: Path, size: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Draw one panel per shape: the curve over errors, lines for history and no knowledge."""
    shapes = [*dict.fromkeys(row["shape"] for row in rows)]
    figure = Figure(figsize=(10.4, 3.6 * len(shapes) / 2 + 0.5), layout="constrained")
    panels = figure.subplots(len(shapes) // 2, 2, squeeze=False).flat
    for axes, shape in zip(panels, shapes, strict=True):
        here = [row for row in rows if row["shape"] is shape]
        curve = [row for row in here if row["error"] and not row["error"].ratios]
        errors = [100 * row["error"].mean_error for row in curve]
        medians = [median(row["ratios"]) for row in curve]
        axes.plot(errors, medians, "o-", color="#4477aa", label="estimates")
        least, most = ([end(row["ratios"]) for row in curve] for end in (min, max))
        axes.fill_between(errors, least, most, color="#4477aa", alpha=0.2, linewidth=0)
        for row in here:
            label, error, ratio = row["knowledge"], row["error"], median(row["ratios"])
            if label in LINES:
                colour, style = LINES[label]
                axes.axhline(ratio, color=colour, linestyle=style, label=label)
            elif error and error.ratios:
                point = (100 * error.mean_error, ratio)
                axes.plot(*point, "*", color="#aa3377", markersize=11)
                axes.annotate(error.label, point, textcoords="offset points",
                              xytext=(6, 4), fontsize="small")  # fmt: skip
        axes.set_title(shape.value)
        axes.set_xlabel("mean error of estimates (%)")
        axes.set_ylabel("makespan / perfect knowledge")
        axes.legend(fontsize="small")
    figure.suptitle(
        f"{size['devices']:,} devices of {size['models']} models, {size['tasks']:,} tasks, "
        f"median of {size['repeats']}"
    )
    figure.savefig(path)


def main() -> None:
    """Simulate, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--validation", type=Path, help="report of a validation (JSON)")
    parser.add_argument("--only", choices=SIZES, help="one of the clusters")
    options = parser.parse_args()
    measured = read_validation(options.validation) if options.validation else []
    for name, size in SIZES.items():
        if options.only not in {None, name}:
            continue
        shares = FEWER_ERRORS if size["repeats"] == 1 else ERRORS
        errors = [*(ErrorModel(f"{share * 100:g} %", share) for share in shares), *measured]
        begun_s = time.perf_counter()
        shapes = size.get("shapes", Shape)
        rows = [row for shape in shapes for row in run_shape(size, shape, errors)]
        took_s = time.perf_counter() - begun_s
        result = {
            "machine": describe_machine(),
            "settings": size,
            "launches": LAUNCHES,
            "heterogeneity": HETEROGENEITY,
            "lookahead": LOOKAHEAD,
            "seconds": round(took_s, 1),
            "simulations": len(rows) * size["repeats"],
            "outcomes": [
                {
                    "shape": row["shape"],
                    "knowledge": row["knowledge"],
                    "mean_error": row["error"] and row["error"].mean_error,
                    "ratio": round(median(row["ratios"]), 4),
                    "least": round(min(row["ratios"]), 4),
                    "most": round(max(row["ratios"]), 4),
                    "over_lower_bound": [round(ratio, 4) for ratio in row["bound_ratios"]],
                }
                for row in rows
            ],
        }
        write_json(RESULTS / f"{name}.json", result)
        draw(PICTURES / f"simulation-{name}.svg", size, rows)
        print(f"\n{name}, {took_s:.0f} s", *shapes)
        for label in dict.fromkeys(row["knowledge"] for row in rows):
            ratios = [median(row["ratios"]) for row in rows if row["knowledge"] == label]
            print(f"{label:28}", *(f"{ratio:8.3f}" for ratio in ratios))


if __name__ == "__main__":
    main()
