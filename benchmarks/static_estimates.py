"""What is known of a launch's time before anything ran: the analytic model, and what it learns.

Run ``python benchmarks/static_estimates.py`` (about a minute of one processor); ``--train``
writes the models that are shipped. Rows: ``training_data/modelled``, launches of ``measured`` whose
analytic features were computed anew by today's CPU model. Writes ``results/static_estimates.json``
and ``.md``.

Kernels are held out with all their rows, on all devices at once; *device left out* leaves that
device's rows out as well, so that only its calibration is known. Constants of the CPU model, cost
and width of the regressor were chosen on the rows of ``CHOSEN_ON``; other devices are quoted.

Lines that begin with *oracle* say what could be reached: the analytic time corrected by what was
measured of the same kernel, at other sizes on the same device, or on other devices. The first holds
what no model of source and device can know better; the second all that depends on kernel and
runtime, but not on the processor.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from cpu_time import least_us
from machine import describe_machine
from scipy.stats import kendalltau
from sklearn.ensemble import ExtraTreesRegressor
from static_speed import CALIBRATED, time_examples

from kernelcast.launches.machine_file import read_machine
from kernelcast.models.static.describing import ESTIMATE, classify, describe
from kernelcast.models.static.model import StaticRow, fit_static, hold_out
from kernelcast.models.static.stored import static_to_json
from kernelcast.training.reading import read_observations
from kernelcast.training.static import MeasuredLaunch, read_launches, train_static
from kernelcast.training.table import identify_problem

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT.parent / "src/kernelcast"
MODELLED = SOURCE / "training_data/modelled"
MEASURED = SOURCE / "training_data/measured"
SHIPPED = SOURCE / "models/static/shipped"
CHOSEN_ON = ("pocl-skylake-avx512-amd-a2d1", "intel-amd-epyc-1512")
PAGE = ROOT.parent / "docs/explanation/static-estimates.md"
SHOWN = (
    ("analytic", "analytic"),
    ("learned, of its runtime", "learned, kernels left out"),
    ("device left out, of its runtime", "device left out too"),
    ("oracle: the kernel's other sizes here", "oracle: another size"),
    ("oracle: the kernel's own runtime elsewhere", "oracle: its runtime elsewhere"),
)
"""Lines of the page's table, with their titles."""
FOLDS = 10
DIFFERENT = 1.5
Told = dict[int, float]
"""Logarithm of the told over the measured time, by the launch's place."""


def main() -> None:
    """Measure, or train the shipped models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", action="store_true")
    launches = read_launches([MODELLED])
    if parser.parse_args().train:
        SHIPPED.mkdir(exist_ok=True)
        for name, model in train_static(launches).items():
            (SHIPPED / f"{name}.json").write_text(static_to_json(model) + "\n", encoding="utf-8")
        return
    found = measure(launches)
    results = ROOT / "results"
    text = json.dumps(found, indent=1) + "\n"
    (results / "static_estimates.json").write_text(text, encoding="utf-8")
    (results / "static_estimates.md").write_text(render(found), encoding="utf-8")
    put_into_page("devices", render_devices(found))
    put_into_page("classes", render_classes(found))


def measure(launches: Sequence[MeasuredLaunch]) -> dict[str, Any]:
    """Judge every line on the rows of each device."""
    lines: dict[str, Told] = defaultdict(dict)
    inside: dict[int, bool] = {}
    _tell_without_learning(launches, lines)
    _ask_oracles(launches, lines)
    for part in hold_out([one.row for one in launches], FOLDS):
        train = [launches[place] for place in part.train]
        for name in sorted({launches[place].runtime for place in part.test}):
            asked = [place for place in part.test if launches[place].runtime == name]
            own = [one for one in train if one.runtime == name]
            for place, error, holds in _ask(own, launches, asked):
                lines["learned, of its runtime"][place] = error
                inside[place] = holds
        for place, error, _ in _ask(train, launches, part.test.tolist()):
            lines["learned, of all"][place] = error
        _grow_trees(train, launches, part.test.tolist(), lines["trees, of its runtime"])
        for device in sorted({launches[place].device_id for place in part.test}):
            asked = [place for place in part.test if launches[place].device_id == device]
            others = [one for one in train if one.device_id != device]
            alike = [one for one in others if one.runtime == launches[asked[0]].runtime]
            for place, error, _ in _ask(alike, launches, asked):
                lines["device left out, of its runtime"][place] = error
            for place, error, _ in _ask(others, launches, asked):
                lines["device left out, of all"][place] = error
    return {
        "machine": describe_machine(),
        "chosen_on": list(CHOSEN_ON),
        "devices": {
            device: {
                "rows": len(places),
                "kernels": len({launches[one].row.kernel for one in places}),
                "lines": {name: _score([told[one] for one in places if one in told])
                          for name, told in lines.items()},
                "intervals_hold": float(np.mean([inside[one] for one in places])),
            }
            for device, places in _group(launches, lambda one: one.device_id)
        },
        "classes": {
            kind: {name: _score([lines[name][one] for one in places])
                   for name in ("analytic", "learned, of its runtime")}
            for kind, places in [*_group(launches, lambda one: str(classify(one.row.features))),
                                 ("all", [*range(len(launches))])]
        },
        "devices_ranked": {name: _rank_devices(launches, lines[name])
                           for name in ("analytic", "learned, of its runtime", "learned, of all",
                                        "trees, of its runtime")},
        "speed_us": _time(launches),
    }  # fmt: skip


def _tell_without_learning(launches: Sequence[MeasuredLaunch], lines: dict[str, Told]) -> None:
    before = {
        one.key: one.features.as_dict().get(ESTIMATE)
        for one in read_observations([MEASURED])
        if one.features is not None
    }
    usual = {device: float(np.median([launches[one].row.seconds for one in places]))
             for device, places in _group(launches, lambda one: one.device_id)}  # fmt: skip
    for place, one in enumerate(launches):
        seconds, old_s = one.row.seconds, before.get(one.observation.key)
        if old_s:
            lines["analytic, as stored before"][place] = math.log(old_s / seconds)
        lines["analytic"][place] = math.log(one.row.features[ESTIMATE] / seconds)
        lines["always the device's median"][place] = math.log(usual[one.device_id] / seconds)


def _ask_oracles(launches: Sequence[MeasuredLaunch], lines: dict[str, Told]) -> None:
    """Correct the analytic time by what was measured of the kernel elsewhere."""
    for kernel in [places for _, places in _group(launches, lambda one: one.row.kernel)]:
        for place in kernel:
            one = launches[place]
            same, alike, others = [], [], []
            for other in kernel:
                if other == place:
                    continue
                error = _target(launches[other].row)
                is_here = launches[other].device_id == one.device_id
                (same if is_here else others).append(error)
                if not is_here and launches[other].runtime == one.runtime:
                    alike.append(error)
            for name, errors in (("other sizes here", same), ("own runtime elsewhere", alike),
                                 ("other devices", others)):  # fmt: skip
                if errors:
                    told = float(np.mean(errors)) - _target(one.row)
                    lines[f"oracle: the kernel's {name}"][place] = told


def _ask(
    train: Sequence[MeasuredLaunch], launches: Sequence[MeasuredLaunch], places: Sequence[int]
) -> Iterator[tuple[int, float, bool]]:
    """Give place, error and whether the interval holds."""
    if not train:
        return
    model = fit_static([one.row for one in train])
    for place in places:
        row = launches[place].row
        answer = model.predict(row.features)
        error = answer.log_seconds - math.log(row.seconds)
        yield place, error, abs(error) <= answer.half_width


def _grow_trees(
    train: Sequence[MeasuredLaunch],
    launches: Sequence[MeasuredLaunch],
    places: Sequence[int],
    told: Told,
) -> None:
    for name in sorted({launches[place].runtime for place in places}):
        rows = [one.row for one in train if one.runtime == name]
        asked = [place for place in places if launches[place].runtime == name]
        trees = ExtraTreesRegressor(
            200, max_features=0.3, min_samples_leaf=2, n_jobs=1, random_state=0
        )
        trees.fit([describe(one.features) for one in rows], [_target(one) for one in rows])
        corrections = trees.predict([describe(launches[one].row.features) for one in asked])
        for place, correction in zip(asked, corrections, strict=True):
            told[place] = float(correction) - _target(launches[place].row)


def _target(row: StaticRow) -> float:
    return math.log(row.seconds / row.features[ESTIMATE])


def _group(
    launches: Sequence[MeasuredLaunch], key: Callable[[MeasuredLaunch], str]
) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(launches):
        found[key(one)].append(place)
    return sorted(found.items())


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


def _rank_devices(launches: Sequence[MeasuredLaunch], told: Told) -> dict[str, float]:
    """Compare devices that one launch was measured on."""
    groups = _group(launches, lambda one: identify_problem(one.observation.launch))
    several = [places for _, places in groups if len(places) > 1]
    return {**_rank(launches, told, several), **_compare_pairs(launches, told, several)}


def _rank(
    launches: Sequence[MeasuredLaunch], told: Told, groups: Sequence[Sequence[int]]
) -> dict[str, float]:
    best, speeds, taus = [], [], []
    for places in groups:
        measured = np.array([launches[one].row.seconds for one in places])
        guessed = measured * np.exp([told[one] for one in places])
        best.append(guessed.argmin() == measured.argmin())
        speeds.append(measured.min() / measured[guessed.argmin()])
        if len(places) > 2:
            taus.append(kendalltau(measured, guessed).statistic)
    if not best:
        return {"groups": 0}
    return {
        "groups": len(best),
        "first_right": float(np.mean(best)),
        "median_speed_of_best": float(np.median(speeds)),
        "mean_speed_of_best": float(np.mean(speeds)),
        **({"kendall_tau": float(np.nanmean(taus))} if taus else {}),
    }


def _compare_pairs(
    launches: Sequence[MeasuredLaunch], told: Told, groups: Sequence[Sequence[int]]
) -> dict[str, float]:
    right = []
    for places in groups:
        for one, other in combinations(places, 2):
            ratio = math.log(launches[one].row.seconds / launches[other].row.seconds)
            if abs(ratio) >= math.log(DIFFERENT):
                right.append((ratio + told[one] - told[other]) * ratio > 0)
    return {"different_pairs": len(right), "pairs_right": float(np.mean(right)) if right else 0.0}


def _time(launches: Sequence[MeasuredLaunch]) -> dict[str, float]:
    """Time an answer of the model of a runtime: processor time, least of 20 rounds."""
    model = fit_static([one.row for one in launches if one.runtime == launches[0].runtime])
    features = launches[0].row.features
    columns = describe(features)[None]
    works: dict[str, Callable[[], object]] = {
        "answer": lambda: model.predict(features), "describe": lambda: describe(features),
        "correct": lambda: model.correct(columns),
    }  # fmt: skip
    told = {name: least_us(work, times=50) for name, work in works.items()}
    return {
        **told,
        "a launch of the examples, median": float(
            np.median([us for _, us in time_examples(read_machine(CALIBRATED))])
        ),
    }


def render(found: dict[str, Any]) -> str:
    """Write tables."""
    lines = ["# Before anything runs", "", *__doc__.split("\n\n")[2].splitlines(), ""]
    for device, one in found["devices"].items():
        chosen = ", chosen on" if device in found["chosen_on"] else ""
        lines += [
            f"## {device}", "",
            f"{one['rows']} rows of {one['kernels']} kernels{chosen}. 90 % intervals of the model "
            f"of its runtime hold {100 * one['intervals_hold']:.0f} %.", "",
            "| what tells | median | mean | within a factor 2 | bias |",
            "|---|---:|---:|---:|---:|",
            *(_row(name, told) for name, told in one["lines"].items() if told), "",
        ]  # fmt: skip
    lines += ["## By class of work", "", *render_classes(found)]
    lines += ["", "## Which device is faster", ""]
    for name, told in found["devices_ranked"].items():
        cells = ", ".join(f"{what} {value:.3g}" for what, value in told.items())
        lines.append(f"* {name}: {cells}")
    cells = ", ".join(f"{name} {value:.0f}" for name, value in found["speed_us"].items())
    return "\n".join([*lines, "", f"Microseconds of processor time: {cells}.", ""])


def render_classes(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by class of work, over all devices."""
    lines = ["| class of work | rows | analytic: median, mean, within a factor 2 | learned |",
             "|---|---:|---:|---:|"]  # fmt: skip
    for kind, told in found["classes"].items():
        cells = [
            f"{100 * one['median']:.0f}, {100 * one['mean']:.0f}, {100 * one['within_2']:.0f} %"
            for one in told.values()
        ]
        lines.append(f"| {kind} | {told['analytic']['rows']} | {' | '.join(cells)} |")
    return lines


def render_devices(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by device."""
    lines = [f"| device | {' | '.join(title for _, title in SHOWN)} | intervals hold |",
             "|---|" + "---:|" * (len(SHOWN) + 1)]  # fmt: skip
    for device, one in found["devices"].items():
        cells = [
            f"{100 * told['median']:.0f} / {100 * told['mean']:.0f}" if told else ""
            for told in (one["lines"].get(name) for name, _ in SHOWN)
        ]
        chosen = " (chosen on)" if device in found["chosen_on"] else ""
        held = f"{100 * one['intervals_hold']:.0f} %"
        lines.append(f"| `{device}`{chosen} | {' | '.join(cells)} | {held} |")
    return lines


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
