"""What bounds static estimates: whose error it is.

Part of ``static_estimates.py``, which calls it. The logarithm of told over measured time, less the
median of its device, is taken as a sum of independent errors: of the kernel on all devices, of the
kernel on a runtime, of the kernel on a device, of the size, and of a run. Pairs of launches that
share some of these tell their variances: the mean product of two launches of a kernel on different
runtimes is the variance of what a kernel's error has in common everywhere, and so on.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from kernelcast.records.training_table import Numbers
from kernelcast.training.analytic_errors import ModelledRun
from kernelcast.training.table import identify_problem

TOTAL = "all, less the device"
Told = dict[int, float]


def find_errors(runs: Sequence[ModelledRun], told: Told) -> dict[str, dict[str, Any]]:
    """Decompose errors, and compare devices."""
    return {"variance": decompose(runs, told), "ratios": compare_devices(runs)}


def decompose(runs: Sequence[ModelledRun], told: Told) -> dict[str, float]:
    """Give variances of the parts of an error, and their sum."""
    errors = _centre(runs, np.array([told[one] for one in range(len(runs))]))
    products: dict[str, list[float]] = defaultdict(list)
    differences: list[float] = []
    for one, other in combinations(range(len(runs)), 2):
        kind = _relate(runs[one], runs[other])
        if kind == "size":
            differences.append((errors[one] - errors[other]) ** 2 / 2)
        elif kind:
            products[kind].append(errors[one] * errors[other])
    everywhere, on_runtime, of_application = (
        float(np.mean(products[kind])) for kind in ("elsewhere", "runtime", "application")
    )
    noise, total = _find_noise(runs), float(np.var(errors))
    size = float(np.mean(differences))
    return {
        "device": float(np.var([told[one] for one in range(len(runs))])) - total,
        "application, on a device": of_application,
        "kernel": everywhere,
        "kernel on its runtime": on_runtime - everywhere,
        "kernel on its device": total - size - on_runtime,
        "size": max(size - noise, 0.0),
        "run": noise,
        TOTAL: total,
    }


def _relate(one: ModelledRun, other: ModelledRun) -> str:
    is_here = one.device == other.device
    if one.kernel != other.kernel:
        same = one.kernel.rpartition("/")[0] == other.kernel.rpartition("/")[0]
        return "application" if same and is_here else ""
    if is_here:
        return "size"
    return "runtime" if one.runtime == other.runtime else "elsewhere"


def _centre(runs: Sequence[ModelledRun], errors: Numbers) -> Numbers:
    devices = np.array([one.device for one in runs])
    found = errors.copy()
    for device in np.unique(devices):
        found[devices == device] -= np.median(errors[devices == device])
    return found


def _find_noise(runs: Sequence[ModelledRun]) -> float:
    """Give the variance of one run's logarithm about the median of the row's others."""
    found = []
    for one in runs:
        logs = np.log(one.observation.runs.durations_s)
        if len(logs) > 2:
            found += [
                (logs[place] - np.median(np.delete(logs, place))) ** 2 for place in range(len(logs))
            ]
    return float(np.mean(found))


def compare_devices(runs: Sequence[ModelledRun]) -> dict[str, dict[str, float]]:
    """Compare measured and analytic ratios of the same launch on two devices of a runtime."""
    by_problem: dict[str, dict[str, ModelledRun]] = defaultdict(dict)
    for one in runs:
        by_problem[identify_problem(one.observation.launch)][one.device] = one
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group in by_problem.values():
        for first, second in combinations(sorted(group), 2):
            one, other = group[first], group[second]
            if one.runtime == other.runtime:
                measured = math.log(one.observation.seconds / other.observation.seconds)
                pairs[f"{first}, {second}"].append((measured, measured - one.error + other.error))
    return {
        name: {
            "launches": len(ratios),
            "measured_deviation": float(np.std([one for one, _ in ratios])),
            "analytic_deviation": float(np.std([one for _, one in ratios])),
            "correlation": float(np.corrcoef(np.array(ratios).T)[0, 1]),
        }
        for name, ratios in sorted(pairs.items())
        if len(ratios) > 4
    }


def render_variances(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Give the table of parts of an error."""
    parts = found["variance"]
    every = parts[TOTAL]
    lines = ["| variance of ln(told / measured) | analytic | share |", "|---|---:|---:|"]
    for name, one in parts.items():
        share = "" if name == "device" else f"{100 * one / every:.0f} %"
        lines.append(f"| {name} | {one:.3f} | {share} |")
    return lines


def render_ratios(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Give the table of ratios between devices."""
    lines = ["| devices | launches | measured | analytic | correlation |",
             "|---|---:|---:|---:|---:|"]  # fmt: skip
    lines += [
        f"| {name} | {one['launches']} | {one['measured_deviation']:.2f} | "
        f"{one['analytic_deviation']:.2f} | {one['correlation']:.2f} |"
        for name, one in found["ratios"].items()
    ]
    return lines
