"""How well estimates foretell launches while other programs are at work.

Run ``python -m benchmarks busy_machine DEVICE`` (at most six minutes; it keeps all processors
busy): examples, then corpus kernels in an order drawn at random, each in turn on the machine as it
is, and with one and two programs beside it that compute without end, in the program's own session
or in another (schedulers share processors out by sessions). What an estimate says of the time now
is held against two whole runs right after it. Writes ``results/busy_machine/<device>.json`` and,
from these files, ``summary.md``; without a device only the latter.

The uncertainty of a slowdown was chosen on the examples of ``CHOSEN_ON``, which are not judged.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from harness import RESULTS, make_table, read_json, write_result, write_text

from kernelcast.collection.collection import KernelTask
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.collection.kernel_task import find_sizes
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file.reader import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.records.samples import join_moments
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import find_applications

FOLDER = RESULTS / "busy_machine"
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CHOSEN_ON = ("triad", "mandelbrot", "convolution", "nbody", "transpose")
JUDGED = ("matmul_tiled", "stencil2d", "stencil3d", "spmv_csr", "reduction", "histogram",
          "grid_stride", "transcendental", "triangular", "inplace_update")  # fmt: skip
COUNTS = (0, 1, 2)
WHOLE_RUNS = 2
LEAST_WORK_GROUPS = 256
# Longer ones, llvmpipe's, would leave time for a handful of kernels.
LONGEST_S = 2.0
GOAL_S = 0.15
# What begins has begun, and what has ended is gone.
PAUSE_S = 0.3
COMPUTE = "while True: pass"
COVERAGE = 0.9
HEADINGS = ("device", "programs", "estimates", "slowdown", "seen", "by samples", "alone, median",
            "now, median", "mean", "inside", "warned", "host time, median")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", help="an id or its beginning; none: only the table")
    parser.add_argument("--seconds", type=float, default=330.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--choose", action="store_true", help="the examples chosen on, no files")
    options = parser.parse_args()
    if options.device:
        measure(options.device, options.seconds, options.seed, chooses=options.choose)
    if not options.choose:
        print(write_table())


def measure(wanted: str, seconds: float, seed: int, *, chooses: bool) -> None:
    description, handle = choose_device(wanted, find_devices())
    session = open_session(description, handle)
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    end_s = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for name, problem in _list_problems(session, rng, Path(folder), chooses=chooses):
            if time.monotonic() > end_s:
                break
            if problem.ndrange.work_group_count < LEAST_WORK_GROUPS:
                continue
            try:
                found = list(_measure_kernel(session, name, problem, rng))
            except KernelcastError as error:
                print(f"{name}: left out: {str(error).splitlines()[0]}", flush=True)
                continue
            rows += found
            left_s = end_s - time.monotonic()
            print(f"{name:36s} {' | '.join(map(_describe, found))}  {left_s:4.0f} s left",
                  flush=True)  # fmt: skip
    if chooses:
        print("\n".join(make_table(HEADINGS, list_cells(description.id, rows))))
        return
    result = {
        "device": description.id, "platform": description.platform, "coverage": COVERAGE,
        "seed": seed, "rows": rows,
    }  # fmt: skip
    write_result(FOLDER / f"{description.id}.json", result)


def _list_problems(
    session: DeviceSession, rng: random.Random, folder: Path, *, chooses: bool
) -> Iterator[tuple[str, Problem]]:
    """Give examples, then corpus kernels of the size that takes about the goal."""
    names = list(CHOSEN_ON if chooses else JUDGED)
    rng.shuffle(names)
    for name in names:
        yield name, read_problem(EXAMPLES / name / f"{name}.yaml")
    if chooses:
        return
    kernels = [kernel for app in find_applications() for kernel in app.kernels]
    rng.shuffle(kernels)
    settings = CollectionSettings(sizes=1, shortest_s=0.9 * GOAL_S, longest_s=1.1 * GOAL_S)
    for kernel in kernels:
        task = KernelTask(
            kernel=kernel,
            device_id=session.description.id,
            settings=settings,
            cache_folder=folder,
        )
        try:
            sizes = {kernel.size.parameter: find_sizes(session, task)[0]}
            local_size = kernel.local_sizes[0]
            launch = prepare_launch(kernel, sizes, local_size=local_size, cache_folder=folder)
        except KernelcastError as error:
            print(f"{kernel.name}: left out: {str(error).splitlines()[0]}", flush=True)
            continue
        yield kernel.name, launch.problem


def _measure_kernel(
    session: DeviceSession, name: str, problem: Problem, rng: random.Random
) -> Iterator[dict[str, Any]]:
    """Estimate and run beside none, one and two programs, in an order drawn at random."""
    settings = EstimateSettings(coverage=COVERAGE)
    with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
        if launch.time_whole() > LONGEST_S:
            return
        for count in rng.sample(COUNTS, len(COUNTS)):
            is_own_session = bool(rng.getrandbits(1))
            with computing(count, is_own_session=is_own_session):
                begin_s = time.perf_counter()
                sampled = sample_launch(
                    launch, problem.kernel, settings, arguments=problem.arguments
                )
                spent_s = time.perf_counter() - begin_s
                whole_s = [launch.time_whole() for _ in range(WHOLE_RUNS)]
            estimate, run = sampled.estimate, join_moments(sampled.runs)
            seen = run.contention
            expected = estimate.expected
            yield {
                "kernel": name,
                "programs": count,
                "is_own_session": is_own_session,
                "whole_s": whole_s,
                "alone_s": estimate.seconds,
                "now_s": expected.seconds,
                "low_s": expected.low,
                "high_s": expected.high,
                "slowdown": 1.0 if seen is None else seen.slowdown,
                "others": 0.0 if seen is None else seen.others,
                "has_warned": estimate.now is not None,
                "spent_s": spent_s,
                "clocks": [[x.duration_s, x.clock_s] for x in run.launches if x.clock_s],
            }


@contextmanager
def computing(count: int, *, is_own_session: bool) -> Iterator[None]:
    command = [sys.executable, "-S", "-c", COMPUTE]
    programs = [
        subprocess.Popen(command, start_new_session=not is_own_session) for _ in range(count)
    ]
    try:
        time.sleep(PAUSE_S)
        yield
    finally:
        for one in programs:
            one.kill()
            one.wait()


def _describe(row: dict[str, Any]) -> str:
    error = row["now_s"] / median(row["whole_s"]) - 1
    return f"{row['programs']}: x{row['slowdown']:.2f} {error:+5.0%}"


def write_table() -> str:
    lines = [
        "# Estimates while other programs are at work",
        "",
        f"Examples and corpus kernels, in turn on the machine as it is and with programs beside"
        f" them that compute without end; against {WHOLE_RUNS} whole runs right after each"
        " estimate. *Alone*: error of the time alone; *now*: of the time as it is now; *inside*:"
        f" whole runs in its {COVERAGE:.0%} interval. *Slowdown*: of whole runs over those with no"
        " program beside them, and as the estimate saw it. *By samples*: time of the samples by"
        " the clock over that by the work of threads. *Host time* of an estimate.",
        "",
        *make_table(HEADINGS, (
            cells for result in map(read_json, sorted(FOLDER.glob("*.json")))
            for cells in list_cells(result["device"], result["rows"])
        )),
    ]  # fmt: skip
    write_text(FOLDER / "summary.md", *lines)
    return "\n".join(lines)


def list_cells(device: str, rows: Sequence[dict[str, Any]]) -> Iterator[list[object]]:
    idle_s = {row["kernel"]: median(row["whole_s"]) for row in rows if not row["programs"]}
    for count in COUNTS:
        these = [row for row in rows if row["programs"] == count]
        if not these:
            continue
        runs = [(row, whole_s) for row in these for whole_s in row["whole_s"]]
        alone = [abs(row["alone_s"] / whole_s - 1) for row, whole_s in runs]
        now = [abs(row["now_s"] / whole_s - 1) for row, whole_s in runs]
        inside = [row["low_s"] <= whole_s <= row["high_s"] for row, whole_s in runs]
        slower = median(whole_s / idle_s[row["kernel"]] for row, whole_s in runs)
        by_samples = [
            sum(clock_s for _, clock_s in row["clocks"])
            / sum(work_s for work_s, _ in row["clocks"])
            for row in these
            if row["clocks"]
        ]
        yield [
            device, count, len(these), f"{slower:.2f}",
            f"{median(row['slowdown'] for row in these):.2f}",
            f"{median(by_samples):.2f}" if by_samples else "",
            f"{median(alone):.1%}", f"{median(now):.1%}", f"{sum(now) / len(now):.1%}",
            f"{sum(inside) / len(inside):.0%}",
            f"{sum(row['has_warned'] for row in these) / len(these):.0%}",
            f"{median(row['spent_s'] for row in these) * 1e3:.0f} ms",
        ]  # fmt: skip


if __name__ == "__main__":
    main()
