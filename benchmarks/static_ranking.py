"""Which configuration of a kernel is fastest, told without running any of them.

Run ``python -m benchmarks static_ranking`` (some minutes of one processor). The measured times are
those of ``results/tuning``: every configuration of ``examples/tuning`` on four devices, by
processor time. Two models that need no samples rank them: the cost model of `kernelcast tune`,
which was developed with ``tuning_kernels``, and the analytic model of estimates.

A group is what somebody chooses among: local sizes of one variant, variants at one local size, or
all of both. Writes ``results/static_ranking.json`` and ``.md``.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, make_table, percent, write_result, write_text
from scipy.stats import kendalltau
from tuning import FOLDER, Measured, find_examples, read_measured

from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.launches.machines import read_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import choose_local_size, model_kernel
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.tuning.ranking import cost_launch
from kernelcast.tuning.space import read_space

MEASURED = Path(__file__).resolve().parent.parent / "src/kernelcast/training_data/measured"
LOCAL_SIZES = frozenset({"LX", "LY", "LZ"})
MODELS = ("tune's cost model", "analytic")
KINDS: Mapping[str, Callable[[str], bool]] = {
    "local sizes of one variant": lambda name: name not in LOCAL_SIZES,
    "variants at one local size": lambda name: name in LOCAL_SIZES,
    "all configurations": lambda _: False,
}
"""By what is chosen: whether a parameter is the same throughout a group."""
FEWEST = 3
Told = dict[str, dict[int, float]]
"""Seconds by model and configuration."""


def main() -> None:
    """Rank, judge, write."""
    spaces = {name: read_space(path) for name, path in find_examples().items()}
    rows: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("*-*.json")):
        if not (MEASURED / f"{path.stem}.yaml").exists():
            continue
        machine = read_machine(MEASURED / f"{path.stem}.yaml")
        for name, measured in read_measured(path).items():
            problems = {one.number: one.problem for one in spaces[name].configurations
                        if one.problem is not None and one.number in measured.seconds}  # fmt: skip
            told = tell(problems, machine)
            rows += [*judge(measured, told, path.stem)]
            print(path.stem, name, flush=True)
    write_result(RESULTS / "static_ranking.json", {"groups": rows})
    write_text(RESULTS / "static_ranking.md", *render(rows))


def tell(problems: Mapping[int, Problem], machine: MachineDescription) -> Told:
    """Give the times of all models; what one cannot model it ranks last."""
    device = read_device(machine)
    told: Told = {name: {} for name in MODELS}
    for number, problem in problems.items():
        for name, seconds in _tell_one(problem, machine, device).items():
            told[name][number] = seconds
    return told


def _tell_one(problem: Problem, machine: MachineDescription, device: CpuDevice) -> dict[str, float]:
    found = dict.fromkeys(MODELS, math.inf)
    with suppress(KernelcastError):
        kernel = model_kernel(problem)
        ndrange, _ = choose_local_size(problem.ndrange, kernel.facts)
        with suppress(KernelcastError):
            found["tune's cost model"] = cost_launch(kernel, ndrange, device).seconds
        found["analytic"] = estimate_analytically(kernel.launch(), machine).seconds
    return found


def judge(measured: Measured, told: Told, device: str) -> Iterator[dict[str, Any]]:
    """Judge every group of a space that has enough configurations."""
    for kind, is_fixed in KINDS.items():
        groups: dict[tuple[tuple[str, float], ...], list[int]] = defaultdict(list)
        for number in measured.seconds:
            values = sorted(measured.parameters[number].items())
            groups[tuple(one for one in values if is_fixed(one[0]))].append(number)
        for numbers in groups.values():
            if len(numbers) >= FEWEST:
                yield {
                    "device": device, "example": measured.name, "kind": kind,
                    "configurations": len(numbers),
                    "usual_speed": _speed_of_usual(measured, numbers),
                    "models": {name: _judge(measured, told[name], numbers) for name in MODELS},
                }  # fmt: skip


def _speed_of_usual(measured: Measured, numbers: Sequence[int]) -> float:
    """Give the speed of a configuration chosen blindly, as a share of the best."""
    seconds = np.array([measured.seconds[one] for one in numbers])
    return float(seconds.min() / np.median(seconds))


def _judge(measured: Measured, told: Mapping[int, float], numbers: Sequence[int]) -> dict[str, Any]:
    seconds = np.array([measured.seconds[one] for one in numbers])
    guessed = np.array([told.get(one, math.inf) for one in numbers])
    pick = int(guessed.argmin())
    guesses = np.where(np.isfinite(guessed), guessed, 1e9)
    tau = kendalltau(seconds, guesses).statistic
    return {
        "speed": float(seconds.min() / seconds[pick]),
        "is_best": bool(seconds[pick] <= seconds.min()),
        "kendall_tau": None if math.isnan(tau) else float(tau),
    }


def render(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the tables."""
    lines = ["# Which configuration is fastest, without running any", "",
             *(__doc__ or "").split("\n\n")[1].splitlines(), "",
             "Speeds are shares of the best of a group, medians over groups; *regret* is what the "
             "mean pick loses; *blind* is the group's median configuration."]  # fmt: skip
    for kind in KINDS:
        own = [one for one in rows if one["kind"] == kind]
        table = []
        for device in [*sorted({one["device"] for one in own}), "all"]:
            some = [one for one in own if device in {"all", one["device"]}]
            blind = float(np.median([one["usual_speed"] for one in some]))
            table += [
                (device, len(some), percent(blind), name,
                 *_summarise([one["models"][name] for one in some]))
                for name in MODELS
            ]  # fmt: skip
        headings = ["device", "groups", "blind", "model", "speed of pick", "regret", "best picked",
                    "Kendall's tau"]  # fmt: skip
        lines += ["", f"## {kind.capitalize()}", "", *make_table(headings, table)]
    return lines


def _summarise(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    speeds = np.array([one["speed"] for one in found])
    taus = [one["kendall_tau"] for one in found if one["kendall_tau"] is not None]
    return (
        percent(float(np.median(speeds))), percent(float(1 - speeds.mean())),
        percent(float(np.mean([one["is_best"] for one in found]))), f"{np.mean(taus):.2f}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
