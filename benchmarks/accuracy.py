"""Accuracy and cost of the linear model: predicted beside measured, per device.

For each problem and device, estimates and whole runs alternate (A B A B ...), so that a slow
phase of the machine hits both. Each device's results go into one JSON file with the machine's
description; ``accuracy_report.py`` makes the table and the figure from these files.

Run ``python benchmarks/accuracy.py`` for the examples, ``--set heldout`` for the kernels that the
estimator's authors did not look at, ``--device ID`` for one device only.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.devices import list_descriptions
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import open_session
from kernelcast.workers.process import VARIABLES

ROOT = Path(__file__).resolve().parent.parent
SETS = {"examples": ROOT / "examples", "heldout": ROOT / "benchmarks" / "heldout"}
RESULTS = ROOT / "benchmarks" / "results"
TIMEOUT_S = 600


def main() -> None:
    """Measure every problem on every device and write the results."""
    options = _read_options()
    if options.child:
        _run_child(Path(options.child), options.device[0], options.trials)
        return
    for description in list_descriptions():
        if options.device and not any(description.id.startswith(one) for one in options.device):
            continue
        rows = []
        for path in sorted(SETS[options.set].glob("*/*.yaml")):
            if options.only and path.stem not in options.only:
                continue
            row = _measure(path, description.id, options.trials)
            rows.append(row)
            print(_summarise(row), flush=True)
        _write(options.set, description.id, asdict(description), rows)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(SETS), default="examples")
    parser.add_argument("--device", action="append", default=[], help="id or its beginning")
    parser.add_argument("--only", action="append", default=[], help="name of a problem")
    parser.add_argument("--trials", type=int, default=5, help="estimates per problem")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(path: Path, device_id: str, trials: int) -> dict[str, Any]:
    """Measure one problem on one device in a process of its own."""
    command = [sys.executable, __file__, "--child", str(path), "--device", device_id]
    try:
        done = subprocess.run(
            [*command, "--trials", str(trials)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"problem": path.stem, "error_message": f"no end within {TIMEOUT_S} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"problem": path.stem, "error_message": done.stderr.strip()[-500:]}
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def _run_child(path: Path, device_id: str, trials: int) -> None:
    problem = read_problem(path)
    os.environ.update({**VARIABLES, **os.environ})  # as every estimate in a process of its own does
    try:
        session = open_session(*choose_device(device_id, find_devices()))
        accesses = infer_accesses(problem.kernel, len(problem.arguments))
        with prepared_problem(session, problem, seed=0, inferred=accesses) as launch:
            launch.time_whole()  # warms up, not counted
            estimates, whole_s = [], []
            for trial in range(trials):
                estimate, _ = sample_launch(
                    launch,
                    problem,
                    EstimateSettings(plan=SamplingPlan(seed=trial)),
                )
                estimates.append(estimate)
                whole_s.append(launch.time_whole())
            row: dict[str, Any] = {
                "problem": problem.name,
                "work_groups": launch.ndrange.work_group_count,
                "whole_seconds": whole_s,
                "trials": [
                    {
                        "seconds": one.seconds,
                        "low": one.low,
                        "high": one.high,
                        "sampling_seconds": one.sampling_seconds,
                        "overhead_seconds": one.overhead_seconds,
                        "estimates": one.estimates_s,
                    }
                    for one in estimates
                ],
            }
    except KernelcastError as error:
        row = {"problem": problem.name, "error_message": str(error)}
    print(json.dumps(row))


def _summarise(row: dict[str, Any]) -> str:
    if "error_message" in row:
        return f"{row['problem']:16s} {row['error_message'].splitlines()[0][:100]}"
    whole = sorted(row["whole_seconds"])[len(row["whole_seconds"]) // 2]
    errors = [trial["seconds"] / whole - 1 for trial in row["trials"]]
    cost = max(trial["sampling_seconds"] for trial in row["trials"]) / whole
    shown = " ".join(f"{error:+6.1%}" for error in errors)
    return f"{row['problem']:16s} {whole * 1e3:8.1f} ms  errors {shown}  cost at most {cost:.1%}"


def _write(name: str, device_id: str, device: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    folder = RESULTS / ("accuracy" if name == "examples" else f"accuracy-{name}")
    folder.mkdir(parents=True, exist_ok=True)
    content = {"device": device, "machine": describe_machine(), "rows": rows}
    path = folder / f"{device_id}.json"
    path.write_text(json.dumps(content, indent=1, default=sorted) + "\n", encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
