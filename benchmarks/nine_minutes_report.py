"""Reports what `nine_minutes.py` brought back: tables, a plot, a machine description.

Run ``python -m benchmarks nine_minutes_report [FOLDER]``, by default ``results/h100``, where
``measurements.jsonl`` and ``plan.json`` of the run lie. ``--simulated`` reports on the simulated
GPU's launches instead, in ``results/h100_simulated``: the same code on other rows. Errors are
predicted over measured, less one.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import RESULTS, make_table, percent, summarise, write_text
from matplotlib.figure import Figure
from nine_minutes import STEPS, Measurements
from nine_minutes_kernels import list_stencils
from scipy.stats import kendalltau, spearmanr
from simulated_gpu_cases import GROUPS, make_cases, predict_left_out

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.models.linear import two_point
from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.problem import Problem
from kernelcast.records.training_table import make_table as make_training_table
from kernelcast.training_data.applications import find_kernels
from support.simulated_gpu import CLOCK_HZ, SECTOR_BYTES, SimulatedKernel, load_simulated_kernels

STAND_IN = "gh200"
"""Whose description models volumes where the machine was not calibrated."""
PROTOCOLS = (((2, 3), False), ((2, 3), True), ((2, 4), False), ((2, 4), True))
BEST = ((2, 4), True)
_SECTORS = {"sector": SECTOR_BYTES, "sectors": SECTOR_BYTES}
_UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, **_SECTORS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A launch with its windows and whole runs."""

    kernel: str
    size: int
    work_groups: int
    unit: int
    windows: Sequence[tuple[int, int, int, bool, int, float]]
    whole_s: Sequence[float]
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return median(self.whole_s)

    @property
    def noise(self) -> float:
        """Half the range from the 10th to the 90th percentile of whole runs over their median."""
        low, high = np.percentile(self.whole_s, [10, 90])
        return float(high - low) / 2 / self.seconds

    def predict(self, points: tuple[int, int], *, is_warmed: bool, place: int = -1) -> float | None:
        """Lay the line through windows of two lengths, of one place or of the mean of all."""
        ends = []
        for multiple in points:
            chosen = [
                (groups, seconds) for _, at, many, warmed, groups, seconds in self.windows
                if many == multiple and bool(warmed) == is_warmed and place in {-1, at}
            ]  # fmt: skip
            if not chosen:
                return None
            ends.append([float(np.mean(column)) for column in zip(*chosen, strict=True)])
        (n1, t1), (n2, t2) = ends
        return two_point(t1, t2, n1, n2, self.work_groups) if n1 != n2 else None

    def cost(self, points: tuple[int, int], *, is_warmed: bool) -> float:
        return (sum(points) + len(points) * is_warmed) * self.unit / self.work_groups


def read_sampled(rows: Iterable[Mapping[str, Any]], steps: Sequence[str]) -> list[Sampled]:
    """Read launches that were sampled and run, with counters where there are any."""
    counts = {row["kernel"]: row for row in read_counted(rows)}
    sampled = []
    for row in rows:
        if row["step"] in steps and row["result"].get("whole"):
            name, _, size = row["item"].rpartition(" ")
            if row["step"] == "tuning":
                name, size = row["item"], "0"
            result = row["result"]
            counted = counts.get(name, {}) if size == "0" else {}
            sampled.append(Sampled(
                kernel=name, size=int(size), work_groups=result["work_groups"],
                unit=result["unit"], windows=[tuple(one) for one in result["windows"]],
                whole_s=result["whole"],
                counts={
                    name: value / result["work_groups"]
                    for name, value in counted.items() if isinstance(value, float)
                },
            ))  # fmt: skip
    return sampled


def read_counted(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    counted = []
    for row in rows:
        if row["step"] != "counters":
            continue
        result, left = row["result"], list(row["result"]["kernels"])
        for name, function in zip(result["names"], result["functions"], strict=True):
            if not left or not left[0]["kernel"].startswith(function):
                continue  # its launch failed, and was not counted
            values: dict[str, Any] = {"kernel": name}
            for counter, found in left.pop(0).items():
                if counter != "kernel" and found[0]:
                    text, unit = found
                    values[counter] = float(text.replace(",", "")) * _UNITS.get(unit, 1.0)
            counted.append(values)
    return counted


def compare_volumes(
    counted: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], machine_name: str
) -> list[dict[str, Any]]:
    machine = read_machine(find_machine(machine_name))
    stencils: dict[str, Problem] = {one.name: one for one in list_stencils()}
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for one in counted:
            try:
                problem = stencils.get(one["kernel"]) or _make_problem(one["kernel"], plan, cache)
                volumes = compute_volumes(model_launch(problem), machine)
            except KernelcastError:
                continue
            rows.append({
                "kernel": one["kernel"], "model_read": volumes.dram_load_bytes,
                "model_written": volumes.dram_store_bytes, "read": one.get("dram_read_bytes", 0.0),
                "written": one.get("dram_written_bytes", 0.0),
            })  # fmt: skip
    return rows


def _make_problem(name: str, plan: Mapping[str, Any], cache: str) -> Problem:
    [kernel] = find_kernels(name)
    sizes = plan.get(name, {}).get("sizes", [{}])
    return prepare_launch(
        kernel, sizes[0], local_size=kernel.local_sizes[0], cache_folder=Path(cache)
    ).problem


def read_simulated() -> tuple[list[Sampled], list[dict[str, Any]]]:
    """Make the same rows of the simulated GPU: launches, and volumes of model and simulator."""
    with tempfile.TemporaryDirectory() as cache:
        cases = make_cases(load_simulated_kernels(), Path(cache))
    sampled, volumes = [], []
    for case in cases:
        kernel, counters = case.kernel, case.whole.counters
        sampled.append(Sampled(
            kernel=kernel.name, size=0, work_groups=kernel.work_groups, unit=kernel.concurrency,
            windows=list(_list_windows(kernel)), whole_s=[case.whole.cycles / CLOCK_HZ],
            counts={name: count / kernel.work_groups for name, count in counters.items()},
        ))  # fmt: skip
        volumes.append({
            "kernel": kernel.name,
            "model_read": case.volumes.loaded_bytes * kernel.work_groups,
            "model_written": case.volumes.count_written_bytes(kernel.work_groups),
            "read": float(counters["dram_read_sectors"] * SECTOR_BYTES),
            "written": float(counters["dram_written_sectors"] * SECTOR_BYTES),
        })  # fmt: skip
    return sampled, volumes


def _list_windows(kernel: SimulatedKernel) -> Iterable[tuple[int, int, int, bool, int, float]]:
    unit = kernel.concurrency
    for multiple in (2, 3, 4):
        first = kernel.find(0, multiple * unit)
        if first is not None:
            yield 0, 0, multiple, False, first.work_groups, first.cycles / CLOCK_HZ
        for place, run in enumerate(kernel.list_windows(multiple)):
            yield 0, place, multiple, True, run.work_groups, run.cycles / CLOCK_HZ


def learn_left_out(sampled: Sequence[Sampled]) -> dict[tuple[str, int], tuple[float, float]]:
    """Correct each launch by an epsilon-SVR of the other kernels; errors before and after."""
    chosen, features = [], []
    for one in sampled:
        plain = one.predict(BEST[0], is_warmed=True)
        if plain is not None and plain > 0:
            chosen.append((one, plain))
            features.append(_describe(one, plain))
    names = sorted({name for one in features for name in one})
    if len(chosen) < 10:
        return {}
    table = make_training_table(
        FeatureSchema(names=tuple(names), version=1),
        [[one.get(name, 0.0) for name in names] for one in features],
        {
            "keys": [f"{one.kernel} {one.size}" for one, _ in chosen],
            "kernels": [one.kernel for one, _ in chosen],
            "seconds": [one.seconds for one, _ in chosen],
            "linear_s": np.array([plain for _, plain in chosen]),
        },
    )
    found = predict_left_out(table, is_gated=True)
    return {
        (one.kernel, one.size): (plain / one.seconds - 1, float(seconds) / one.seconds - 1)
        for (one, plain), seconds in zip(chosen, found, strict=True)
    }


def _describe(one: Sampled, plain: float) -> dict[str, float]:
    """Describe samples by ratios that mean the same on all kernels, and counters per second."""

    def time_of(multiple: int, *, is_warmed: bool) -> float:
        times = [
            seconds for _, _, many, warmed, _, seconds in one.windows
            if many == multiple and bool(warmed) == is_warmed
        ]  # fmt: skip
        return float(np.mean(times)) if times else 0.0

    warm, cold = time_of(2, is_warmed=True), time_of(2, is_warmed=False)
    group_s = plain / one.work_groups
    by_place = [
        seconds for place in range(8)
        if (seconds := one.predict(BEST[0], is_warmed=True, place=place)) is not None
    ]  # fmt: skip
    rates = {
        f"{GROUPS[1]}.{name}_per_s": count / group_s for name, count in one.counts.items()
        if name not in {"seconds", "registers"}
    }  # fmt: skip
    return {
        "sampled.growth_ratio": time_of(4, is_warmed=True) / warm if warm else 0.0,
        "sampled.cold_ratio": cold / warm if warm else 0.0,
        "sampled.intercept_ratio": warm / (2 * one.unit * group_s) - 1,
        "sampled.places_ratio": float(np.std(by_place) / np.mean(by_place)) if by_place else 0.0,
        "sampled.fills_ratio": one.work_groups / one.unit,
        **rates,
    }


def list_sampling(sampled: Sequence[Sampled]) -> list[str]:
    rows = []
    for size in sorted({one.size for one in sampled}):
        for points, is_warmed in PROTOCOLS:
            errors, single, costs, noise = {}, [], [], []
            for one in sampled:
                seconds = one.predict(points, is_warmed=is_warmed)
                if one.size != size or seconds is None:
                    continue
                errors[one.kernel] = seconds / one.seconds - 1
                places = [one.predict(points, is_warmed=is_warmed, place=at) for at in range(8)]
                single.append(median(abs(p / one.seconds - 1) for p in places if p is not None))
                costs.append(one.cost(points, is_warmed=is_warmed))
                noise.append(one.noise)
            if errors:
                found = summarise(errors)
                rows.append((
                    size, f"{points[0]} and {points[1]}", "warmed" if is_warmed else "cold",
                    found["kernels"], f"{_show(np.mean(single))}, {_show(median(single))}",
                    f"{_show(found['mean'])}, {_show(found['median'])}",
                    f"{_show(found['worst'])} {found['worst_kernel']}", _show(median(noise)),
                    _show(median(costs)),
                ))  # fmt: skip
    return [
        "## Samples against whole runs", "",
        "Lines through windows of two lengths in P_sat: at one place (median over places), and"
        " through the means of all places and rounds.", "",
        *make_table(
            ["size", "P_sat", "caches", "launches", "one place: mean, median", "all: mean, median",
             "worst", "noise", "cost"],
            rows,
        ),
        "",
    ]  # fmt: skip


def list_volumes(volumes: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["## Volumes of DRAM, model over counters", ""]
    for name in ("read", "written"):
        ratios = np.array([
            one[f"model_{name}"] / one[name] for one in volumes
            if one[name] > 1e4 and one[f"model_{name}"] > 0
        ])  # fmt: skip
        if len(ratios):
            near = np.mean(np.abs(np.log(ratios)) < np.log(1.1))
            low, middle, high = np.percentile(ratios, [10, 50, 90])
            lines.append(
                f"- {name}: {len(ratios)} launches, median {middle:.2f}, 10 to 90 % {low:.2f} to"
                f" {high:.2f}, {near:.0%} within 10 %"
            )
    columns = ("read", "model_read", "written", "model_written")
    rows = ((one["kernel"], *(f"{one[column] / 1e6:.2f}" for column in columns)) for one in volumes)
    return [
        *lines, "", *make_table(["launch", "read, MB", "model", "written, MB", "model"], rows), "",
    ]  # fmt: skip


def list_saturation(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    known = {
        row["item"]: row["result"] for row in rows
        if row["step"] == "saturation"
        and row["result"].get("by_driver") and row["result"].get("by_rules")
    }  # fmt: skip
    if not known:
        return []
    columns = ("by_driver", "by_rules", "registers", "limiter")
    other = [
        (name, *(one[column] for column in columns))
        for name, one in known.items()
        if one["by_rules"] != one["by_driver"]
    ]
    return [
        "## P_sat by rules and by the driver", "",
        f"{len(known) - len(other)} of {len(known)} kernels agree.", "",
        *make_table(["kernel", "driver", "rules", "registers", "limited by"], other), "",
    ]  # fmt: skip


def list_learning(learned: Mapping[tuple[str, int], tuple[float, float]]) -> list[str]:
    if not learned:
        return []
    before, after = (np.abs([one[at] for one in learned.values()]) for at in (0, 1))
    gains = before - after
    draws = np.random.default_rng(0).integers(0, len(gains), (2000, len(gains)))
    low, high = np.percentile(gains[draws].mean(axis=1), [2.5, 97.5])
    return [
        "## An epsilon-SVR, one kernel left out at a time", "",
        f"Lines through warmed windows of {BEST[0][0]} and {BEST[0][1]} P_sat, {len(gains)}"
        f" launches: mean {_show(before.mean())} to {_show(after.mean())}, median"
        f" {_show(np.median(before))} to {_show(np.median(after))}; the mean gain is"
        f" {100 * gains.mean():.2f} points [{100 * low:.2f}, {100 * high:.2f}].", "",
    ]  # fmt: skip


def list_tuning(configurations: Sequence[Sampled]) -> list[str]:
    """Tabulate what it costs to choose configurations by samples instead of whole runs."""
    rows = []
    for name in sorted({one.kernel.split()[0] for one in configurations}):
        ones = [one for one in configurations if one.kernel.split()[0] == name]
        pairs = [(one.predict(BEST[0], is_warmed=True) or one.seconds, one) for one in ones]
        best_s = min(one.seconds for one in ones)
        chosen = min(pairs, key=lambda pair: pair[0])[1]
        tau = kendalltau([pair[0] for pair in pairs], [one.seconds for one in ones]).statistic
        mean = float(np.mean([one.seconds for one in ones])) / best_s
        rows.append(
            (name, len(ones), f"{chosen.seconds / best_s:.3f}", f"{mean:.2f}", f"{tau:.2f}")
        )
    headings = ["kernel", "configurations", "chosen over best", "mean over best", "tau"]
    title = "## Configurations chosen by samples"
    return [title, "", *make_table(headings, rows), ""] if rows else []


def list_others(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    orders, answers = [], []
    for row in rows:
        result = row["result"]
        outcome = result.get("outcome") or {}
        starts = outcome.get("starts_seconds") or outcome.get("starts_s")
        if row["step"] == "dispatch" and starts:
            order = spearmanr(range(len(starts)), starts).statistic
            orders.append(
                (row["item"], len(starts), f"{order:.4f}", result["p_sat"], result["run_length"])
            )
        if row["step"] == "answers" and result.get("answer"):
            answer = result["answer"]
            seconds = (answer[0] if isinstance(answer, list) else answer)["seconds"]
            whole_s = median(result["whole"])
            answers.append((
                row["item"], f"{result['seconds']:.1f}", f"{1e3 * seconds:.3f}",
                f"{1e3 * whole_s:.3f}", _show(seconds / whole_s - 1),
            ))  # fmt: skip
    lines = []
    if orders:
        headings = ["kernel", "work-groups", "correlation", "P_sat", "run length"]
        lines += ["## Dispatch", "", "Rank correlation of begins with the order by rows.", "",
                  *make_table(headings, orders), ""]  # fmt: skip
    if answers:
        headings = ["problem", "wall, s", "predicted, ms", "measured, ms", "error"]
        lines += ["## First answers", "", *make_table(headings, answers), ""]
    return lines


def list_steps(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    table = []
    for step in STEPS:
        own = [row for row in rows if row["step"] == step.name]
        took_s = sum(row["seconds"] for row in own if row["status"] == "step")
        counts = [row["count"] for row in own if row["status"] == "listed"]
        done = len({row["item"] for row in own if row["status"] == "done"})
        items = counts[-1] if counts else None
        table.append((step.name, f"{step.planned_s:.0f}", f"{took_s:.1f}", items, done))
    headings = ["step", "planned, s", "took, s", "items", "done"]
    return ["## Steps", "", *make_table(headings, table), ""] if rows else []


def draw(
    path: Path, sampled: Sequence[Sampled], volumes: Sequence[Mapping[str, Any]],
    learned: Mapping[tuple[str, int], tuple[float, float]],
) -> None:  # fmt: skip
    """Draw the errors of each kernel, and the model's volumes over the counted ones."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    axis, other = figure.subplots(2, 1, height_ratios=(3, 2))
    first = [one for one in sampled if one.size == 0]
    first.sort(key=lambda one: one.predict((2, 3), is_warmed=False) or 0.0)
    names = [one.kernel for one in first]
    for label, marker, errors in (
        ("2 and 3 P_sat, cold", "o", [_error(one, (2, 3), is_warmed=False) for one in first]),
        ("2 and 4 P_sat, warmed", "v", [_error(one, (2, 4), is_warmed=True) for one in first]),
        ("with the SVR", "D", [learned.get((name, 0), (0, np.nan))[1] for name in names]),
    ):
        axis.plot(range(len(names)), 100 * np.array(errors, dtype=float), marker, label=label,
                  markersize=4)  # fmt: skip
    axis.axhspan(-5, 5, color="grey", alpha=0.2)
    axis.set_ylim(-60, 60)
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axis.set_ylabel("predicted over measured, less 1, %")
    axis.legend(fontsize=8)
    for name, marker in (("read", "o"), ("written", "v")):
        pairs = [
            (one[name], one[f"model_{name}"]) for one in volumes if one[name] > 1e4
        ]  # fmt: skip
        if pairs:
            counted, modelled = np.array(pairs).T
            other.semilogx(counted / 1e6, modelled / counted, marker, label=name, markersize=4)
    other.axhline(1, color="grey", linewidth=0.8)
    other.set(xlabel="counted, MB", ylabel="model over counted", ylim=(0, 2.5))
    if other.get_legend_handles_labels()[0]:
        other.legend(fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _error(one: Sampled, points: tuple[int, int], *, is_warmed: bool) -> float:
    seconds = one.predict(points, is_warmed=is_warmed)
    return float("nan") if seconds is None else seconds / one.seconds - 1


def _show(share: float | np.floating[Any]) -> str:
    return percent(float(share), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=RESULTS / "h100")
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    folder: Path = RESULTS / "h100_simulated" if options.simulated else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows, every, configurations = [], [], []
    if options.simulated:
        sampled, volumes = read_simulated()
        title = "The report of nine minutes, on the simulated GPU"
    else:
        every = Measurements(folder / "measurements.jsonl").refresh()
        rows = [row for row in every if row["status"] == "done"]
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        machines = [row["result"]["machine"] for row in rows if row["result"].get("machine")]
        if machines:
            (folder / "machine.yaml").write_text(machines[-1], encoding="utf-8")
        sampled = read_sampled(rows, ("sampling", "more"))
        configurations = read_sampled(rows, ("tuning",))
        volumes = compare_volumes(read_counted(rows), plan, STAND_IN)
        title = "Nine minutes on a GPU"
    learned = learn_left_out(sampled)
    lines = [
        f"# {title}", "", *list_sampling(sampled), *list_learning(learned),
        *list_saturation(rows), *list_tuning(configurations), *list_others(rows),
        *list_steps(every), *list_volumes(volumes),
    ]  # fmt: skip
    write_text(folder / "summary.md", *lines)
    draw(folder / "errors.png", sampled, volumes, learned)


if __name__ == "__main__":
    main()
