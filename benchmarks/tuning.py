"""Compares configurations chosen by models with exhaustive measuring and with blind search.

``python -m benchmarks tuning`` measures all configurations of ``examples/tuning`` on Intel's CPU
runtime and on PoCL (those that are measured already are kept), ranks them by models, computes what
random search reaches with the same budget, measures the chosen and the best once more side by side,
and writes ``results/tuning``: ``<device>.json`` with every run and the machine's description,
``compared-cpu.json`` and ``summary-cpu.md``. A configuration's time is the median processor time of
its runs, for others may use the machine; it does not tell how evenly the cores were busy.
``--only measure`` and ``--only compare`` do a part.

The devices must be calibrated: ``kernelcast calibrate --device ID``.
"""

import argparse
import math
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness import RESULTS, make_table, read_json, write_json, write_result, write_text
from machine import describe_machine
from scipy.stats import spearmanr

from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.tuning.api import (
    EventKind,
    TuningEvent,
    run_on_device,
    tune_on_device,
)
from kernelcast.tuning.report import TuneModels, TuneReport, TuneSettings
from kernelcast.tuning.space import SearchSpace, read_space

FOLDER = RESULTS / "tuning"
EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "tuning"
SCHEMA = "kernelcast-tuning-benchmark-1"
TIMEOUT_S = 60.0
TOP = 5
RUNS_AGAIN = 15
DEVICES = ("intel", "pocl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One example on one device, measured exhaustively; by configuration."""

    name: str
    names: tuple[str, ...]
    """What was searched over."""
    parameters: dict[int, dict[str, float]]
    seconds: dict[int, float]
    """Of those that ran."""
    build_s: dict[int, float]
    """Building and the first run."""
    run_s: dict[int, float]
    """All runs together."""

    @property
    def best_s(self) -> float:
        """The best time."""
        return min(self.seconds.values())

    def share(self, chosen: Sequence[int]) -> float:
        """Give the speed of the best of some configurations as a share of the best speed."""
        found = [self.seconds[one] for one in chosen if one in self.seconds]
        return self.best_s / min(found) if found else 0.0

    def cost_s(self, chosen: Sequence[int]) -> float:
        """Give the time that measuring some configurations takes, builds included."""
        return sum(self.build_s.get(one, 0.0) + self.run_s.get(one, 0.0) for one in chosen)


def main() -> None:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", action="append", help="id or its beginning; may be repeated")
    parser.add_argument("--example", dest="examples", action="append", default=[])
    parser.add_argument("--runs", type=int, default=7, help="runs of each configuration")
    parser.add_argument("--only", choices=["measure", "compare"])
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--no-hybrid", action="store_true", help="let nothing be sampled")
    options = parser.parse_args()
    examples = find_examples(options.examples)
    if not examples:
        sys.exit("there are no such examples")
    if options.only != "compare":
        for device in options.device or DEVICES:
            measure_all(device, examples, runs=options.runs, again=options.again)
    if options.only != "measure":
        path = FOLDER / "compared-cpu.json"
        for row in _compare(options, examples):
            rows = read_json(path)["rows"] if path.exists() else []
            by_name = {(one["device"], one["example"]): one for one in [*rows, row]}
            rows = [by_name[name] for name in sorted(by_name)]
            write_result(path, {"top": TOP, "rows": rows})
        print(write_summary())


def find_examples(names: Sequence[str] = ()) -> dict[str, Path]:
    """Find examples by their names; all without any."""
    found = {path.stem: path for path in sorted(EXAMPLES.glob("*/*.yaml"))}
    return {name: path for name, path in found.items() if not names or name in names}


def measure_all(device_id: str, examples: dict[str, Path], *, runs: int, again: bool) -> None:
    """Measure all configurations of all examples; examples that are there are kept."""
    device = choose_devices([device_id])[0]
    path = FOLDER / f"{device.id}.json"
    content = {
        "schema": SCHEMA,
        "device": {"id": device.id, "name": device.name, "driver": device.driver},
        "examples": read_json(path)["examples"] if path.exists() else {},
    }
    for name, file in examples.items():
        space = read_space(file)
        total = len(space.configurations)
        known = content["examples"].get(name)
        if known and not again and known["configurations_total"] == total:
            continue
        machine, started_s = describe_machine(), time.perf_counter()
        entries = _run(device, space, runs, frozenset(one.number for one in space.configurations))
        wall_s = time.perf_counter() - started_s
        content["examples"][name] = {
            "machine": machine, "configurations_total": total, "wall_s": wall_s, "runs": runs,
            "names": list(space.names), "configurations": list(entries.values()),
        }  # fmt: skip
        write_json(path, content)
        ran = sum(bool(one["runs_s"]) for one in entries.values())
        print(f"{device.id}: {name}: {ran} of {total} measured in {wall_s:.1f} s", flush=True)


def measure_again(
    device: DeviceDescription, space: SearchSpace, numbers: Sequence[int], *, runs: int
) -> dict[int, float]:
    """Measure some configurations once more, in turn, and give each one's time.

    The best of many noisy measurements is better on paper than in fact: what is compared with it
    must be measured beside it.
    """
    entries = _run(device, space, runs, frozenset(numbers))
    return {number: median(one["cpu_s"]) for number, one in entries.items() if one["cpu_s"]}


def _run(
    device: DeviceDescription, space: SearchSpace, runs: int, wanted: frozenset[int]
) -> dict[int, dict[str, Any]]:
    chosen = [one for one in space.configurations if one.number in wanted]
    problems = {one.number: one.problem for one in chosen if one.problem}
    entries: dict[int, dict[str, Any]] = {
        one.number: {
            "parameters": dict(one.parameters),
            "build_s": 0.0,
            "build_cpu_s": 0.0,
            "runs_s": [],
            "cpu_s": [],
            "obstacle": one.obstacle,
        }
        for one in chosen
    }

    def take(event: TuningEvent) -> None:
        entry = entries[event.number]
        if event.kind is EventKind.BUILT:
            entry["build_s"], entry["build_cpu_s"] = event.seconds, event.cpu_s
        elif event.kind is EventKind.RAN:
            entry["runs_s"].append(event.seconds)
            entry["cpu_s"].append(event.cpu_s)
        elif event.kind is EventKind.REFUSED:
            entry["obstacle"] = event.reason

    each = dict.fromkeys(problems, runs)
    run_on_device(device.id, problems, each, seed=0, timeout_s=TIMEOUT_S, take=take)
    return entries


def read_measured(path: Path) -> dict[str, Measured]:
    """Read a device's measurements, by example."""
    content = read_json(path)
    if content.get("schema") != SCHEMA:
        raise SystemExit(f"{path}: is no file of tuning measurements")
    return {name: _read_one(name, one) for name, one in content["examples"].items()}


def _read_one(name: str, content: dict[str, Any]) -> Measured:
    entries = dict(enumerate(content["configurations"]))
    ran = {number: one for number, one in entries.items() if one["cpu_s"]}
    return Measured(
        name=name,
        names=tuple(content["names"]),
        parameters={number: one["parameters"] for number, one in entries.items()},
        seconds={number: median(one["cpu_s"]) for number, one in ran.items()},
        build_s={number: one["build_cpu_s"] for number, one in entries.items()},
        run_s={number: sum(one["cpu_s"]) for number, one in ran.items()},
    )


def _compare(options: argparse.Namespace, examples: dict[str, Path]) -> Iterator[dict[str, Any]]:
    for device in choose_devices(options.device or DEVICES):
        path = FOLDER / f"{device.id}.json"
        if not path.exists():
            continue
        for name, measured in read_measured(path).items():
            if name not in examples or not measured.seconds:
                continue
            space = read_space(examples[name])
            report, cost_s = _tune(space, device, TuneSettings())
            row = {"device": device.id, "example": name, **_judge(measured, report, cost_s)}
            row["again"] = _confirm(device, space, measured, report)
            if not options.no_hybrid:
                settings = TuneSettings(models=TuneModels.HYBRID)
                row["hybrid"] = _judge(measured, *_tune(space, device, settings))
            budgets = {"same_count": TOP, "same_time": count_affordable(measured, row["top_s"])}
            row["searches"] = {
                name: {"count": count, "random": expect_random(measured, count)}
                for name, count in budgets.items()
            }
            print(
                f"{device.id}: {name}: pick {row['pick_share']:.1%}, top {TOP} "
                f"{row['top_share']:.1%} (again: {row['again']['pick_share']:.1%}, "
                f"{row['again']['top_share']:.1%}), {row['speedup']:.0f} times faster",
                flush=True,
            )
            yield row


def _tune(
    space: SearchSpace, device: DeviceDescription, settings: TuneSettings
) -> tuple[TuneReport, float]:
    """Rank configurations, and say what processor time that cost, child processes included."""
    before_s = _count_cpu()
    report = tune_on_device(space, device, settings=settings)
    return report, _count_cpu() - before_s


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
    device: DeviceDescription, space: SearchSpace, measured: Measured, report: TuneReport
) -> dict[str, Any]:
    """Measure ours and the best of the exhaustive search again, side by side."""
    ours = [one.number for one in report.configurations if one.number in measured.seconds][:TOP]
    best = sorted(measured.seconds, key=lambda one: measured.seconds[one])[:TOP]
    found = measure_again(device, space, sorted({*ours, *best}), runs=RUNS_AGAIN)
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
    pairs = [
        (one.predicted_s, measured.seconds[one.number])
        for one in report.configurations
        if one.predicted_s is not None and one.number in measured.seconds
    ]
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def expect_random(measured: Measured, count: int) -> float:
    """Give the median share of the best that so many random configurations reach.

    Notes
    -----
    Exact: the best of `count` without repeats is at least the k-th best with probability
    ``1 - C(n - k, count) / C(n, count)``.
    """
    ordered = sorted(measured.seconds.values())
    total = len(ordered)
    drawn = min(count, total)
    for place, seconds in enumerate(ordered, start=1):
        missed = math.comb(total - place, drawn) / math.comb(total, drawn)
        if 1 - missed >= 0.5:
            return ordered[0] / seconds
    return ordered[0] / ordered[-1]


def count_affordable(measured: Measured, budget_s: float) -> int:
    """Count the configurations that can be measured in a time, at their mean cost; at least 1."""
    numbers = list(measured.seconds)
    mean_s = measured.cost_s(numbers) / len(numbers)
    return max(1, min(len(numbers), round(budget_s / mean_s)))


def write_summary() -> str:
    """Write ``summary-cpu.md``."""
    content = read_json(FOLDER / "compared-cpu.json")
    rows, machine, top = content["rows"], content["machine"], content["top"]
    groups = {
        f"**{device.partition('-')[0]}, median**": [row for row in rows if row["device"] == device]
        for device in dict.fromkeys(row["device"] for row in rows)
    } | {"**all, median**": rows}
    lines = [
        "# Configurations chosen by models",
        "",
        f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['date']}, load "
        f"{machine['load_1_min']} when compared. Shares are of the best measured speed; times "
        "count builds. All times are processor times of all threads, since others used the "
        "machine; a configuration's is the median of its runs. `Measured again`: the chosen and "
        "the best ones once more, in turn; the best of many noisy measurements is better on paper "
        "than in fact.",
        "",
        *make_table(
            ["device", "example", "configurations", "pick", f"best of top {top}",
             "measured again: pick", f"best of top {top}", "best of all before",
             "median configuration", "rank correlation", "models", "exhaustive", "times faster",
             "hybrid pick", "hybrid, times faster"],
            [
                *((row["device"].partition("-")[0], row["example"], row["configurations"],
                   *_list_cells([row])) for row in rows),
                *((name, "", "", *_list_cells(own)) for name, own in groups.items()),
            ],
        ),
        "",
        f"Ours measures its top {top}. Random choice among the same measured times: the median, "
        "computed. `same time`: as many measurements as fit the time of ours.",
        "",
        *make_table(
            ["device", "example", f"ours, top {top}", f"random, {top}",
             "same time: measurements", "random"],
            (
                (row["device"].partition("-")[0], row["example"], f"{row['top_share']:.0%}",
                 f"{row['searches']['same_count']['random']:.0%}",
                 row["searches"]["same_time"]["count"],
                 f"{row['searches']['same_time']['random']:.0%}")
                for row in rows
            ),
        ),
    ]  # fmt: skip
    write_text(FOLDER / "summary-cpu.md", *lines)
    return "\n".join(lines)


def _list_cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    """List the scores of a row, or medians of several."""
    again, hybrid = (
        [row["again"] for row in rows],
        [row["hybrid"] for row in rows if "hybrid" in row],
    )
    columns = [
        (rows, "pick_share", ".0%", ""), (rows, "top_share", ".0%", ""),
        (again, "pick_share", ".0%", ""), (again, "top_share", ".0%", ""),
        (again, "exhaustive_share", ".0%", ""), (rows, "median_share", ".0%", ""),
        (rows, "rank_correlation", ".2f", ""), (rows, "models_s", ".1f", " s"),
        (rows, "exhaustive_s", ".0f", " s"), (rows, "speedup", ".0f", ""),
        (hybrid, "pick_share", ".0%", ""), (hybrid, "speedup", ".1f", ""),
    ]  # fmt: skip
    return [
        f"{median(float(one[key]) for one in own):{style}}{unit}" if own else ""
        for own, key, style, unit in columns
    ]


if __name__ == "__main__":
    main()
