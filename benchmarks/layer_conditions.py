"""Layer conditions beside the reference tool: agreement with all its cases.

Evaluates every case and transition of `kerncraft/cases.json` in the folder given. Writes
``results/layer_conditions/agreement.json``.

    python benchmarks/layer_conditions.py ../shared/reference
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelcast.analytic.cpu.ecm import predict_ecm
from kernelcast.analytic.cpu.layer_conditions import LayerConditions, list_transitions
from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.launches.machines import find_machine
from support.reference_nests import read_reference_nest

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "layer_conditions"
MACHINES = {"IvyBridgeEP_E5-2690v2": "ivy-bridge-ep", "SkylakeSP_Gold-6148": "skylake-sp"}


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


def main() -> None:
    """Compare and write."""
    cases = json.loads((Path(sys.argv[1]) / "kerncraft/cases.json").read_text())
    machines = {key: read_machine(find_machine(name)) for key, name in MACHINES.items()}
    found = compare_cases(cases, machines) | compare_transitions(cases, machines)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "agreement.json").write_text(json.dumps(found, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
