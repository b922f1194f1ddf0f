"""What accuracy buys: makespans of simulated clusters over the error of estimates.

Three clusters of up to 10,000 devices, one of them with a longer program too. Writes JSON under
benchmarks/results/cluster_simulation and the charts that docs/explanation/what-accuracy-buys.md
shows. Nothing runs on a device.

    python benchmarks/cluster_simulation.py [--validation FILE] [--only NAME]
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.cli.simulate.plot import save_simulation_plot
from kernelcast.scheduling.cluster.errors import lognormal_errors
from kernelcast.scheduling.cluster.graphs import Shape
from kernelcast.scheduling.cluster.study import (
    DEFAULT_ERRORS,
    Outcome,
    StudySettings,
    run_study,
)
from kernelcast.scheduling.cluster.validation import read_validation

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cluster_simulation"
PICTURES = ROOT / "docs" / "explanation" / "pictures"
FEWER_ERRORS = (0.05, 0.1, 0.2, 0.5)  # one run on 10,000 devices takes seconds
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


def main() -> None:
    """Simulate, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--validation", type=Path, help="report of a validation (JSON)")
    parser.add_argument("--only", choices=SIZES, help="one of the clusters")
    options = parser.parse_args()
    measured = read_validation(options.validation) if options.validation else []
    RESULTS.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in [options.only] if options.only else SIZES:
        shares = FEWER_ERRORS if SIZES[name]["repeats"] == 1 else DEFAULT_ERRORS
        errors = (*map(lognormal_errors, shares), *measured)
        settings = StudySettings(errors=errors, **SIZES[name])
        begun_s = time.perf_counter()
        outcomes = run_study(settings, report=_tell)
        took_s = time.perf_counter() - begun_s
        result = {
            "machine": describe_machine(),
            "settings": SIZES[name],
            "launches": settings.launches,
            "heterogeneity": settings.heterogeneity,
            "lookahead": settings.lookahead,
            "seconds": round(took_s, 1),
            "simulations": settings.simulations,
            "outcomes": [_describe(one) for one in outcomes],
        }
        path = RESULTS / f"{name}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        save_simulation_plot(PICTURES / f"simulation-{name}.svg", settings, outcomes)
        _print(name, outcomes, took_s)


def _tell(done: int, what: str) -> None:
    print(f"{done}: {what}", file=sys.stderr)


def _describe(one: Outcome) -> dict[str, object]:
    return {
        "shape": one.shape.value,
        "knowledge": one.label,
        "mean_error": one.mean_error,
        "ratio": round(one.ratio, 4),
        "least": round(min(one.ratios), 4),
        "most": round(max(one.ratios), 4),
        "over_lower_bound": [round(ratio, 4) for ratio in one.bound_ratios],
    }


def _print(name: str, outcomes: list[Outcome], took_s: float) -> None:
    labels = list(dict.fromkeys(one.label for one in outcomes))
    shapes = list(dict.fromkeys(one.shape for one in outcomes))
    print(f"\n{name}, {took_s:.0f} s", *shapes)
    for label in labels:
        ratios = {one.shape: one.ratio for one in outcomes if one.label == label}
        print(f"{label:28}", *(f"{ratios[shape]:8.3f}" for shape in shapes))


if __name__ == "__main__":
    main()
