"""How good the analytic CPU model is before anything ran, and the intervals that come with it.

Run ``python -m benchmarks static_estimates`` (seconds of one processor). Rows:
``training_data/modelled``, launches of ``measured`` whose analytic features were computed anew by
today's CPU model. Writes the intervals that are shipped (``models/evidence/analytic_errors.json``),
``results/static_estimates.json`` and ``.md``, and the tables of the page.

Intervals are judged on kernels that they were not calibrated on, all rows of a kernel on all
devices held out at once; *device left out* leaves that device's rows out as well, and *runtime left
out* those of its runtime, so that only its own calibration is known. Constants of the CPU model
were chosen on the rows of ``CHOSEN_ON``; other devices are quoted.

Lines that begin with *oracle* say what could be reached: the analytic time corrected by what was
measured of the same kernel, at other sizes on the same device, or on other devices. The first holds
what no model of source and device can know better; the second all that depends on kernel and
runtime, but not on the processor. *Always the device's median* is the median time of its rows:
sizes were chosen by how long they take.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from static_errors import find_errors, render_ratios, render_variances
from static_unseen import judge_unseen, read_unseen, render_unseen

from kernelcast.models.evidence.analytic_errors import (
    FILE,
    calibrate_errors,
    errors_to_json,
    find_half_width,
)
from kernelcast.models.regression import divide_groups, number_groups
from kernelcast.training.analytic_errors import ModelledRun, calibrate_runtimes, choose_runs
from kernelcast.training.reading import read_observations
from kernelcast.training.table import identify_problem

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT.parent / "src/kernelcast"
MODELLED = SOURCE / "training_data/modelled"
SHIPPED = SOURCE / "models/evidence" / FILE
CHOSEN_ON = ("pocl-skylake-avx512-amd-a2d1", "intel-amd-epyc-1512")
PAGE = ROOT.parent / "docs/explanation/static-estimates.md"
ANALYTIC, MEDIAN = "analytic", "always the device's median"
SHOWN = {
    ANALYTIC: "analytic",
    MEDIAN: "always its median",
    "oracle: the kernel's other sizes here": "oracle: another size",
    "oracle: the kernel's own runtime elsewhere": "oracle: its runtime elsewhere",
}
"""Lines of the page's table, with their titles."""
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
Told = dict[int, float]
"""Logarithm of the told over the measured time, by the launch's place."""
Key = Callable[[ModelledRun], str]


def main() -> None:
    """Calibrate, judge and write."""
    runs = choose_runs(read_observations([MODELLED]))
    text = errors_to_json(calibrate_runtimes(runs))
    SHIPPED.write_text(text + "\n", encoding="utf-8")
    found = measure(runs) | {"unseen": judge_unseen(read_unseen(calibrate_runtimes(runs, 1.0)))}
    results = ROOT / "results"
    text = json.dumps(found, indent=1) + "\n"
    (results / "static_estimates.json").write_text(text, encoding="utf-8")
    (results / "static_estimates.md").write_text(render(found), encoding="utf-8")
    put_into_page("devices", render_devices(found))
    put_into_page("unseen", render_unseen(found["unseen"]))


def measure(runs: Sequence[ModelledRun]) -> dict[str, Any]:
    """Judge every line on the rows of each device."""
    lines: dict[str, Told] = defaultdict(dict)
    _tell(runs, lines)
    _ask_oracles(runs, lines)
    inside = {name: _hold_out(runs, leaves) for name, leaves in LEFT_OUT.items()}
    return {
        "machine": describe_machine(),
        "chosen_on": list(CHOSEN_ON),
        "devices": _judge(runs, lines, inside, lambda one: one.device),
        "limiters": _judge(runs, lines, inside, find_limiter),
        "all": _judge(runs, lines, inside, lambda _: "all")["all"],
        "pairs": _compare_pairs(runs, lines[ANALYTIC]),
        "errors": find_errors(runs, lines[ANALYTIC]),
    }


def find_limiter(run: ModelledRun) -> str:
    """Give what takes longest by the analytic model, launches themselves left aside."""
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
    for places in _group(runs, lambda one: identify_problem(one.observation.launch)).values():
        for one, other in combinations(places, 2):
            ratio = math.log(runs[one].observation.seconds / runs[other].observation.seconds)
            if abs(ratio) >= math.log(DIFFERENT):
                right.append((ratio + told[one] - told[other]) * ratio > 0)
    return {"different": len(right), "right": float(np.mean(right))}


def render(found: dict[str, Any]) -> str:
    """Write tables."""
    lines = ["# Before anything runs", ""]
    for part in __doc__.split("\n\n")[2:]:
        lines += [*part.strip().splitlines(), ""]
    for device, one in found["devices"].items():
        chosen = ", chosen on" if device in found["chosen_on"] else ""
        lines += [
            f"## {device}", "",
            f"{one['rows']} rows of {one['kernels']} kernels{chosen}. 90 % intervals hold "
            f"{_list_holding(one)} %, kernels, device and runtime left out.", "",
            "| what tells | median | mean | within a factor 2 | bias |",
            "|---|---:|---:|---:|---:|",
            *(_row(name, told) for name, told in one["lines"].items() if told), "",
        ]  # fmt: skip
    for title, table in (
        ("By limiter", render_limiters(found)),
        ("Intervals", render_intervals(found)),
        ("Kernels that no rule was made for", render_unseen(found["unseen"])),
        ("Whose error it is", render_variances(found["errors"])),
        ("The same launch on two devices: deviation of the logarithm of its times' ratio",
         render_ratios(found["errors"])),
    ):  # fmt: skip
        lines += [f"## {title}", "", *table, ""]
    pairs = found["pairs"]
    return "\n".join([
        *lines, f"Of {pairs['different']} pairs of devices that differ by {DIFFERENT} times or "
        f"more on a launch, the faster one is named in {100 * pairs['right']:.0f} %.", "",
    ])  # fmt: skip


def render_limiters(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by limiter, over all devices."""
    lines = ["| limiter | rows | median | mean | within a factor 2 | bias | intervals hold |",
             "|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name, one in [*found["limiters"].items(), ("all", found["all"])]:
        begin, *cells = _row(name, one["lines"][ANALYTIC]).removesuffix(" |").split(" | ")
        cells = [begin, str(one["rows"]), *cells, f"{_list_holding(one)} %"]
        lines.append(" | ".join(cells) + " |")
    return lines


def render_devices(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by device."""
    lines = [f"| device | {' | '.join(SHOWN.values())} | intervals hold |",
             "|---|" + "---:|" * (len(SHOWN) + 1)]  # fmt: skip
    for device, one in [*found["devices"].items(), ("all", found["all"])]:
        cells = [
            f"{100 * told['median']:.0f} / {100 * told['mean']:.0f}" if told else ""
            for told in (one["lines"].get(name) for name in SHOWN)
        ]
        chosen = " (chosen on)" if device in found["chosen_on"] else ""
        lines.append(f"| `{device}`{chosen} | {' | '.join(cells)} | {_list_holding(one)} % |")
    return lines


def render_intervals(found: dict[str, Any]) -> list[str]:
    """Give a table of what intervals hold, by coverage."""
    lines = [f"| left out | {' | '.join(f'{100 * one:.0f} %' for one in COVERAGES)} |",
             "|---|" + "---:|" * len(COVERAGES)]  # fmt: skip
    for name, held in found["all"]["intervals_hold"].items():
        cells = " | ".join(f"{100 * held[one]:.0f} %" for one in COVERAGES)
        lines.append(f"| {name if name == 'kernels' else f'kernels, {name}'} | {cells} |")
    return lines


def _list_holding(found: dict[str, Any]) -> str:
    held = found["intervals_hold"].values()
    return ", ".join(f"{100 * one[COVERAGE]:.0f}" for one in held)


def put_into_page(name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the marks of a name on the page."""
    begin, end = (f"<!-- {one} {name}, by benchmarks/static_estimates.py -->"
                  for one in ("begin", "end"))  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    text = f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{after}"
    PAGE.write_text(text, encoding="utf-8")


def _row(name: str, told: dict[str, float]) -> str:
    return (
        f"| {name} | {100 * told['median']:.0f}% | {100 * told['mean']:.0f}% | "
        f"{100 * told['within_2']:.0f}% | {100 * told['bias']:+.0f}% |"
    )


if __name__ == "__main__":
    main()
