"""What bounds static estimates: whose error it is, and what a user's own observations tell of it.

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
from kernelcast.training.static import MeasuredLaunch
from kernelcast.training.table import identify_problem

DECOMPOSED = ("analytic", "learned", "device left out")
OBSERVED = (1, 3, 10, 30)
"""Kernels that a user has observed on a device."""
_DRAWS = 40
_PRIOR_KERNELS = 18.0
"""Variance of kernels on a device over that of devices: 0.37 over 0.02, when first decomposed."""
Told = dict[int, float]


def find_errors(
    launches: Sequence[MeasuredLaunch], lines: Mapping[str, Told]
) -> dict[str, dict[str, Any]]:
    """Decompose errors, compare devices, and add a user's observations."""
    return {
        "variance": {name: decompose(launches, lines[name]) for name in DECOMPOSED},
        "ratios": compare_devices(launches),
        "observed": {str(count): observe(launches, lines["device left out"], count)
                     for count in OBSERVED},
    }  # fmt: skip


def decompose(launches: Sequence[MeasuredLaunch], told: Told) -> dict[str, float]:
    """Give variances of the parts of an error, and their sum."""
    errors = _centre(launches, np.array([told[one] for one in range(len(launches))]))
    products: dict[str, list[float]] = defaultdict(list)
    differences: list[float] = []
    for one, other in combinations(range(len(launches)), 2):
        kind = _relate(launches[one], launches[other])
        if kind == "size":
            differences.append((errors[one] - errors[other]) ** 2 / 2)
        elif kind:
            products[kind].append(errors[one] * errors[other])
    everywhere, on_runtime, of_application = (
        float(np.mean(products[kind])) for kind in ("elsewhere", "runtime", "application")
    )
    noise, total = _find_noise(launches), float(np.var(errors))
    size = float(np.mean(differences))
    return {
        "device": float(np.var([told[one] for one in range(len(launches))])) - total,
        "application, on a device": of_application,
        "kernel": everywhere,
        "kernel on its runtime": on_runtime - everywhere,
        "kernel on its device": total - size - on_runtime,
        "size": max(size - noise, 0.0),
        "run": noise,
        "all, less the device": total,
    }


def _relate(one: MeasuredLaunch, other: MeasuredLaunch) -> str:
    is_here = one.row.device == other.row.device
    if one.row.kernel != other.row.kernel:
        same = one.row.application == other.row.application
        return "application" if same and is_here else ""
    if is_here:
        return "size"
    return "runtime" if one.row.runtime == other.row.runtime else "elsewhere"


def _centre(launches: Sequence[MeasuredLaunch], errors: Numbers) -> Numbers:
    devices = np.array([one.row.device for one in launches])
    found = errors.copy()
    for device in np.unique(devices):
        found[devices == device] -= np.median(errors[devices == device])
    return found


def _find_noise(launches: Sequence[MeasuredLaunch]) -> float:
    """Give the variance of one run's logarithm about the median of the row's others."""
    found = []
    for one in launches:
        logs = np.log(one.observation.runs.durations_s)
        if len(logs) > 2:
            found += [
                (logs[place] - np.median(np.delete(logs, place))) ** 2 for place in range(len(logs))
            ]
    return float(np.mean(found))


def compare_devices(launches: Sequence[MeasuredLaunch]) -> dict[str, dict[str, float]]:
    """Compare measured and analytic ratios of the same launch on two devices of a runtime."""
    by_problem: dict[str, dict[str, MeasuredLaunch]] = defaultdict(dict)
    for one in launches:
        by_problem[identify_problem(one.observation.launch)][one.row.device] = one
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group in by_problem.values():
        for first, second in combinations(sorted(group), 2):
            one, other = group[first].row, group[second].row
            if one.runtime == other.runtime:
                measured = math.log(one.seconds / other.seconds)
                pairs[f"{first}, {second}"].append((measured, measured - one.target + other.target))
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


def observe(
    launches: Sequence[MeasuredLaunch], told: Told, count: int
) -> dict[str, dict[str, float]]:
    """Shift answers for a device by what they get wrong of some kernels that were observed there.

    Applications of these kernels are not asked. The shift is the shrunk mean of their errors;
    before and after are means of devices, as medians and means of relative errors.
    """
    scores: dict[str, list[list[float]]] = {"before": [], "after": []}
    for device in sorted({one.row.device for one in launches}):
        own = [place for place, one in enumerate(launches) if one.row.device == device]
        kernels = sorted({launches[one].row.kernel for one in own})
        draw = np.random.default_rng(count)
        for _ in range(_DRAWS):
            chosen = {*draw.choice(kernels, min(count, len(kernels) - 10), replace=False).tolist()}
            seen = {launches[one].row.kernel: one for one in own
                    if launches[one].row.kernel in chosen}  # fmt: skip
            applications = {launches[one].row.application for one in seen.values()}
            asked = [one for one in own if launches[one].row.application not in applications]
            errors = np.array([told[one] for one in asked])
            shift = sum(told[one] for one in seen.values()) / (len(seen) + _PRIOR_KERNELS)
            for name, some in (("before", errors), ("after", errors - shift)):
                relative = np.abs(np.expm1(some))
                scores[name].append([float(np.median(relative)), float(relative.mean())])
    return {
        name: dict(zip(("median", "mean"), np.mean(some, axis=0).tolist(), strict=True))
        for name, some in scores.items()
    }


def render_variances(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Give the table of parts of an error."""
    variances = found["variance"]
    lines = [f"| variance of ln(told / measured) | {' | '.join(variances)} |",
             "|---|" + "---:|" * len(variances)]  # fmt: skip
    for part in variances[DECOMPOSED[0]]:
        cells = " | ".join(f"{one[part]:.3f}" for one in variances.values())
        lines.append(f"| {part} | {cells} |")
    return lines


def render_observed(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Give the table of what a user's observations change."""
    lines = ["| kernels observed on the device | other applications: as shipped | shifted |",
             "|---:|---:|---:|"]  # fmt: skip
    for count, scores in found["observed"].items():
        cells = [f"{100 * one['median']:.1f} / {100 * one['mean']:.1f}" for one in scores.values()]
        lines.append(f"| {count} | {' | '.join(cells)} |")
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
