"""The GPU model against every measured family: volumes and times, constants by family left out.

``python benchmarks/gpu_families.py`` writes ``benchmarks/results/gpu_families/<device>.json``, a
picture per device, ``summary.md``, and the table of what fails in docs/explanation/analytic-gpu.md.
With ``--leave-out`` the hit rates of L1 and L2 and the exposure of L1's cycles are fitted again
without each V100 family that has such measurements, and that family is judged with them; the result
is kept and shown by later runs.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu_family_cases import Case, list_cases
from gpu_family_machines import describe
from gpu_family_report import draw, list_failures, write_document, write_summary
from scipy.optimize import minimize
from scipy.stats import kendalltau

from kernelcast.analytic.gpu.hit_rates import HitRate, HitRates, find_hit_rates
from kernelcast.analytic.gpu.limiters.assess import assess
from kernelcast.analytic.gpu.limiters.demands import Demands, make_demands
from kernelcast.analytic.gpu.limiters.rates import FITTED, LimiterConstants, read_rates
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes

FOLDER = Path(__file__).parent / "results/gpu_families"
DOCUMENT = Path(__file__).parents[1] / "docs/explanation/analytic-gpu.md"
LEFT_OUT = FOLDER / "leave_one_out.json"
EVALUATIONS = 60
EVERY = 2
"""Every so many records are fitted to; all are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says of a case."""

    volumes: Mapping[str, float]
    demands: Demands
    seconds: float
    limiter: str


def ask(case: Case, rates: HitRates | None = None, constants: LimiterConstants = FITTED) -> Answer:
    """Ask the model; L2 writes are what NVIDIA's counter sees, partial sectors and their rest."""
    machine = describe(case.device)
    volumes = compute_volumes(case.launch, read_machine(machine), rates)
    given = read_rates(machine, constants)
    demands = make_demands(case.launch, volumes, given.warp_width)
    found = assess(demands, given, constants)
    return Answer(
        volumes={
            "dram_load": volumes.dram_load_bytes, "dram_store": volumes.dram_store_bytes,
            "l2_load": volumes.l2_load_bytes, "l2_store": volumes.l2_written_bytes,
        },
        demands=demands, seconds=found.seconds, limiter=found.limiter,
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


def kin(family: str) -> str:
    """Give what a family shares with its variants, which are left out together."""
    return family.split("_")[0]


def list_others(cases: Sequence[Case], family: str, quantity: str) -> list[Case]:
    """List what is fitted to if a family and its variants are left out."""
    return [one for one in cases if kin(one.family) != kin(family) and quantity in one.measured][
        ::EVERY
    ]


def leave_out(cases: Sequence[Case]) -> dict[str, Any]:
    """Fit without each family in turn; give its errors with the constants of the others."""
    own = [one for one in cases if one.device == "V100"]
    found: dict[str, Any] = {}
    with_volumes = sorted({one.family for one in own if "l2_load" in one.measured})
    for family in with_volumes:
        others = [
            one for one in own if kin(one.family) != kin(family) and "l2_load" in one.measured
        ][::EVERY]
        rates = fit_rates(others)
        rows = judge([one for one in own if one.family == family],
                     [ask(one, rates) for one in own if one.family == family])  # fmt: skip
        found[family] = {
            "l1_load": [rates.l1_load.b, rates.l1_load.c],
            "l2_overlap": [rates.l2_overlap.b, rates.l2_overlap.c],
            **{name: summarise(rows, name) for name in ("dram_load", "l2_load")},
        }
        report(f"{family} left out: {found[family]}")
    timed = sorted({one.family for one in own if "seconds" in one.measured})
    for family in timed:
        others = [
            one for one in own if kin(one.family) != kin(family) and "seconds" in one.measured
        ]
        constants = fit_exposure(others[::EVERY], is_translated=family != "star3d25_v100")
        mine = [one for one in own if one.family == family]
        rows = judge(mine, [ask(one, None, constants) for one in mine])
        entry = found.setdefault(family, {})
        entry["exposed"] = [constants.exposed_wavefronts, constants.exposed_lines]
        entry["seconds"] = summarise(rows, "seconds")
        report(f"{family} left out: {entry['exposed']} {entry['seconds']}")
    return found


def fit_rates(cases: Sequence[Case]) -> HitRates:
    """Fit the hit rates of L1 loads to L2 volumes, then those of L2 to DRAM volumes."""
    rates = find_hit_rates()
    for function, quantity in (("l1_load", "l2_load"), ("l2_overlap", "dram_load")):
        rates = fit_rate(rates, function, cases, quantity)
    return rates


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
    base = FITTED if is_translated else replace(FITTED, translation={})
    asked = [ask(one) for one in cases]

    def change(x: Sequence[float]) -> LimiterConstants:
        wavefronts, lines = np.abs(x)
        return replace(base, exposed_wavefronts=float(wavefronts), exposed_lines=float(lines))

    def measure(x: Sequence[float]) -> float:
        constants = change(x)
        given = read_rates(describe("V100"), constants)
        return statistics.fmean(
            abs(assess(answer.demands, given, constants).seconds / case.measured["seconds"] - 1)
            for case, answer in zip(cases, asked, strict=True)
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
    begin = time.process_time()
    rows = judge(cases, [ask(one) for one in cases])
    seconds = time.process_time() - begin
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.leave_out:
        LEFT_OUT.write_text(json.dumps(leave_out(cases), indent=1) + "\n", encoding="utf-8")
    left_out = json.loads(LEFT_OUT.read_text()) if LEFT_OUT.exists() else {}
    by_device: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_device[row["device"]].append(row)
    tables: dict[str, dict[str, Any]] = {}
    for device, own in sorted(by_device.items()):
        families = sorted({row["family"] for row in own})
        tables[device] = {
            family: {
                quantity: summary
                for quantity in ("dram_load", "dram_store", "l2_load", "l2_store", "seconds")
                if (summary := summarise([r for r in own if r["family"] == family], quantity))
            }
            for family in families
        }
        name = device.lower().replace(" ", "-").replace("(", "-").replace(")", "")
        content = {"device": device, "families": tables[device], "records": own}
        (FOLDER / f"{name}.json").write_text(json.dumps(content) + "\n", encoding="utf-8")
        draw(own, device, FOLDER / f"{name}.png")
    write_summary(FOLDER / "summary.md", tables, left_out, not_asked, len(rows), seconds)
    write_document(DOCUMENT, list_failures(tables))
    for device, table in tables.items():
        for family, quantities in table.items():
            shown = ", ".join(
                f"{name} {100 * one['median_absolute_error']:.1f} %"
                for name, one in quantities.items()
            )
            report(f"{device}, {family}: {shown}")


if __name__ == "__main__":
    main(sys.argv[1:])
