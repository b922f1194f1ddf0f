"""The GPU model against every measured family: volumes and times, constants by family left out.

``python benchmarks/gpu_families.py`` writes ``benchmarks/results/gpu_families/<device>.json``, a
picture per device and ``summary.md``. With ``--leave-out`` the hit rates of L1 and
L2 and the exposure of L1's cycles are fitted again without each V100 family that has such
measurements, and that family is judged with them; the result is kept and shown by later runs.
"""

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gpu_family_cases import Case, list_cases
from gpu_family_machines import describe
from gpu_family_report import QUANTITIES, draw, write_summary
from harness import RESULTS, percent, read_json, write_json, write_text
from scipy.optimize import minimize
from scipy.stats import kendalltau

from kernelcast.analytic.gpu.estimate import LimiterModel
from kernelcast.analytic.gpu.hit_rates import HitRate, HitRates, find_hit_rates
from kernelcast.analytic.gpu.machine import FITTED, LimiterConstants, read_machine, read_rates
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes

FOLDER = RESULTS / "gpu_families"
LEFT_OUT = FOLDER / "leave_one_out.json"
EVALUATIONS = 60
EVERY = 2
"""Every so many records are fitted to; all are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says of a case."""

    moved: GpuVolumes
    volumes: Mapping[str, float]
    seconds: float
    limiter: str


def ask(case: Case, rates: HitRates | None = None, constants: LimiterConstants = FITTED) -> Answer:
    """Ask the model; L2 writes are what NVIDIA's counter sees, partial sectors and their rest."""
    machine = describe(case.device)
    volumes = compute_volumes(case.launch, read_machine(machine), rates)
    given = read_rates(machine, constants)
    found = LimiterModel(case.launch, volumes, given).assess()
    return Answer(
        volumes={
            "dram_load": volumes.dram_load_bytes, "dram_store": volumes.dram_store_bytes,
            "l2_load": volumes.l2_load_bytes, "l2_store": volumes.l2_written_bytes,
        },
        moved=volumes, seconds=found.seconds, limiter=found.limiter,
    )  # fmt: skip


def judge(cases: Sequence[Case], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """List each record's quantities, predicted and measured."""
    rows = []
    for case, answer in zip(cases, answers, strict=True):
        predicted = {**answer.volumes, "seconds": answer.seconds}
        rows.append({
            "family": case.family, "device": case.device, "id": case.id,
            "limiter": answer.limiter, "measured": dict(case.measured),
            "predicted": {name: predicted[name] for name in case.measured},
        })  # fmt: skip
    return rows


def summarise(rows: Sequence[Mapping[str, Any]], quantity: str) -> dict[str, float] | None:
    """Give errors of one quantity; None if no row has it."""
    pairs = [
        (row["predicted"][quantity], row["measured"][quantity])
        for row in rows
        if quantity in row["measured"]
    ]
    if not pairs:
        return None
    errors = [predicted / measured - 1 for predicted, measured in pairs]
    found = {
        "records": len(errors),
        "median_absolute_error": statistics.median(map(abs, errors)),
        "mean_absolute_error": statistics.fmean(map(abs, errors)),
        "bias": statistics.fmean(errors),
        "worst_error": max(errors, key=abs),
    }
    if quantity == "seconds" and len(pairs) > 2:
        found["kendall_tau"] = float(kendalltau(*zip(*pairs, strict=True)).statistic)
    return found


def leave_out(cases: Sequence[Case]) -> dict[str, Any]:
    """Fit without each family and its variants in turn; give its errors with those constants."""
    own = [one for one in cases if one.device == "V100"]

    def divide(family: str, quantity: str) -> tuple[list[Case], list[Case]]:
        kin = family.split("_")[0]
        others = [one for one in own if one.family.split("_")[0] != kin]
        return (
            [one for one in own if one.family == family],
            [one for one in others if quantity in one.measured][::EVERY],
        )

    found: dict[str, Any] = {}
    for family in sorted({one.family for one in own if "l2_load" in one.measured}):
        mine, others = divide(family, "l2_load")
        rates = fit_rates(others)
        rows = judge(mine, [ask(one, rates) for one in mine])
        found[family] = {
            "l1_load": [rates.l1_load.b, rates.l1_load.c],
            "l2_overlap": [rates.l2_overlap.b, rates.l2_overlap.c],
            **{name: summarise(rows, name) for name in ("dram_load", "l2_load")},
        }
        report(f"{family} left out: {found[family]}")
    for family in sorted({one.family for one in own if "seconds" in one.measured}):
        mine, others = divide(family, "seconds")
        constants = fit_exposure(others, is_translated=family != "star3d25_v100")
        entry = found.setdefault(family, {})
        entry["exposed"] = [constants.exposed_wavefronts, constants.exposed_lines]
        entry["seconds"] = summarise(judge(mine, [ask(one, None, constants) for one in mine]),
                                     "seconds")  # fmt: skip
        report(f"{family} left out: {entry['exposed']} {entry['seconds']}")
    return found


def fit_rates(cases: Sequence[Case]) -> HitRates:
    """Fit the hit rates of L1 loads to L2 volumes, then those of L2 to DRAM volumes."""
    rates = fit_rate(find_hit_rates(), "l1_load", cases, "l2_load")
    return fit_rate(rates, "l2_overlap", cases, "dram_load")


def fit_rate(base: HitRates, function: str, cases: Sequence[Case], quantity: str) -> HitRates:
    """Fit offset and steepness of one hit rate to one quantity."""
    start: HitRate = getattr(base, function)

    def change(x: Sequence[float]) -> HitRates:
        rate = replace(start, b=float(np.exp(x[0])), c=float(np.exp(x[1])))
        named: dict[str, Any] = {function: rate}
        return replace(base, **named)

    def measure(x: Sequence[float]) -> float:
        rates = change(x)
        errors: dict[str, list[float]] = defaultdict(list)
        for one in cases:  # each family weighs the same
            predicted = compute_volumes(one.launch, read_machine(describe(one.device)), rates)
            loaded = {"l2_load": predicted.l2_load_bytes, "dram_load": predicted.dram_load_bytes}
            errors[one.family].append(abs(loaded[quantity] / one.measured[quantity] - 1))
        return statistics.fmean(map(statistics.fmean, errors.values()))

    first = (np.log(start.b), np.log(start.c))
    best = minimize(measure, first, method="Nelder-Mead", options={"maxfev": EVALUATIONS})
    return change(best.x)


def fit_exposure(cases: Sequence[Case], *, is_translated: bool) -> LimiterConstants:
    """Fit the exposure of L1's cycles to times; page misses are known from one family alone."""
    unknown: dict[str, Any] = {} if is_translated else {"translation": (np.inf, 0.0)}
    asked = [ask(one) for one in cases]

    def change(x: Sequence[float]) -> LimiterConstants:
        wavefronts, lines = np.abs(x)
        return replace(FITTED, exposed_wavefronts=float(wavefronts), exposed_lines=float(lines))

    def measure(x: Sequence[float]) -> float:
        constants = change(x)
        given = replace(read_rates(describe("V100"), constants), **unknown)
        times_s = (
            LimiterModel(case.launch, answer.moved, given).assess().seconds
            for case, answer in zip(cases, asked, strict=True)
        )
        return statistics.fmean(
            abs(seconds / case.measured["seconds"] - 1)
            for case, seconds in zip(cases, times_s, strict=True)
        )

    first = (FITTED.exposed_wavefronts, FITTED.exposed_lines)
    options = {"maxfev": 4 * EVALUATIONS}
    best = minimize(measure, first, method="Nelder-Mead", options=options).x
    # Launches that fill all units do not tell: nothing is exposed then.
    return change(best) if measure(best) < measure((0.0, 0.0)) else change((0.0, 0.0))


def report(line: str) -> None:
    """Print a line of progress."""
    sys.stdout.write(line + "\n")


def main(arguments: Sequence[str]) -> None:
    """Ask, judge and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leave-out", action="store_true")
    options = parser.parse_args(arguments)
    not_asked: Counter[str] = Counter()
    cases = list(list_cases(not_asked))
    rows = judge(cases, [ask(one) for one in cases])
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.leave_out:
        write_json(LEFT_OUT, leave_out(cases))
    tables: dict[str, dict[str, Any]] = {}
    for device in sorted({row["device"] for row in rows}):
        own = [row for row in rows if row["device"] == device]
        tables[device] = {
            family: {
                quantity: summary
                for quantity in QUANTITIES
                if (summary := summarise([r for r in own if r["family"] == family], quantity))
            }
            for family in sorted({row["family"] for row in own})
        }
        name = device.lower().replace(" ", "-").replace("(", "-").replace(")", "")
        content = {"device": device, "families": tables[device], "records": own}
        write_text(FOLDER / f"{name}.json", json.dumps(content))
        draw(own, device, FOLDER / f"{name}.png")
        for family, quantities in tables[device].items():
            shown = ", ".join(
                f"{quantity} {percent(one['median_absolute_error'], 1)}"
                for quantity, one in quantities.items()
            )
            report(f"{device}, {family}: {shown}")
    write_summary(FOLDER / "summary.md", tables, read_json(LEFT_OUT), not_asked, len(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
