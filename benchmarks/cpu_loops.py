"""C loops in caches: time in the core by OSACA of the compiled loop and by the table, measured.

``python -m benchmarks cpu_loops`` compiles each loop as `kernelcast model cpu` does, checks by
counting that the loop which is found in the assembly executes the iterations, predicts with data in
L1 and in L2, and measures both. Cycles are processor time, the least of all samples, at the clock
that a chain of dependent additions shows. The machine is the description of ``--machine``; only one
of this processor makes sense. Writes ``results/cpu_loops``.
"""

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import RESULTS, make_table, percent, write_result, write_text
from matplotlib.figure import Figure

from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.cpu_loops import LoopModel, compile_loop
from kernelcast.sampling.loop_benchmark import FLAGS, LoopToRun, compile_to_assembly, measure_loop
from support.loop_counting import count_passes

FOLDER = RESULTS / "cpu_loops"
ROW = "double a[N], b[N], c[N], d[N], s, t; for (int i = 0; i < N; ++i) "
PLANE = (
    "double a[M][N], b[M][N], t; for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i) "
)
SPACE = (
    "double a[L][M][N], b[L][M][N]; for (int k = 1; k < L - 1; ++k) "
    "for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i) "
)
LOOPS = {
    "stream triad": ROW + "a[i] = b[i] + s * c[i];",
    "Schoenauer triad": ROW + "a[i] = b[i] + c[i] * d[i];",
    "sum": ROW + "s += a[i];",
    "dot product": ROW + "s += a[i] * b[i];",
    "Jacobi 2-D": PLANE + "b[j][i] = .25 * (a[j-1][i] + a[j+1][i] + a[j][i-1] + a[j][i+1]);",
    "Jacobi 3-D": SPACE + "b[k][j][i] = a[k-1][j][i] + a[k+1][j][i] + a[k][j-1][i] + a[k][j+1][i] "
    "+ a[k][j][i-1] + a[k][j][i+1];",
    "division": ROW + "a[i] = b[i] / c[i];",
    "if on data, store": ROW + "if (a[i] > t) c[i] = a[i] * b[i];",
    "if on data, else": ROW + "if (a[i] > t) c[i] = a[i] * b[i]; else c[i] = b[i] - a[i];",
    "choice of two": ROW + "c[i] = a[i] > t ? a[i] : b[i];",
    "sum under a condition": ROW + "if (a[i] > t) s += b[i];",
    "largest": ROW + "if (a[i] > s) s = a[i];",
    "every second": ROW + "{ if (i % 2) continue; a[i] = s * b[i]; }",
    "half of a row": ROW + "if (2 * i < N) a[i] = s * b[i]; else a[i] = c[i];",
    "half of the rows": PLANE + "if (2 * j < M) b[j][i] = t * (a[j][i-1] + a[j][i+1]);",
    "borders apart": PLANE + "if (i > 1 && i < N - 2) b[j][i] = t * (a[j][i-1] + a[j][i+1]); "
    "else b[j][i] = a[j][i];",
}  # fmt: skip
SIZES = {
    "L1": ({"N": 1000}, {"M": 12, "N": 200}, {"L": 8, "M": 8, "N": 32}),
    "L2": ({"N": 16_000}, {"M": 60, "N": 500}, {"L": 20, "M": 20, "N": 80}),
}
CHAIN = """
#include <stdio.h>
#include <time.h>
int main(void)
{
    double least = 1e9;
    for (int sample = 0; sample < 40; ++sample) {
        struct timespec start, end;
        unsigned long x = 0;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        for (int n = 0; n < 200000; ++n)
            __asm__ volatile(".rept 100\\n add $3, %0\\n imul $1, %0, %0\\n .endr" : "+r"(x));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        double s = end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec);
        if (s < least) least = s;
    }
    printf("%.6e", 4 * 2e7 / least); /* 1 cycle for the sum, 3 for the product */
    return 0;
}
"""


def measure_clock() -> float:
    """Give the processor's clock while it computes, in Hz."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "chain.c", Path(folder) / "chain"
        source.write_text(CHAIN, encoding="utf-8")
        subprocess.run(["cc", "-O2", str(source), "-o", str(program)], check=True)
        return float(subprocess.run([str(program)], capture_output=True, check=True).stdout)


def check_loop(source: str, label: str, constants: Mapping[str, int]) -> float:
    """Count the passes of a loop per run of the nest."""
    compiler, assembly = compile_to_assembly(
        LoopToRun(source=source, constants=constants, flags=[*FLAGS, "-mno-red-zone"])
    )
    with tempfile.TemporaryDirectory() as folder:
        return count_passes(assembly, label, compiler, Path(folder))


def compare(
    name: str, level: str, machine: CpuMachine, clock_hz: float, samples: int
) -> dict[str, Any]:
    """Predict and measure a loop with its data in one cache."""
    source = LOOPS[name]
    constants = next(
        one for one in SIZES[level] if all(f"[{size}]" in source for size in one) and
        ("[M]" in source) == ("M" in one) and ("[L]" in source) == ("L" in one)
    )  # fmt: skip
    nest = read_loop_nest(source, {}, name=name)
    compiled = compile_loop(source, nest, machine, constants)
    row: dict[str, Any] = {"loop": name, "level": level, "constants": constants}
    for provider, in_core in (("osaca", compiled), ("table", None)):
        found = LoopModel(nest=nest, machine=machine, in_core=in_core).predict(constants)
        place = [one.name for one in found.volumes.levels].index(level)
        row[provider] = found.ecm.cumulative()[place]
        row[f"{provider}_range"] = [found.least_cycles, found.most_cycles]
    loop = LoopToRun(source=source, constants=constants)
    measured = measure_loop(loop, least_s=0.02, samples=samples)
    cycles = found.work.cycles(measured.shortest_s)
    passes = check_loop(source, compiled.loop.label, constants)
    return {
        **row,
        "measured": cycles * clock_hz / machine.clock_hz,
        "iterations_per_pass": compiled.iterations,
        "found_share": passes * compiled.iterations / found.work.iterations,
        "jumps": compiled.loop.jumps,
        "has_branches": nest.has_branches,
    }


def write(rows: Sequence[Mapping[str, Any]], machine: CpuMachine, clock_hz: float) -> None:
    """Write results, a table and a picture."""
    write_result(FOLDER / "results.json", {
        "described_by": machine.id, "clock_hz": clock_hz, "flags": list(FLAGS), "rows": rows,
    })  # fmt: skip
    lines = [
        "# C loops in caches",
        "",
        f"Core cycles per cache line of work at {clock_hz / 1e9:.2f} GHz, as measured; caches and "
        f"instruction table of {machine.id}. *Executed* is the share of the nest's iterations that "
        "the loop found in the assembly executes, counted as it runs; the rest is peeled off, or "
        "not executed at all. Ranges are those of branches. The rules "
        "that a mask delays no sum, and that the greater of two is one operation, were found here.",
        "",
    ]
    cells: list[tuple[object, ...]] = []
    for row in rows:
        least, most = row["osaca_range"]
        osaca, table = (
            percent(row[provider] / row["measured"] - 1, sign=True)
            for provider in ("osaca", "table")
        )
        cells.append((
            row["loop"], row["level"], row["iterations_per_pass"], percent(row["found_share"]),
            row["jumps"], f"{row['measured']:.1f}", f"{row['osaca']:.1f}", osaca,
            f"{least:.1f} to {most:.1f}" if least < most else "", f"{row['table']:.1f}", table,
        ))  # fmt: skip
    headings = ["loop", "data in", "iterations a pass", "executed", "jumps", "measured", "OSACA",
                "error", "range", "table", "error"]  # fmt: skip
    lines += [*make_table(headings, cells), ""]
    cells = []
    for has_branches in (False, True):
        for level in SIZES:
            own = [
                one for one in rows
                if one["has_branches"] == has_branches and one["level"] == level
            ]  # fmt: skip
            errors = [
                [abs(one[provider] / one["measured"] - 1) for one in own]
                for provider in ("osaca", "table")
            ]
            shown = (percent(mean(each)) for each in errors
                     for mean in (statistics.median, statistics.fmean))  # fmt: skip
            cells.append((f"{'with' if has_branches else 'no'} branches", level, *shown))
    headings = ["loops", "data in", "median error, OSACA", "mean", "median error, table", "mean"]
    write_text(FOLDER / "summary.md", *lines, *make_table(headings, cells))
    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    for axes, level in zip(figure.subplots(1, len(SIZES), sharey=True), SIZES, strict=True):
        own = [one for one in rows if one["level"] == level][::-1]
        places = range(len(own))
        axes.plot([one["measured"] for one in own], places, "kx", label="measured")
        axes.plot([one["osaca"] for one in own], places, "o", color="#4477aa", label="OSACA")
        axes.plot([one["table"] for one in own], places, "s", color="#ee6677", fillstyle="none",
                  label="instruction table")  # fmt: skip
        axes.set(
            xscale="log", title=f"data in {level}", xlabel="core cycles per cache line of work"
        )
        axes.set_yticks(list(places), [one["loop"] for one in own], fontsize=8)
        axes.legend(fontsize=8)
    figure.savefig(FOLDER / "loops.png", dpi=110, metadata={"Software": None})


def main() -> None:
    """Compare all loops in all caches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default=str(RESULTS / "calibration/intel-amd-epyc-c960.yaml"))
    parser.add_argument("--samples", type=int, default=15)
    given = parser.parse_args()
    machine = read_machine(find_machine(given.machine))
    clock_hz = measure_clock()
    rows = [
        compare(name, level, machine, clock_hz, given.samples) for name in LOOPS for level in SIZES
    ]
    write(rows, machine, clock_hz)
    print((FOLDER / "summary.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
