"""What samples are worth by the clock and by the work of the device's threads, in turn.

Run ``python benchmarks/sample_clock.py DEVICE``; corpus kernels in an order drawn at random, until
the time is over. Each kernel is sampled both ways in turn between whole runs. Writes
``results/sample_clock/<device>.json`` and, from these files, ``summary.md``.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from machine import describe_machine

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.collection.kernel_task import KernelTask, find_sizes
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.weighing import sample_by_source
from kernelcast.models.linear import fit_linear
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.applications.loading import find_applications

FOLDER = Path(__file__).resolve().parent / "results" / "sample_clock"
ROUNDS = 4
LEAST_WORK_GROUPS = 256
# What both ways are used to after so long: an estimate rarely follows another at once.
PAUSE_S = 0.03
WAYS = ("clock", "work")


def main() -> None:
    """Measure a device, or only write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", help="an id or its beginning; none: only the table")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--goal", type=float, default=0.15, help="time of a whole run, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.device:
        measure(options.device, options.seconds, options.goal, options.seed)
    write_table()


def measure(wanted: str, seconds: float, goal_s: float, seed: int) -> None:
    """Sample kernels both ways until the time is over."""
    description, handle = choose_device(wanted, find_devices())
    sessions = {way: open_session(description, handle) for way in WAYS}
    sessions["clock"].timer.workers = None
    workers = sessions["work"].timer.workers
    rows = []
    end_s = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for kernel, suite in _shuffle(seed):
            if time.monotonic() > end_s:
                break
            try:
                problem = _size(sessions["clock"], kernel, suite, goal_s, Path(folder))
                if problem.ndrange.work_group_count < LEAST_WORK_GROUPS:
                    continue
                row = _measure_kernel(sessions, problem)
            except KernelcastError as error:
                print(f"{kernel.name}: left out: {str(error).splitlines()[0]}")
                continue
            rows.append({"kernel": kernel.name, **row})
            errors = {way: f"{_errors(row, way).mean():7.1%}" for way in WAYS}
            print(f"{kernel.name:40s} clock {errors['clock']}  work {errors['work']}", flush=True)
    result = {
        "device": description.id,
        "platform": description.platform,
        "machine": describe_machine(),
        "threads": len(workers.threads) if workers else 0,
        "with_caller": bool(workers and workers.with_caller),
        "pocl_affinity": os.environ.get("POCL_AFFINITY"),
        "goal_s": goal_s,
        "seed": [seed],
        "rows": rows,
    }
    path = FOLDER / f"{description.id}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _shuffle(seed: int) -> Iterator[tuple[CorpusKernel, str]]:
    kernels = [(kernel, app.suite) for app in find_applications() for kernel in app.kernels]
    random.Random(seed).shuffle(kernels)
    yield from kernels


def _size(
    session: DeviceSession, kernel: CorpusKernel, suite: str, goal_s: float, folder: Path
) -> Problem:
    """Choose the size at which a whole run takes about the goal."""
    settings = CollectionSettings(sizes=1, shortest_s=0.95 * goal_s, longest_s=1.05 * goal_s)
    task = KernelTask(
        kernel=kernel,
        suite=suite,
        device_id=session.description.id,
        settings=settings,
        cache_folder=folder,
    )
    sizes = {kernel.size.parameter: find_sizes(session, task)[0]}
    local_size = kernel.local_sizes[0]
    return prepare_launch(kernel, sizes, local_size=local_size, cache_folder=folder).problem


def _measure_kernel(sessions: dict[str, DeviceSession], problem: Problem) -> dict[str, Any]:
    """Estimate both ways in turn, who comes first in turn too; whole runs in between."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    whole: list[float] = []
    with (
        prepared_launch(sessions["clock"], problem, OpenCLLaunch, seed=0) as by_clock,
        prepared_launch(sessions["work"], problem, OpenCLLaunch, seed=0) as by_work,
    ):
        launches = {"clock": by_clock, "work": by_work}
        for one in launches.values():
            one.time_whole()  # what a first run leaves behind is another question
        for number in range(ROUNDS):
            for way in WAYS if number % 2 else reversed(WAYS):
                time.sleep(PAUSE_S)
                begin_s = time.perf_counter()
                plan = SamplingPlan(seed=number)
                run = sample_by_source(launches[way], plan, problem.kernel, problem.arguments)
                spent[way].append(time.perf_counter() - begin_s)
                found[way].append(fit_linear(run).seconds)
            whole += [one.time_whole() for one in launches.values()]
    return {"whole_s": whole, **{f"{way}_s": found[way] for way in WAYS},
            **{f"{way}_spent_s": spent[way] for way in WAYS}}  # fmt: skip


def _errors(row: dict[str, Any], way: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    whole_s = float(median(row["whole_s"]))
    return np.abs(np.array(row[f"{way}_s"], dtype=np.float64) / whole_s - 1)


def write_table() -> None:
    """Write the summary of all devices' files."""
    lines = [
        "# Samples by the clock and by the work of the device's threads",
        "",
        f"Corpus kernels, each sampled {ROUNDS} times each way in turn by the linear model with the"
        " default",
        "budget; error against the median of the whole runs in between. Noise: mean difference of a"
        " whole run",
        "from that median. Cost: host time of an estimate by work over that by the clock, median.",
        "",
        "| device | kernels | noise | clock: mean | median | 90th percentile |"
        " work: mean | median | 90th percentile | cost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    worst = []
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        rows = result["rows"]
        noise = np.mean([np.mean(np.abs(np.array(r["whole_s"]) / median(r["whole_s"]) - 1))
                         for r in rows])  # fmt: skip
        cells = []
        for way in WAYS:
            errors = np.concatenate([_errors(row, way) for row in rows])
            cells += [errors.mean(), float(np.median(errors)), float(np.percentile(errors, 90))]
        cost = median(median(r["work_spent_s"]) / median(r["clock_spent_s"]) for r in rows)
        shown = " | ".join(f"{cell:.1%}" for cell in cells)
        lines.append(f"| {result['device']} | {len(rows)} | {noise:.1%} | {shown} | {cost:.2f} |")
        by_error = sorted(rows, key=lambda row: -_errors(row, "work").mean())[:5]
        named = ", ".join(f"{r['kernel']} {_errors(r, 'work').mean():.0%}" for r in by_error)
        worst += ["", f"Worst by work on {result['device']}: {named}."]
    text = "\n".join([*lines, *worst]) + "\n"
    (FOLDER / "summary.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
