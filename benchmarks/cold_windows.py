"""Times windows of even work that find caches cold, and what comes right behind them.

Run ``python benchmarks/cold_windows.py DEVICE [--kernels NAME ...]``; about three minutes. At eight
places of each kernel, 50 ms apart: a launch of 4 units, one of 12 units, and a window of 8 units in
parts of 1, 3 and 4, one right behind the other (a unit: what fills the device, as often as needed
for 0.3 ms). Gives what each would predict for the whole launch, over the median of three whole
runs. Writes ``results/cold_windows/<device>.json`` and ``summary.md``; ``--only-tables`` renders
the files again.
"""

import argparse
import json
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.models.linear import fit_linear
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.multiples import choose_unit
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import Sampler
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.sampling.windows import find_free_box, spread_positions
from kernelcast.training_data.applications import CorpusKernel, find_kernels

FOLDER = Path(__file__).resolve().parent / "results" / "cold_windows"
KERNELS = (
    "blackscholes/blackscholes", "conv_net/conv3x3", "cp/cp", "gemm/register_blocked",
    "grid2d/fdtd_2d", "grid2d/life", "grid2d/wave_star", "grid3d/upwind", "heat3d/heat_points",
    "jacobi2d/sweep", "lbm/stream_collide", "mat_vec_mul/uncoal0", "matmul/matmul",
    "matrix_tiles/rank_k_update", "nbody/nbody", "npb_mg/psinv", "photographs/demosaic",
    "reductions/sum_divergent", "sobel_filter/sobel", "transpose/transpose_naive",
    "vision/harris", "copy_compute_overlap/vector_hypot",
)  # fmt: skip
PARTS = (1, 3, 4)
FORMS = {
    "4 units, cold": ("cold 4",),
    "12 units, cold": ("cold 12",),
    "parts of 1, 3 and 4 together": ("part 1", "part 3", "part 4"),
    "part of 1": ("part 1",),
    "part of 3 behind it": ("part 3",),
    "part of 4 behind both": ("part 4",),
}
PLACES, PAUSE_S, WHOLE_RUNS = 8, 0.05, 3


def main() -> None:
    """Measure a device, or only write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", help="an id or its beginning")
    parser.add_argument("--kernels", nargs="*", default=KERNELS)
    parser.add_argument("--only-tables", action="store_true")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not options.only_tables:
        description, handle = choose_device(options.device, find_devices())
        session = open_session(description, handle)
        rows = [row for name in options.kernels for kernel in find_kernels(name)
                if (row := _try(session, kernel))]  # fmt: skip
        content = {"device": description.id, "machine": describe_machine(), "rows": rows}
        text = json.dumps(content, indent=1) + "\n"
        (FOLDER / f"{description.id}.json").write_text(text, encoding="utf-8")
    write_summary()


def _try(session: DeviceSession, kernel: CorpusKernel) -> dict[str, Any] | None:
    try:
        row = measure(session, kernel)
    except KernelcastError as error:
        print(f"{kernel.name}: left out: {error}")
        return None
    told = " ".join(f"{name} {value:+.1%}" for name, value in row["errors"].items())
    print(f"{kernel.name}: {row['whole_s']:.3f} s, {told}", flush=True)
    return row


def measure(session: DeviceSession, kernel: CorpusKernel) -> dict[str, Any]:
    """Time windows of a kernel at its usual size, and the whole launch."""
    with tempfile.TemporaryDirectory() as folder:
        problem = prepare_launch(
            kernel, {}, local_size=kernel.local_sizes[0], cache_folder=Path(folder)
        ).problem
        with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
            taken: list[GroupBox] = []
            first = Sampler(launch, SamplingPlan(is_known_even=True)).take_moment()
            if first is None:
                msg = "nothing could be sampled"
                raise KernelcastError(msg)
            unit = choose_unit(launch, fit_linear(first).rate_s)
            timed: dict[str, list[tuple[int, float]]] = {}
            counts = launch.ndrange.group_counts
            for number, place in enumerate(spread_positions(PLACES, counts, shift=11)):
                time.sleep(PAUSE_S)
                launch.settle(keeps_contents=True)
                for name, size in _choose(number):
                    box = find_free_box(max(place, 1), size * unit, counts, taken, launch.order)
                    if box is None:
                        continue
                    taken.append(box)
                    boxes = cut(box) if name == "parts" else [box]
                    names = [f"part {one}" for one in PARTS] if name == "parts" else [name]
                    for key, one, duration_s in zip(
                        names, boxes, launch.time_boxes(boxes), strict=False
                    ):
                        timed.setdefault(key, []).append((one.work_group_count, duration_s))
            launch.time_whole()
            whole_s = float(np.median([launch.time_whole() for _ in range(WHOLE_RUNS)]))
            total = launch.ndrange.work_group_count
    return {
        "kernel": kernel.name, "whole_s": whole_s, "work_groups": total, "unit": unit,
        "errors": {name: _judge(timed, keys, total, whole_s) for name, keys in FORMS.items()
                   if all(key in timed for key in keys)},
    }  # fmt: skip


def _choose(number: int) -> list[tuple[str, int]]:
    """Take parts at one place, and cold launches at the next."""
    return [("parts", sum(PARTS))] if number % 2 else [("cold 4", 4), ("cold 12", 12)]


def cut(box: GroupBox) -> list[GroupBox]:
    """Cut a box in parts along its slowest dimension."""
    axis = max((axis for axis, extent in enumerate(box.shape) if extent > 1), default=0)
    edges = np.cumsum([0, *PARTS]) / sum(PARTS) * box.shape[axis]
    found = []
    for begin, end in pairwise(edges.round().astype(int).tolist()):
        start, shape = list(box.start), list(box.shape)
        start[axis], shape[axis] = start[axis] + begin, end - begin
        if end > begin:
            found.append(GroupBox(start=tuple(start), shape=tuple(shape)))
    return found


def _judge(
    timed: dict[str, list[tuple[int, float]]], keys: tuple[str, ...], total: int, whole_s: float
) -> float:
    """Give the median error of what launches would predict."""
    told = [
        total * sum(duration_s for _, duration_s in ones) / sum(count for count, _ in ones)
        for ones in zip(*(timed[key] for key in keys), strict=False)
    ]
    return float(np.median(told)) / whole_s - 1.0


def write_summary() -> None:
    """Write mean and median absolute errors per device and form, and all kernels."""
    lines = ["# Windows that find caches cold", "",
             "Errors of what windows of even work predict, as `benchmarks/cold_windows.py` says:",
             "mean / median of absolute values, and bias.", ""]  # fmt: skip
    for path in sorted(FOLDER.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        lines += [
            f"## {found['device']}",
            "",
            "| window | mean / median | bias |",
            "|---|---:|---:|",
        ]
        for name in FORMS:
            errors = [row["errors"][name] for row in found["rows"] if name in row["errors"]]
            size = np.abs(errors)
            lines.append(
                f"| {name} | {size.mean():.1%} / {np.median(size):.1%} | {np.median(errors):+.1%} |"
            )
        lines += ["", f"| kernel | {' | '.join(FORMS)} |", f"|---|{'---:|' * len(FORMS)}"]
        for row in found["rows"]:
            told = (f"{row['errors'][one]:+.0%}" if one in row["errors"] else "" for one in FORMS)
            lines.append(f"| {row['kernel']} | {' | '.join(told)} |")
        lines.append("")
    (FOLDER / "summary.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
