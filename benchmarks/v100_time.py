"""Run time of the V100 stencil: the GPU model against the measured one, on the two halves.

``python benchmarks/v100_time.py`` prints it; ``--write`` also writes
``benchmarks/results/v100_stencil/time.json``; ``--fit`` chooses the constants again, on the half
`CHOSEN` alone. With measured volumes only the limiter model can be wrong; with modelled ones all
of the model.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.optimize import minimize
from scipy.stats import kendalltau
from v100_records import ARRAY, GHOST_LAYERS, INTERIOR, StencilRecord, read_records, split_records

from kernelcast.analytic.gpu.estimate import collect_demands
from kernelcast.analytic.gpu.limiters.assess import assess
from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import (
    FITTED,
    PAPER_2022,
    LimiterConstants,
    Translation,
    read_rates,
)
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.records.operations import NumberClass, Operation, OperationCounts, OperationKind
from support.stencils import make_star

MACHINE = find_machine("v100")
RESULT = Path(__file__).parent / "results/v100_stencil/time.json"
# Unknown of the runs: enough for 25 values, and the most that 1024 work-items can have.
REGISTERS = 64
UPDATES = INTERIOR[0] * INTERIOR[1] * INTERIOR[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A local size with everything that does not depend on the constants."""

    record: StencilRecord
    demands: Demands

    @property
    def measured_s(self) -> float:
        """Of the launch."""
        return UPDATES / self.record.updates_per_s


def make_launch(local_size: tuple[int, int, int]) -> ModelledLaunch:
    """Make the launch of the 25-point stencil: an update of every interior point."""
    launch = make_star(array=ARRAY, radius=GHOST_LAYERS, local_size=local_size, registers=REGISTERS)
    kinds = {OperationKind.ADD: 6.0 * GHOST_LAYERS, OperationKind.MULTIPLY: 1.0}
    executed = {
        Operation(kind=kind, number=NumberClass.FLOAT, bits=64): times
        for kind, times in kinds.items()
    }
    return replace(launch, executed=OperationCounts(operations=executed, memory={}))


def make_cases(records: Sequence[StencilRecord], *, is_measured: bool) -> list[Case]:
    """Collect what the records' launches ask for, with modelled volumes or the counters'."""
    rates = read_rates(MACHINE, FITTED)
    cases = []
    for record in records:
        launch = make_launch(record.local_size)
        volumes = compute_volumes(launch, read_machine(MACHINE))
        demands = collect_demands(launch, volumes, rates)
        if is_measured:
            demands = replace(
                demands,
                l2_load_bytes=record.l2_load * UPDATES,
                l2_store_bytes=record.l2_store * UPDATES,
                dram_load_bytes=record.dram_load * UPDATES,
                dram_store_bytes=record.dram_store * UPDATES,
            )
        cases.append(Case(record=record, demands=demands))
    return cases


def predict(cases: Sequence[Case], constants: LimiterConstants) -> list[float]:
    """Give the seconds of each case."""
    rates = read_rates(MACHINE, constants)
    return [assess(one.demands, rates, constants).seconds for one in cases]


def list_errors(cases: Sequence[Case], constants: LimiterConstants) -> list[float]:
    """Give the relative error of each case's time."""
    predicted = predict(cases, constants)
    return [one / case.measured_s - 1 for one, case in zip(predicted, cases, strict=True)]


def summarise(cases: Sequence[Case], constants: LimiterConstants) -> dict[str, float]:
    """Give what the goals are about."""
    errors = list_errors(cases, constants)
    predicted = predict(cases, constants)
    measured = [one.measured_s for one in cases]
    best = min(range(len(cases)), key=predicted.__getitem__)
    return {
        "records": len(cases),
        "mean_absolute_error": statistics.fmean(map(abs, errors)),
        "bias": statistics.fmean(errors),
        "worst_error": max(errors, key=abs),
        "kendall_tau": float(kendalltau(predicted, measured).statistic),
        "share_of_best": min(measured) / measured[best],
    }


def fit(cases: Sequence[Case]) -> LimiterConstants:
    """Choose the constants that give the smallest mean error."""

    def make(values: Sequence[float]) -> LimiterConstants:
        wavefronts, lines, pages, nanoseconds = values
        translation = Translation(pages=pages, miss_s=nanoseconds * 1e-9)
        return replace(
            FITTED,
            exposed_wavefronts=wavefronts,
            exposed_lines=lines,
            translation={"v100": translation},
        )

    def measure(values: Sequence[float]) -> float:
        return statistics.fmean(map(abs, list_errors(cases, make(values))))

    start = FITTED.translation["v100"]
    first = (FITTED.exposed_wavefronts, FITTED.exposed_lines, start.pages, start.miss_s * 1e9)
    return make(minimize(measure, first, method="Nelder-Mead", options={"maxiter": 800}).x)


def main(arguments: Sequence[str]) -> None:
    """Print, and write or fit where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args(arguments)
    records = read_records()
    if options.fit:
        for is_measured in (True, False):
            found = fit(make_cases(split_records(records)[0], is_measured=is_measured))
            exposed = f"{found.exposed_wavefronts:.3f} {found.exposed_lines:.3f}"
            sys.stdout.write(f"{exposed} {found.translation['v100']}\n")
    result: dict[str, object] = {}
    for volumes in ("measured", "modelled"):
        cases = make_cases(records, is_measured=volumes == "measured")
        chosen, reported = (
            [one for one in cases if one.record in half] for half in split_records(records)
        )
        for name, half in (("chosen", chosen), ("reported", reported), ("all", cases)):
            for constants in (FITTED, PAPER_2022):
                key = f"{constants.name}, {volumes} volumes, {name}"
                result[key] = summarise(half, constants)
                sys.stdout.write(f"{key}: {result[key]}\n")
        result[f"records, {volumes} volumes"] = [
            {"local_size": one.record.local_size, "measured_s": one.measured_s, "predicted_s": s}
            for one, s in zip(cases, predict(cases, FITTED), strict=True)
        ]
    if options.write:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
