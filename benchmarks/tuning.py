"""Compares configurations chosen by models with exhaustive measuring and with blind searches.

``python -m benchmarks tuning`` measures all configurations of ``examples/tuning`` on Intel's CPU
runtime and on PoCL (those that are measured already are kept), ranks them by models, simulates
random and Bayesian search from the measured times with the same budget, measures the chosen and
the best once more side by side, and writes
``benchmarks/results/tuning``: ``<device>.json`` with every run and the machine's description,
``compared-<clock>.json`` and ``summary-<clock>.md``. ``--clock cpu`` judges by processor time, for
a machine that others use as well. ``--only measure`` and ``--only compare`` do a part;
``--development`` takes ``benchmarks/tuning_kernels``, with which the model was developed, and whose
figures say nothing. Kernel Tuner is asked where it is installed (``pip install kernel_tuner
scikit-learn``).

The devices must be calibrated: ``kernelcast calibrate --device ID``.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import describe_machine
from tuning_measurements import (
    CLOCKS,
    RESULTS,
    Measured,
    find_examples,
    measure_again,
    measure_all,
    read_measured,
    result_file,
)
from tuning_report import write_summary
from tuning_searches import (
    STRATEGIES,
    count_affordable,
    expect_random,
    simulate_kernel_tuner,
)

from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.tuning.api import tune_on_device
from kernelcast.tuning.report import TuneReport
from kernelcast.tuning.settings import TuneModels, TuneSettings
from kernelcast.tuning.space import SearchSpace, read_space

TOP = 5
RUNS_AGAIN = 15
DEVICES = ("intel", "pocl")


def main() -> None:
    """Measure, compare, write."""
    options = _parse()
    examples = find_examples(development=options.development, names=options.examples)
    if not examples:
        sys.exit("there are no such examples")
    if options.only != "compare":
        for device in options.device or DEVICES:
            measure_all(
                device,
                examples,
                runs=options.runs,
                development=options.development,
                again=options.again,
            )
    if options.only != "measure":
        folder = RESULTS / ("development" if options.development else "")
        for row in _compare(options, examples):
            _keep(folder / f"compared-{options.clock}.json", row, options.clock)
        print(write_summary(folder, options.clock))


def _keep(path: Path, row: dict[str, Any], clock: str) -> None:
    """Put a row into the file, in the place of an older one."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []

    def name(one: dict[str, Any]) -> tuple[str, str]:
        return one["device"], one["example"]

    rows = sorted([*(one for one in rows if name(one) != name(row)), row], key=name)
    content = {"machine": describe_machine(), "top": TOP, "clock": clock, "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", action="append", help="id or its beginning; may be repeated")
    parser.add_argument("--example", dest="examples", action="append", default=[])
    parser.add_argument("--runs", type=int, default=7, help="runs of each configuration")
    parser.add_argument(
        "--clock",
        choices=sorted(CLOCKS),
        default="wall",
        help="cpu: processor time instead of passing time, for a machine that others use",
    )
    parser.add_argument("--only", choices=["measure", "compare"])
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--no-hybrid", action="store_true", help="let nothing be sampled")
    parser.add_argument("--development", action="store_true")
    return parser.parse_args()


def _compare(options: argparse.Namespace, examples: dict[str, Path]) -> Iterator[dict[str, Any]]:
    for device in choose_devices(options.device or DEVICES):
        path = result_file(device.id, development=options.development)
        if not path.exists():
            continue
        for name, measured in read_measured(path, clock=options.clock).items():
            if name not in examples or not measured.seconds:
                continue
            space = read_space(examples[name])
            report, cost_s = _tune(space, device, TuneSettings(), options.clock)
            row = {"device": device.id, "example": name, **_judge(measured, report, cost_s)}
            row["again"] = _confirm(device, space, measured, report, options.clock)
            if not options.no_hybrid:
                settings = TuneSettings(models=TuneModels.HYBRID)
                row["hybrid"] = _judge(measured, *_tune(space, device, settings, options.clock))
            row["searches"] = _search(measured, row)
            print(
                f"{device.id}: {name}: pick {row['pick_share']:.1%}, top {TOP} "
                f"{row['top_share']:.1%} (again: {row['again']['pick_share']:.1%}, "
                f"{row['again']['top_share']:.1%}), {row['speedup']:.0f} times faster",
                flush=True,
            )
            yield row


def _tune(
    space: SearchSpace, device: DeviceDescription, settings: TuneSettings, clock: str
) -> tuple[TuneReport, float]:
    """Rank configurations, and say what that cost by the clock in use, child processes included."""
    before_s = _count_cpu()
    report = tune_on_device(space, device, settings=settings)
    used_s = _count_cpu() - before_s
    return report, used_s if clock == "cpu" else report.models_s + report.sampling_s


def _count_cpu() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, who))


def _judge(measured: Measured, report: TuneReport, own_s: float) -> dict[str, Any]:
    """Say what a report's choice is worth, by the measured times."""
    chosen = [one.number for one in report.configurations if one.number in measured.seconds]
    everything = measured.cost_s(list(measured.seconds))
    return {
        "configurations": len(measured.seconds),
        "best_s": measured.best_s,
        "median_share": measured.best_s / sorted(measured.seconds.values())[len(chosen) // 2],
        "pick_share": measured.share(chosen[:1]),
        "top_share": measured.share(chosen[:TOP]),
        "models_s": own_s,
        "top_s": own_s + measured.cost_s(chosen[:TOP]),
        "exhaustive_s": everything,
        "speedup": everything / own_s,
        "top_speedup": everything / (own_s + measured.cost_s(chosen[:TOP])),
        "rank_correlation": _correlate(measured, report),
    }


def _confirm(
    device: DeviceDescription,
    space: SearchSpace,
    measured: Measured,
    report: TuneReport,
    clock: str,
) -> dict[str, Any]:
    """Measure ours and the best of the exhaustive search again, side by side."""
    ours = [one.number for one in report.configurations if one.number in measured.seconds][:TOP]
    best = sorted(measured.seconds, key=lambda one: measured.seconds[one])[:TOP]
    found = measure_again(device, space, sorted({*ours, *best}), runs=RUNS_AGAIN, clock=clock)
    best_s = min(found.values())
    return {
        "pick_share": best_s / found[ours[0]] if ours[0] in found else 0.0,
        "top_share": best_s / min(found[one] for one in ours if one in found),
        "exhaustive_share": best_s / found[best[0]] if best[0] in found else 0.0,
        "ours": ours,
        "best": best,
        "seconds": {str(number): seconds for number, seconds in found.items()},
    }


def _correlate(measured: Measured, report: TuneReport) -> float:
    """Give Spearman's coefficient of predicted and measured times."""
    from scipy.stats import spearmanr

    pairs = [
        (one.predicted_s, measured.seconds[one.number])
        for one in report.configurations
        if one.predicted_s is not None and one.number in measured.seconds
    ]
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def _search(measured: Measured, row: dict[str, Any]) -> dict[str, Any]:
    """Give blind searches as many measurements, and as much time, as ours with its top."""
    found: dict[str, Any] = {}
    budgets = {"same_count": TOP, "same_time": count_affordable(measured, row["top_s"])}
    for budget, count in budgets.items():
        entry: dict[str, Any] = {"count": count, "random": expect_random(measured, count)}
        for strategy in STRATEGIES:
            started_s = time.perf_counter()
            entry[f"kernel_tuner_{strategy}"] = simulate_kernel_tuner(measured, strategy, count)
            entry[f"{strategy}_s"] = time.perf_counter() - started_s
        found[budget] = entry
    return found


if __name__ == "__main__":
    main()
