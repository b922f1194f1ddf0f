"""What the CPU model predicts beside what was measured: OpenCL examples, and a sweep of a loop.

``python benchmarks/cpu_model.py examples`` models every example on the calibrated devices
(`training_data/measured`) and compares with the times of `benchmarks/accuracy.py`. Only
addresses that depend on data are recorded on a device, from a few work-groups; no times are taken.

``python benchmarks/cpu_model.py sweep --measure`` predicts the long-range stencil for N = 100 to
2000 by layer conditions and by simulation, compiles and runs it for each size, and draws all three
(the Kerncraft paper's Fig. 4). Without ``--measure`` nothing is run.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from machine import describe_machine
from matplotlib.figure import Figure
from scipy.stats import kendalltau

from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.cpu_loops import LoopModel, read_loop_file
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.sampling.loop_benchmark import LoopToRun, measure_loop

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
FOLDER = RESULTS / "cpu_model"
STENCIL = ROOT / "examples/loops/3d-long-range.c"
DEVICES = (
    "intel-amd-epyc-55ea", "pocl-skylake-avx512-amd-91ef", "rusticl-llvmpipe-amd-epyc-2b30",
)  # fmt: skip
CALIBRATED = ROOT / "src/kernelcast/training_data/measured"
SWEPT = RESULTS / "calibration/intel-amd-epyc-c960.yaml"
WITHIN = 1.5
PLANES = 40
"""M of the stencil: 32 planes inside; the layer condition does not depend on it."""


def record_examples(device_id: str | None) -> dict[str, ModelledLaunch]:
    """Give the launches of all examples, addresses that depend on data recorded on a device."""
    paths = sorted(ROOT.glob("examples/*/*.yaml"))
    found = {}
    for path in paths:
        if path.parent.name == path.stem:
            found[path.stem] = record_accesses(read_launch_source(path), device_id).launch()
    return found


def read_measured(device_id: str) -> dict[str, float]:
    """Give the median seconds of each example on a device."""
    text = (RESULTS / f"accuracy/{device_id}.json").read_text(encoding="utf-8")
    rows = json.loads(text)["rows"]
    return {
        row["problem"]: statistics.median(row["whole_seconds"])
        for row in rows
        if row.get("whole_seconds")
    }


def compare(device_id: str, launches: Mapping[str, ModelledLaunch]) -> dict[str, object]:
    """Compare predictions with measurements on one device."""
    machine = find_machine(CALIBRATED / f"{device_id}.yaml")
    measured = read_measured(device_id)
    rows = []
    for name in sorted(measured.keys() & launches.keys()):
        estimate = estimate_analytically(launches[name], machine)
        rows.append({
            "kernel": name, "measured_s": measured[name], "predicted_s": estimate.seconds,
            "ratio": estimate.seconds / measured[name], "limiter": estimate.limiter,
            "limiters": dict(estimate.limiters),
        })  # fmt: skip
    ratios = [float(str(row["ratio"])) for row in rows]
    items = [launches[str(row["kernel"])].ndrange.work_item_count for row in rows]
    tau, tau_of_items = (
        kendalltau(
            *(
                [float(str(row[key])) / one for row, one in zip(rows, weights, strict=True)]
                for key in ("measured_s", "predicted_s")
            )
        ).statistic
        for weights in ([1] * len(rows), items)
    )
    return {
        "device": device_id,
        "rows": rows,
        "within_factor": WITHIN,
        "count_within": sum(1 / WITHIN <= one <= WITHIN for one in ratios),
        "kendall_tau": float(tau),
        "kendall_tau_per_work_item": float(tau_of_items),
        "median_factor": statistics.median(max(one, 1 / one) for one in ratios),
    }


def write_examples(found: Sequence[Mapping[str, object]]) -> None:
    """Write results, a summary and a picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = {"machine": describe_machine(), "devices": found}
    (FOLDER / "examples.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    lines = ["# The CPU model on the examples", ""]
    figure = Figure(figsize=(6.0 * len(found), 5.5), layout="constrained")
    every = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, one in zip(every, found, strict=True):
        rows = one["rows"]
        assert isinstance(rows, list)
        lines += [
            f"## {one['device']}", "",
            f"{one['count_within']} of {len(rows)} within a factor {WITHIN}, Kendall tau "
            f"{one['kendall_tau']:.2f} (of the time per work-item "
            f"{one['kendall_tau_per_work_item']:.2f}), median factor "
            f"{one['median_factor']:.2f}", "",
            "| kernel | measured (s) | predicted (s) | ratio | limiter |",
            "|---|---|---|---|---|",
            *(
                f"| {row['kernel']} | {row['measured_s']:.4f} | {row['predicted_s']:.4f} | "
                f"{row['ratio']:.2f} | {row['limiter']} |"
                for row in rows
            ), "",
        ]  # fmt: skip
        for row in rows:
            axes.plot(row["measured_s"], row["predicted_s"], "o", color="#4477aa")
            axes.annotate(
                row["kernel"], (row["measured_s"], row["predicted_s"]), fontsize=7,
                xytext=(4, 3), textcoords="offset points",
            )  # fmt: skip
        times = [row[key] for row in rows for key in ("measured_s", "predicted_s")]
        ends = [0.8 * min(times), 1.25 * max(times)]
        axes.plot(ends, ends, "k-", linewidth=0.8)
        for factor in (WITHIN, 1 / WITHIN):
            axes.plot(ends, [factor * end for end in ends], "k:", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=str(one["device"]),
                 xlabel="measured (s)", ylabel="predicted (s)")  # fmt: skip
    (FOLDER / "examples.md").write_text("\n".join(lines), encoding="utf-8")
    figure.savefig(FOLDER / "examples.png", dpi=110)


def sweep(machine: CpuMachine, sizes: Sequence[int], *, measures: bool) -> dict[str, object]:
    """Predict, and measure where asked, the long-range stencil for many sizes."""
    source, nest = read_loop_file(STENCIL, {"M": PLANES})
    models = {one: LoopModel(nest=nest, machine=machine, predictor=one) for one in ("lc", "sim")}
    rows = []
    for size in sizes:
        constants = {"M": PLANES, "N": size}
        row: dict[str, object] = {"N": size}
        for name, model in models.items():
            start = time.process_time()
            found = model.predict(constants)
            row[name] = {
                "cycles": found.cycles, "notation": found.ecm.notation(),
                "cpu_s": time.process_time() - start,
            }  # fmt: skip
        if measures:
            count = PLANES * size * size
            measured = measure_loop(
                LoopToRun(source=source, constants=constants, array_bytes=3 * 8 * count),
                least_s=0.1,
            )  # fmt: skip
            row["measured"] = {
                "cycles": found.work.cycles(measured.seconds),
                "wall_s": list(measured.wall_s), "cpu_s": list(measured.cpu_s),
                "compiler": measured.compiler,
            }  # fmt: skip
        rows.append(row)
        print(json.dumps(row))
    return {"machine": machine.id, "M": PLANES, "described": describe_machine(), "rows": rows}


def draw_sweep(found: Mapping[str, object], path: Path) -> None:
    """Draw predicted and measured cycles over the size."""
    rows = found["rows"]
    assert isinstance(rows, list)
    figure = Figure(figsize=(8.5, 5.0), layout="constrained")
    axes = figure.add_subplot()
    sizes = [row["N"] for row in rows]
    styles = {"lc": ("-", "layer conditions"), "sim": ("--", "cache simulation")}
    for name, (style, label) in styles.items():
        axes.plot(sizes, [row[name]["cycles"] for row in rows], style, label=f"ECM, {label}")
    measured = [(row["N"], row["measured"]["cycles"]) for row in rows if "measured" in row]
    if measured:
        axes.plot(*zip(*measured, strict=True), "x", color="#ee6677", label="measured (median)")
    axes.set(xlabel="N", ylabel="core cycles per cache line of work",
             title=f"{STENCIL.name}, M={found['M']}, on {found['machine']}, one core")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("examples", "sweep"))
    parser.add_argument("--device", help="where addresses are recorded")
    parser.add_argument("--machine", default=str(SWEPT))
    parser.add_argument("--step", type=int, default=50)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.part == "examples":
        launches = record_examples(given.device)
        write_examples([compare(one, launches) for one in DEVICES])
        print((FOLDER / "examples.md").read_text(encoding="utf-8"))
        return
    machine = read_machine(find_machine(given.machine))
    found = sweep(machine, range(100, 2001, given.step), measures=given.measure)
    name = "sweep-measured" if given.measure else "sweep"
    (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw_sweep(found, FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
