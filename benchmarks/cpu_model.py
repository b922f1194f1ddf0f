"""What the CPU model predicts of a loop of many sizes, beside what was measured.

``python -m benchmarks cpu_model --measure`` predicts the long-range stencil for N = 100 to 2000 by
layer conditions and by simulation, compiles and runs it for each size, and draws all three (the
Kerncraft paper's Fig. 4). Without ``--measure`` nothing is run.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from machine import describe_machine
from matplotlib.figure import Figure

from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.cpu_loops import LoopModel, read_loop_file
from kernelcast.sampling.loop_benchmark import LoopToRun, measure_loop

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
FOLDER = RESULTS / "cpu_model"
STENCIL = ROOT / "examples/loops/3d-long-range.c"
SWEPT = RESULTS / "calibration/intel-amd-epyc-c960.yaml"
PLANES = 40
"""M of the stencil: 32 planes inside; the layer condition does not depend on it."""


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
    """Predict, measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default=str(SWEPT))
    parser.add_argument("--step", type=int, default=50)
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    machine = read_machine(find_machine(given.machine))
    found = sweep(machine, range(100, 2001, given.step), measures=given.measure)
    name = "sweep-measured" if given.measure else "sweep"
    (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw_sweep(found, FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
