"""How good the analytic CPU model is before anything ran, and the intervals that come with it.

Run ``python -m benchmarks static_estimates`` (seconds of one processor). Rows:
``training_data/modelled``, launches of ``measured`` whose analytic features were computed anew by
today's CPU model. Writes the intervals that are shipped (``models/evidence/analytic_errors.json``),
``results/static_estimates.json`` and ``.md``.

Intervals are judged on kernels that they were not calibrated on, all rows of a kernel on all
devices held out at once; *device left out* leaves that device's rows out as well, and *runtime left
out* those of its runtime, so that only its own calibration is known. Constants of the CPU model
were chosen on the rows of ``CHOSEN_ON``; other devices are quoted.

Lines that begin with *oracle* say what could be reached: the analytic time corrected by what was
measured of the same kernel, at other sizes on the same device, or on other devices. The first holds
what no model of source and device can know better; the second all that depends on kernel and
runtime, but not on the processor. *Always the device's median* is the median time of its rows:
sizes were chosen by how long they take.

*Whose error it is*: the logarithm of told over measured time, less the median of its device, is
taken as a sum of independent errors: of the kernel on all devices, of the kernel on a runtime, of
the kernel on a device, of the size, and of a run. Pairs of launches that share some of these tell
their variances: the mean product of two launches of a kernel on different runtimes is the variance
of what a kernel's error has in common everywhere, and so on.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, make_table, percent, write_result, write_text

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.model import ANY, FILE, SIGNS_OF_DIFFICULTY, find_half_width
from kernelcast.models.regression import Calibration, calibrate, divide_groups, number_groups
from kernelcast.models.versioned_files import CONVERTER
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import Numbers
from kernelcast.training.registry import name_runtime
from kernelcast.training.table import read_cpu_model, read_observations

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/kernelcast"
MODELLED = SOURCE / "training_data/modelled"
SHIPPED = SOURCE / "models/evidence" / FILE
CHOSEN_ON = ("pocl-skylake-avx512-amd-a2d1", "intel-amd-epyc-1512")
ANALYTIC, MEDIAN = "analytic", "always the device's median"
SHOWN = {
    ANALYTIC: "analytic",
    MEDIAN: "always its median",
    "oracle: the kernel's other sizes here": "oracle: another size",
    "oracle: the kernel's own runtime elsewhere": "oracle: its runtime elsewhere",
}
"""Lines of the table by device, with their titles."""
BEYOND_CORPUS = 2.0
"""How much farther off the model is on kernels that no rule of it was made for, whatever the
runtime: the rules were chosen on the corpus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledRun:
    """A launch that was measured, with its analytic time."""

    observation: Observation
    error: float
    """Natural logarithm of the measured time over that of today's analytic model."""

    @property
    def kernel(self) -> str:
        return self.observation.launch.kernel.label

    @property
    def device(self) -> str:
        return self.observation.launch.device.id

    @property
    def runtime(self) -> str:
        return name_runtime(self.device)


LEFT_OUT: dict[str, Callable[[ModelledRun, ModelledRun], bool]] = {
    "kernels": lambda _, __: False,
    "device": lambda one, asked: one.device == asked.device,
    "runtime": lambda one, asked: one.runtime == asked.runtime,
}
"""What intervals have not seen beside a kernel: whether a run is left out for one that is asked."""
COVERAGES = (0.5, 0.8, 0.9, 0.95)
COVERAGE = 0.9
FOLDS = 10
DIFFERENT = 1.5
_LIMITER = "_limiter_s"
TOTAL = "all, less the device"
Told = dict[int, float]
"""Logarithm of the told over the measured time, by the launch's place."""
Key = Callable[[ModelledRun], str]


def main() -> None:
    """Calibrate, judge and write."""
    runs = choose_runs(read_observations([MODELLED]))
    shipped = {
        name: {
            key: np.asarray(value).round(5).tolist()
            for key, value in CONVERTER.unstructure(one).items()
        }
        for name, one in calibrate_runtimes(runs).items()
    }
    write_text(SHIPPED, json.dumps(shipped))
    found = measure(runs)
    write_result(RESULTS / "static_estimates.json", found)
    write_text(RESULTS / "static_estimates.md", *render(found))


def choose_runs(observations: Iterable[Observation]) -> list[ModelledRun]:
    """Choose launches whose analytic features are of today's CPU model."""
    found = []
    for one in observations:
        features = {} if one.features is None else one.features.as_dict()
        analytic_s = features.get("analytic.estimate_s", 0.0)
        if read_cpu_model(one) == REVISION and analytic_s > 0:
            found.append(ModelledRun(observation=one, error=math.log(one.seconds / analytic_s)))
    return found


def calibrate_errors(errors: Numbers, kernels: Sequence[str]) -> Calibration:
    """Make intervals of errors that are known; each kernel weighs the same."""
    groups = number_groups(np.array(kernels, dtype=np.object_))
    no_signs = np.zeros((len(errors), SIGNS_OF_DIFFICULTY))
    return calibrate(errors, no_signs, np.ones(len(errors)), groups).thin()


def calibrate_runtimes(runs: Sequence[ModelledRun]) -> dict[str, Calibration]:
    """Make intervals of the analytic model's times by runtime, and those of all together."""
    by_runtime: dict[str, list[ModelledRun]] = {ANY: [*runs]}
    for one in runs:
        by_runtime.setdefault(one.runtime, []).append(one)
    return {
        name: calibrate_errors(
            BEYOND_CORPUS * np.array([one.error for one in some]), [one.kernel for one in some]
        )
        for name, some in by_runtime.items()
    }


def measure(runs: Sequence[ModelledRun]) -> dict[str, Any]:
    """Judge every line on the rows of each device."""
    lines: dict[str, Told] = defaultdict(dict)
    _tell(runs, lines)
    _ask_oracles(runs, lines)
    inside = {name: _hold_out(runs, leaves) for name, leaves in LEFT_OUT.items()}
    return {
        "chosen_on": list(CHOSEN_ON),
        "devices": _judge(runs, lines, inside, lambda one: one.device),
        "limiters": _judge(runs, lines, inside, find_limiter),
        "all": _judge(runs, lines, inside, lambda _: "all")["all"],
        "pairs": _compare_pairs(runs, lines[ANALYTIC]),
        "errors": {"variance": decompose(runs, lines[ANALYTIC]), "ratios": compare_devices(runs)},
    }


def find_limiter(run: ModelledRun) -> str:
    """Find what takes longest by the analytic model, launches themselves left aside."""
    assert run.observation.features is not None
    limiters = {
        name.removeprefix("analytic.").removesuffix(_LIMITER): seconds
        for name, seconds in run.observation.features.as_dict().items()
        if name.endswith(_LIMITER) and math.isfinite(seconds)
    }
    return max(limiters, key=limiters.__getitem__)


def _tell(runs: Sequence[ModelledRun], lines: dict[str, Told]) -> None:
    for places in _group(runs, lambda one: one.device).values():
        usual_s = float(np.median([runs[one].observation.seconds for one in places]))
        for place in places:
            lines[ANALYTIC][place] = -runs[place].error
            lines[MEDIAN][place] = math.log(usual_s / runs[place].observation.seconds)


def _ask_oracles(runs: Sequence[ModelledRun], lines: dict[str, Told]) -> None:
    """Correct the analytic time by what was measured of the kernel elsewhere."""
    wanted: dict[str, Callable[[ModelledRun, ModelledRun], bool]] = {
        "other sizes here": lambda one, other: one.device == other.device,
        "own runtime elsewhere": lambda one, other: (
            one.runtime == other.runtime and one.device != other.device
        ),
        "other devices": lambda one, other: one.device != other.device,
    }
    for kernel in _group(runs, lambda one: one.kernel).values():
        for place in kernel:
            others = [runs[other] for other in kernel if other != place]
            for name, counts in wanted.items():
                errors = [other.error for other in others if counts(runs[place], other)]
                if errors:
                    told = float(np.mean(errors)) - runs[place].error
                    lines[f"oracle: the kernel's {name}"][place] = told


def _hold_out(
    runs: Sequence[ModelledRun], leaves_out: Callable[[ModelledRun, ModelledRun], bool]
) -> dict[float, dict[int, bool]]:
    """Tell which rows lie inside intervals, by coverage, calibrated on other kernels' rows."""
    inside: dict[float, dict[int, bool]] = {one: {} for one in COVERAGES}
    kernels = number_groups(np.array([one.kernel for one in runs], dtype=np.object_))
    for train, test in divide_groups(kernels, FOLDS):
        asked = _group([runs[one] for one in test], lambda one: one.device)
        for places in asked.values():
            places = [int(test[one]) for one in places]
            one = runs[places[0]]
            seen = [runs[other] for other in train if not leaves_out(runs[other], one)]
            own = [other for other in seen if other.runtime == one.runtime] or seen
            known = calibrate_errors(
                np.array([other.error for other in own]), [other.kernel for other in own]
            )
            for coverage, held in inside.items():
                width = find_half_width(known, coverage)
                held |= {place: abs(runs[place].error) <= width for place in places}
    return inside


def _judge(
    runs: Sequence[ModelledRun],
    lines: dict[str, Told],
    inside: dict[str, dict[float, dict[int, bool]]],
    key: Key,
) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "rows": len(places),
            "kernels": len({runs[one].kernel for one in places}),
            "lines": {line: _score([told[one] for one in places if one in told])
                      for line, told in lines.items()},
            "intervals_hold": {
                what: {coverage: float(np.mean([held[one] for one in places]))
                       for coverage, held in by_coverage.items()}
                for what, by_coverage in inside.items()
            },
        }
        for name, places in _group(runs, key).items()
    }  # fmt: skip


def _group(runs: Sequence[ModelledRun], key: Key) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(runs):
        found[key(one)].append(place)
    return dict(sorted(found.items()))


def _score(errors: Sequence[float]) -> dict[str, float]:
    if not errors:
        return {}
    logs = np.array(errors)
    relative = np.abs(np.expm1(logs))
    return {
        "rows": len(logs),
        "median": float(np.median(relative)),
        "mean": float(np.mean(relative)),
        "within_2": float(np.mean(np.abs(logs) <= math.log(2))),
        "bias": float(np.mean(logs)),
    }


def _compare_pairs(runs: Sequence[ModelledRun], told: Told) -> dict[str, float]:
    """Say of how many pairs of devices, far apart on a launch, the faster one is named."""
    right = []
    for places in _group(runs, lambda one: one.observation.launch.problem_key).values():
        for one, other in combinations(places, 2):
            ratio = math.log(runs[one].observation.seconds / runs[other].observation.seconds)
            if abs(ratio) >= math.log(DIFFERENT):
                right.append((ratio + told[one] - told[other]) * ratio > 0)
    return {"different": len(right), "right": float(np.mean(right))}


def decompose(runs: Sequence[ModelledRun], told: Told) -> dict[str, float]:
    """Compute the variances of the parts of an error, and their sum."""
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
    """Compute the variance of one run's logarithm about the median of the row's others."""
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
        by_problem[one.observation.launch.problem_key][one.device] = one
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


def list_tables(found: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """List the tables of all devices: titles and lines."""
    every = found["all"]
    scores = ["median", "mean", "within a factor 2", "bias"]
    rows = [
        (f"`{device}`{' (chosen on)' if device in found['chosen_on'] else ''}",
         *(f"{100 * told['median']:.0f} / {100 * told['mean']:.0f}" if told else ""
           for told in map(one["lines"].get, SHOWN)),
         f"{_list_holding(one)} %")
        for device, one in [*found["devices"].items(), ("all", every)]
    ]  # fmt: skip
    headings = ["device", *SHOWN.values(), "intervals hold"]
    yield "By device", make_table(headings, rows)
    rows = [
        (name, str(one["rows"]), *_list_scores(one["lines"][ANALYTIC]), f"{_list_holding(one)} %")
        for name, one in [*found["limiters"].items(), ("all", every)]
    ]
    headings = ["limiter", "rows", *scores, "intervals hold"]
    yield "By limiter", make_table(headings, rows)
    rows = [
        (
            name if name == "kernels" else f"kernels, {name}",
            *(percent(held[one]) for one in COVERAGES),
        )
        for name, held in every["intervals_hold"].items()
    ]
    yield "Intervals", make_table(["left out", *map(percent, COVERAGES)], rows)
    parts = found["errors"]["variance"]
    rows = [
        (name, f"{one:.3f}", "" if name == "device" else percent(one / parts[TOTAL]))
        for name, one in parts.items()
    ]
    headings = ["variance of ln(told / measured)", "analytic", "share"]
    yield "Whose error it is", make_table(headings, rows)


def render(found: dict[str, Any]) -> Iterator[str]:
    """Write all tables."""
    yield "# Before anything runs"
    for part in (__doc__ or "").split("\n\n")[2:]:
        yield from ("", *part.strip().splitlines())
    for device, one in found["devices"].items():
        chosen = ", chosen on" if device in found["chosen_on"] else ""
        rows = [(name, *_list_scores(told)) for name, told in one["lines"].items() if told]
        yield from (
            "", f"## {device}", "",
            f"{one['rows']} rows of {one['kernels']} kernels{chosen}. 90 % intervals hold "
            f"{_list_holding(one)} %, kernels, device and runtime left out.", "",
            *make_table(["what tells", "median", "mean", "within a factor 2", "bias"], rows),
        )  # fmt: skip
    for title, lines in list_tables(found):
        yield from ("", f"## {title}", "", *lines)
    rows = [
        (name, one["launches"], f"{one['measured_deviation']:.2f}",
         f"{one['analytic_deviation']:.2f}", f"{one['correlation']:.2f}")
        for name, one in found["errors"]["ratios"].items()
    ]  # fmt: skip
    pairs = found["pairs"]
    yield from (
        "", "## The same launch on two devices: deviation of the logarithm of its times' ratio", "",
        *make_table(["devices", "launches", "measured", "analytic", "correlation"], rows), "",
        f"Of {pairs['different']} pairs of devices that differ by {DIFFERENT} times or "
        f"more on a launch, the faster one is named in {100 * pairs['right']:.0f} %.",
    )  # fmt: skip


def _list_holding(found: dict[str, Any]) -> str:
    held = found["intervals_hold"].values()
    return ", ".join(f"{100 * one[COVERAGE]:.0f}" for one in held)


def _list_scores(told: dict[str, float]) -> tuple[str, ...]:
    return (
        percent(told["median"]), percent(told["mean"]), percent(told["within_2"]),
        percent(told["bias"], sign=True),
    )  # fmt: skip


if __name__ == "__main__":
    main()
