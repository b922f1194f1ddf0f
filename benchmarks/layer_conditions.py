"""Layer conditions beside the reference tool: agreement with all its cases, and speed.

Evaluates every case and transition of `kerncraft/cases.json` in the folder given, and times
evaluations at the sizes of `timings.json`, all in CPU time:

- ``known``: a size whose regime was met before, as in a sweep; the fastest of several rounds;
- ``new``: the first evaluation of a prepared nest, everything worked out;
- ``prepared``: taking the nest apart, once per nest.

With the Python of an environment that has Kerncraft installed, and the folder of its examples, its
layer conditions are timed in the same run as well; else its recorded times stand beside ours alone.
Writes ``results/layer_conditions/timings.json``.

    python benchmarks/layer_conditions.py ../shared/reference [python-with-kerncraft examples]
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.analytic.cpu.ecm import predict_ecm
from kernelcast.analytic.cpu.layer_conditions import LayerConditions, list_transitions
from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.launches.machines import find_machine
from support.reference_nests import make_nest, read_reference_nest

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "layer_conditions"
MACHINES = {"IvyBridgeEP_E5-2690v2": "ivy-bridge-ep", "SkylakeSP_Gold-6148": "skylake-sp"}
ROUNDS, CALLS = 15, 400
THREE_LOOPS = [("k", "1", "M-1", 1), ("j", "1", "N-1", 1), ("i", "1", "N-1", 1)]


def compare_cases(cases: Mapping[str, Any], machines: Mapping[str, CpuMachine]) -> dict[str, Any]:
    """Count cases whose every number is the reference's."""
    prepared = {
        (machine, kernel): LayerConditions(read_reference_nest(kernel, facts), machines[machine])
        for machine in machines
        for kernel, facts in cases["kernels"].items()
    }
    same_lines = same_cycles = total = 0
    for case in cases["cases"]:
        if "LC" not in case:
            continue
        total += 1
        wanted = case["LC"]
        volumes = prepared[case["machine"], case["kernel"]].predict(case["defines"])
        same_lines += all(
            [getattr(level, name) for level in volumes.levels] == wanted[name]
            for name in ("hits", "misses", "evicts", "loads", "stores")
        )
        ecm = predict_ecm(volumes, machines[case["machine"]])
        same_cycles += all(
            abs(one.cycles - cycles) < 6e-5
            for one, cycles in zip(ecm.transfers, wanted["cycles_cy_per_CL"].values(), strict=True)
        )
    return {"cases": total, "same_lines": same_lines, "same_cycles": same_cycles}


def compare_transitions(
    cases: Mapping[str, Any], machines: Mapping[str, CpuMachine]
) -> dict[str, int]:
    """Count transitions that are the reference's, text and solution."""
    found = {
        (machine, kernel, one.level, one.condition, one.largest, one.misses)
        for machine, known in machines.items()
        for kernel, facts in cases["kernels"].items()
        for one in list_transitions(read_reference_nest(kernel, facts), known)
    }
    names = ("machine", "kernel", "level", "condition", "largest_value", "misses")
    wanted = {tuple(row[name] for name in names) for row in cases["lc_transitions"]}
    return {"transitions": len(wanted), "same": len(wanted & found), "more": len(found - wanted)}


def list_timed_nests(cases: Mapping[str, Any]) -> dict[str, LoopNest]:
    """Give the nests of the recorded timings; two are not among the cases and are built here."""
    nests = {name: read_reference_nest(name, facts) for name, facts in cases["kernels"].items()}
    around = [
        ("a", f"k+{z}, j+{y}, i+{x}") for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)
    ]
    cube = ["M", "N", "N"]
    nests["3d-27pt"] = make_nest(THREE_LOOPS, {"a": cube, "b": cube}, around, [("b", "k, j, i")])
    box = ["L", "M", "N"]
    coefficients = [f"{name}{place}" for name, count in (("a", 4), ("b", 3), ("c", 3))
                    for place in range(count)]  # fmt: skip
    pressure = [("p", indices) for _, indices in around if "+0" in indices]
    nests["himeno"] = make_nest(
        [("k", "1", "L-1", 1), ("j", "1", "M-1", 1), ("i", "1", "N-1", 1)],
        dict.fromkeys([*coefficients, "p", "wrk1", "wrk2", "bnd"], box),
        [*((name, "k, j, i") for name in (*coefficients, "wrk1", "bnd")), *pressure],
        [("wrk2", "k, j, i")],
        element_type="float",
    )
    return nests


def time_calls(call: Callable[[], object], calls: int) -> float:
    """Give CPU seconds per call, the least of several rounds."""
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            call()
        least = min(least, (time.process_time() - start) / calls)
    return least


def time_nest(nest: LoopNest, machine: CpuMachine, sizes: Mapping[str, int]) -> dict[str, float]:
    """Time one nest; CPU seconds."""
    conditions = LayerConditions(nest, machine)
    conditions.predict(sizes)
    sweep = [dict(sizes, N=size) for size in range(100, 2000)]
    start = time.process_time()
    swept = LayerConditions(nest, machine)
    for one in sweep:
        swept.predict(one)
    swept_s = (time.process_time() - start) / len(sweep)
    new = [LayerConditions(nest, machine) for _ in range(100)]
    start = time.process_time()
    for fresh in new:
        fresh.predict(sizes)
    new_s = (time.process_time() - start) / len(new)
    return {
        "known_s": time_calls(lambda: conditions.predict(sizes), CALLS),
        "sweep_mean_s": swept_s,
        "new_s": new_s,
        "prepared_s": time_calls(lambda: LayerConditions(nest, machine), 20),
    }


KERNCRAFT = """
import json, shutil, sys, tempfile, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from kerncraft.cacheprediction import LayerConditionPredictor
from kerncraft.kernel import KernelCode
from kerncraft.machinemodel import MachineModel
from sympy.core.cache import clear_cache
found = {}
machine = MachineModel(sys.argv[1])
for name, source, sizes in json.loads(sys.argv[2]):
    times = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(source, folder)
            both = []
            for _ in range(2):
                clear_cache()
                kernel = KernelCode(Path(path).read_text(), filename=path, machine=machine)
                for key, value in sizes.items():
                    kernel.set_constant(key, value)
                start = time.process_time()
                LayerConditionPredictor(kernel, machine).get_misses()
                both.append(time.process_time() - start)
            times.append(both)
    found[name] = [sorted(column)[2] for column in zip(*times)]
print(json.dumps(found))
"""


def time_kerncraft(
    python: str, folder: Path, rows: list[dict[str, Any]]
) -> dict[str, tuple[float, float]]:
    """Time the reference tool here, without and with what it keeps on disk of an earlier run."""
    wanted = [
        (row["kernel"], str(folder / "kernels" / f"{row['kernel']}.c"), row["defines"])
        for row in rows
        if (folder / "kernels" / f"{row['kernel']}.c").exists()
    ]
    machine = folder / "machine-files" / "IvyBridgeEP_E5-2690v2.yml"
    answer = subprocess.run(
        [python, "-c", KERNCRAFT, str(machine), json.dumps(wanted)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {name: tuple(one) for name, one in json.loads(answer.stdout.splitlines()[-1]).items()}


def main() -> None:
    """Compare, time, write."""
    reference = Path(sys.argv[1]) / "kerncraft"
    cases = json.loads((reference / "cases.json").read_text())
    timings = json.loads((reference / "timings.json").read_text())["rows"]
    machines = {key: read_machine(find_machine(name)) for key, name in MACHINES.items()}
    here = time_kerncraft(sys.argv[2], Path(sys.argv[3]), timings) if len(sys.argv) > 3 else {}
    nests = list_timed_nests(cases)
    rows = []
    for row in timings:
        ours = time_nest(nests[row["kernel"]], machines[row["machine"]], row["defines"])
        recorded = row["LC_predict_median_cpu_s"]
        first, kept = here.get(row["kernel"], (None, None))
        rows.append({
            "kernel": row["kernel"], **ours, "reference_recorded_s": recorded,
            "reference_first_here_s": first, "reference_kept_here_s": kept,
            "recorded_over_new": recorded / ours["new_s"],
            "first_over_new": first / ours["new_s"] if first else None,
            "kept_over_known": kept / ours["known_s"] if kept else None,
        })  # fmt: skip
        print(
            f"{row['kernel']:24}{1e6 * ours['known_s']:8.1f} us known"
            f"{1e6 * ours['sweep_mean_s']:8.1f} us sweep{1e6 * ours['new_s']:9.1f} us new"
            f"{1e3 * recorded:9.1f} ms reference recorded"
        )
        if first and kept:
            print(f"{1e3 * first:9.1f} ms first, {1e3 * kept:.2f} ms kept, here")
    answer = {
        "machine": describe_machine(),
        "agreement": compare_cases(cases, machines) | compare_transitions(cases, machines),
        "timings": rows,
    }
    print(answer["agreement"])
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "timings.json").write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()
