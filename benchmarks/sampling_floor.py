"""How well could anybody sample here: equal launches that foretell the next ones.

Run ``python benchmarks/sampling_floor.py DEVICE [--seconds S]``. One box of work-groups of even
kernels is launched again and again, so that nothing differs from launch to launch but the machine.
The mean of the first launches, as long as a sampling budget allows, is taken for an estimate of the
launches that follow, as long as a whole run. No sampler of that budget can be expected to come
closer on this machine, however it chooses its samples. Writes
``results/sampling_floor/<device>.json`` and, from these files, ``summary.md`` and ``floor.png``.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import describe_machine
from matplotlib.figure import Figure

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.session import open_session
from kernelcast.sampling.windows import box_near
from kernelcast.training_data.applications.loading import find_kernels

FOLDER = Path(__file__).resolve().parent / "results" / "sampling_floor"
KERNELS = ("cp/cp", "gemm/register_blocked", "copy_compute_overlap/vector_hypot")
BUDGETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
WHOLE_S = (0.15, 0.5)
LAUNCH_S = 0.75e-3
Series = npt.NDArray[np.float64]


def main() -> None:
    """Measure a device, or only write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", help="an id or its beginning; none: only the table")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each kernel")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.device:
        measure(options.device, options.seconds)
    write_summary()


def measure(wanted: str, seconds: float) -> None:
    """Launch the same boxes for some time, and compare."""
    description, handle = choose_device(wanted, find_devices())
    session = open_session(description, handle)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in KERNELS:
            [kernel] = find_kernels(name)
            problem = prepare_launch(
                kernel, {}, local_size=kernel.local_sizes[0], cache_folder=Path(folder)
            ).problem
            with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
                launch.time_whole()
                sampled, real = _repeat(launch, _find_box(launch), seconds)
            row: dict[str, Any] = {
                "kernel": name,
                "launches": len(real),
                "launch_s": float(np.median(real)),
            }
            row["errors"] = [
                {"whole_s": whole_s, "budget": budget, **_foretell(sampled, real, whole_s, budget)}
                for whole_s in WHOLE_S
                for budget in BUDGETS
            ]
            rows.append(row)
            print(f"{name}: {len(real)} launches of {row['launch_s'] * 1e3:.2f} ms", flush=True)
    result = {"device": description.id, "machine": describe_machine(), "rows": rows}
    path = FOLDER / f"{description.id}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _find_box(launch: OpenCLLaunch) -> GroupBox:
    """Give a box in the middle of the index space that takes about the time wanted."""
    counts = launch.ndrange.group_counts
    total, size = int(np.prod(counts)), 1
    while True:
        box = box_near(total // 2, size, counts)
        launch.warm_up(box)
        launch.settle()
        if min(launch.time_boxes([box])[0] for _ in range(3)) >= LAUNCH_S or 2 * size > total:
            return box
        size *= 2


def _repeat(launch: OpenCLLaunch, box: GroupBox, seconds: float) -> tuple[Series, Series]:
    """Launch a box for some time; give each launch's time as samples have it, and by the clock."""
    sampled, real = [], []
    end_s = time.perf_counter() + seconds
    while (begin_s := time.perf_counter()) < end_s:
        sampled += launch.time_boxes([box])
        real.append(time.perf_counter() - begin_s)
    return np.array(sampled), np.array(real)


def _foretell(sampled: Series, real: Series, whole_s: float, budget: float) -> dict[str, float]:
    """Compare means of some launches with the mean of those that follow, all through the series."""
    count = max(1, round(whole_s / float(np.median(real))))
    few = max(1, round(budget * count))
    starts = np.arange(0, len(real) - few - count, max(1, count // 4))
    if not starts.size:
        return {}
    sums, real_sums = (np.concatenate([[0.0], np.cumsum(one)]) for one in (sampled, real))
    estimate = (sums[starts + few] - sums[starts]) / few
    truth = (real_sums[starts + few + count] - real_sums[starts + few]) / count
    ratios = estimate / truth
    errors = np.abs(ratios / np.median(ratios) - 1)  # what the two clocks differ by is no noise
    return {
        "mean": float(errors.mean()),
        "median": float(np.median(errors)),
        "p90": float(np.percentile(errors, 90)),
    }


def write_summary() -> None:
    """Write table and picture of all devices' files."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in _list_results()]
    lines = [
        "# What sampling could reach at best",
        "",
        "The same box of work-groups, launched again and again: the mean of the first launches"
        " against the mean",
        "of those that follow, as many as a whole run holds. Mean error over the series, and 90th"
        " percentile.",
        "",
        "| device | kernel | whole run | " + " | ".join(f"{one:.1%}" for one in BUDGETS) + " |",
        "|---|---|---:|" + "---:|" * len(BUDGETS),
    ]
    for result in results:
        for row in result["rows"]:
            for whole_s in WHOLE_S:
                cells = [_show(one) for one in row["errors"] if one["whole_s"] == whole_s]
                begin = f"| {result['device']} | {row['kernel']} | {whole_s:g} s | "
                lines.append(begin + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    (FOLDER / "summary.md").write_text(text, encoding="utf-8")
    print(text)
    _draw(results)


def _list_results() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def _show(one: dict[str, float]) -> str:
    return f"{one['mean']:.1%} ({one['p90']:.0%})" if "mean" in one else "-"


def _draw(results: list[dict[str, Any]]) -> None:
    figure = Figure(figsize=(4.2 * max(1, len(results)), 3.6), layout="constrained")
    axes = figure.subplots(1, max(1, len(results)), sharey=True, squeeze=False)[0]
    for axis, result in zip(axes, results, strict=False):
        for row in result["rows"]:
            shown = [one for one in row["errors"] if one["whole_s"] == WHOLE_S[0] and "mean" in one]
            axis.plot([100 * one["budget"] for one in shown], [100 * one["mean"] for one in shown],
                      marker="o", label=row["kernel"])  # fmt: skip
        axis.set(xscale="log", title=result["device"], xlabel="sampled, % of the whole run",
                 ylim=(0, None))  # fmt: skip
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel(f"mean error, % (runs of {WHOLE_S[0]:g} s)")
    axes[0].legend()
    figure.savefig(FOLDER / "floor.png", dpi=120)


if __name__ == "__main__":
    main()
