"""What is known of a launch's time before anything ran: the analytic model, and what it learns.

Run ``python benchmarks/static_estimates.py`` (about five minutes of one processor); ``--train``
writes the models that are shipped. Rows: ``training_data/modelled``, launches of ``measured`` whose
analytic features were computed anew by today's CPU model. Writes ``results/static_estimates.json``
and ``.md``.

Kernels are held out with all their rows, on all devices at once; *device left out* leaves that
device's rows out as well, so that only its calibration is known. Where it says *applications*,
kernels of the same application, which resemble each other, are held out together. Constants of
the CPU model and the width of the regressor were chosen on the rows of ``CHOSEN_ON``, its cost on
half of the kernels; other devices are quoted.

Lines that begin with *oracle* say what could be reached: the analytic time corrected by what was
measured of the same kernel, at other sizes on the same device, or on other devices. The first holds
what no model of source and device can know better; the second all that depends on kernel and
runtime, but not on the processor.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from cpu_time import least_us
from machine import describe_machine
from scipy.stats import kendalltau
from sklearn.ensemble import ExtraTreesRegressor
from static_errors import find_errors, render_observed, render_ratios, render_variances
from static_speed import CALIBRATED, time_examples

from kernelcast.launches.machine_file import read_machine
from kernelcast.models.learned.learner import Part
from kernelcast.models.static.describing import ESTIMATE, classify, describe
from kernelcast.models.static.fitting import Unseen, find_unseen, fit_static, hold_out
from kernelcast.models.static.model import StaticModel
from kernelcast.models.static.stored import load_shipped, static_to_json
from kernelcast.training.reading import read_observations
from kernelcast.training.static import MeasuredLaunch, read_launches
from kernelcast.training.table import identify_problem

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT.parent / "src/kernelcast"
MODELLED = SOURCE / "training_data/modelled"
MEASURED = SOURCE / "training_data/measured"
SHIPPED = SOURCE / "models/static/shipped.json"
CHOSEN_ON = ("pocl-skylake-avx512-amd-a2d1", "intel-amd-epyc-1512")
PAGE = ROOT.parent / "docs/explanation/static-estimates.md"
SHOWN = (
    ("analytic", "analytic"),
    ("learned", "learned, kernels left out"),
    ("device left out", "device left out too"),
    ("oracle: the kernel's other sizes here", "oracle: another size"),
    ("oracle: the kernel's own runtime elsewhere", "oracle: its runtime elsewhere"),
)
"""Lines of the page's table, with their titles."""
FOLDS = 10
LEARNED = ("learned", "device left out")
DIFFERENT = 1.5
Told = dict[int, float]
"""Logarithm of the told over the measured time, by the launch's place."""


def main() -> None:
    """Measure, or train the shipped models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", action="store_true")
    launches = read_launches([MODELLED])
    if parser.parse_args().train:
        text = static_to_json(fit_static([one.row for one in launches]))
        SHIPPED.write_text(text + "\n", encoding="utf-8")
        return
    found = measure(launches)
    results = ROOT / "results"
    text = json.dumps(found, indent=1) + "\n"
    (results / "static_estimates.json").write_text(text, encoding="utf-8")
    (results / "static_estimates.md").write_text(render(found), encoding="utf-8")
    put_into_page("devices", render_devices(found))
    put_into_page("classes", render_classes(found))
    put_into_page("variances", render_variances(found["errors"]))
    put_into_page("observed", render_observed(found["errors"]))


def measure(launches: Sequence[MeasuredLaunch]) -> dict[str, Any]:
    """Judge every line on the rows of each device."""
    lines: dict[str, Told] = defaultdict(dict)
    inside: dict[str, dict[int, bool]] = {name: {} for name in LEARNED}
    _tell_without_learning(launches, lines)
    _ask_oracles(launches, lines)
    rows = [one.row for one in launches]
    for part in hold_out(rows, FOLDS):
        unseen = find_unseen([rows[place] for place in part.train])
        _hold_out(launches, part, unseen, lines, inside)
        _grow_trees([launches[one] for one in part.train], launches, part.test.tolist(),
                    lines["trees, of its runtime"])  # fmt: skip
    everything = find_unseen(rows)  # for intervals that nobody reads
    for part in hold_out(rows, FOLDS, by_application=True):
        found: dict[str, Told] = defaultdict(dict)
        _hold_out(launches, part, everything, found, {name: {} for name in LEARNED})
        for name, told in found.items():
            lines[f"{name}, applications left out"] |= told
    return {
        "machine": describe_machine(),
        "chosen_on": list(CHOSEN_ON),
        "devices": _judge(launches, lines, inside, lambda one: one.row.device),
        "classes": _judge(launches, lines, inside, lambda one: str(classify(one.row.features))),
        "all": _judge(launches, lines, inside, lambda one: "all")["all"],
        "devices_ranked": {name: _rank_devices(launches, lines[name])
                           for name in ("analytic", *LEARNED, "trees, of its runtime")},
        "errors": find_errors(launches, lines),
        "speed_us": _time(launches),
    }  # fmt: skip


def _hold_out(
    launches: Sequence[MeasuredLaunch],
    part: Part,
    unseen: Unseen,
    lines: dict[str, Told],
    inside: dict[str, dict[int, bool]],
) -> None:
    """Ask models that have not seen a part of the kernels; some not the device either.

    The intervals of those are calibrated on rows of other devices; the fits that told these rows'
    errors have seen other kernels on the device, which changes an interval's width a little and
    no answer.
    """
    train = [launches[place].row for place in part.train]
    models = fit_static(train, unseen)
    for device in sorted({launches[place].row.device for place in part.test}):
        asked = [place for place in part.test if launches[place].row.device == device]
        runtime = launches[asked[0]].row.runtime
        others = [one for one in train if one.device != device]
        without = fit_static(others, unseen.without(device))
        for name, model in zip(LEARNED, (models[runtime], without[runtime]), strict=True):
            for place in asked:
                error, holds = _ask(model, launches[place])
                lines[name][place], inside[name][place] = error, holds


def _ask(model: StaticModel, launch: MeasuredLaunch) -> tuple[float, bool]:
    """Give the error, and whether the interval holds."""
    answer = model.predict(launch.row.features)
    error = answer.log_seconds - math.log(launch.row.seconds)
    return error, abs(error) <= answer.half_width


def _judge(
    launches: Sequence[MeasuredLaunch],
    lines: dict[str, Told],
    inside: dict[str, dict[int, bool]],
    key: Callable[[MeasuredLaunch], str],
) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "rows": len(places),
            "kernels": len({launches[one].row.kernel for one in places}),
            "lines": {line: _score([told[one] for one in places if one in told])
                      for line, told in lines.items()},
            "intervals_hold": {line: float(np.mean([held[one] for one in places]))
                               for line, held in inside.items()},
        }
        for name, places in _group(launches, key)
    }  # fmt: skip


def _tell_without_learning(launches: Sequence[MeasuredLaunch], lines: dict[str, Told]) -> None:
    before = {
        one.key: one.features.as_dict().get(ESTIMATE)
        for one in read_observations([MEASURED])
        if one.features is not None
    }
    usual = {device: float(np.median([launches[one].row.seconds for one in places]))
             for device, places in _group(launches, lambda one: one.row.device)}  # fmt: skip
    for place, one in enumerate(launches):
        seconds, old_s = one.row.seconds, before.get(one.observation.key)
        if old_s:
            lines["analytic, as stored before"][place] = math.log(old_s / seconds)
        lines["analytic"][place] = math.log(one.row.features[ESTIMATE] / seconds)
        lines["always the device's median"][place] = math.log(usual[one.row.device] / seconds)


def _ask_oracles(launches: Sequence[MeasuredLaunch], lines: dict[str, Told]) -> None:
    """Correct the analytic time by what was measured of the kernel elsewhere."""
    for kernel in [places for _, places in _group(launches, lambda one: one.row.kernel)]:
        for place in kernel:
            one = launches[place]
            same, alike, others = [], [], []
            for other in kernel:
                if other == place:
                    continue
                error = launches[other].row.target
                is_here = launches[other].row.device == one.row.device
                (same if is_here else others).append(error)
                if not is_here and launches[other].row.runtime == one.row.runtime:
                    alike.append(error)
            for name, errors in (("other sizes here", same), ("own runtime elsewhere", alike),
                                 ("other devices", others)):  # fmt: skip
                if errors:
                    told = float(np.mean(errors)) - one.row.target
                    lines[f"oracle: the kernel's {name}"][place] = told


def _grow_trees(
    train: Sequence[MeasuredLaunch],
    launches: Sequence[MeasuredLaunch],
    places: Sequence[int],
    told: Told,
) -> None:
    for name in sorted({launches[place].row.runtime for place in places}):
        rows = [one.row for one in train if one.row.runtime == name]
        asked = [place for place in places if launches[place].row.runtime == name]
        trees = ExtraTreesRegressor(
            200, max_features=0.3, min_samples_leaf=2, n_jobs=1, random_state=0
        )
        trees.fit([describe(one.features) for one in rows], [one.target for one in rows])
        corrections = trees.predict([describe(launches[one].row.features) for one in asked])
        for place, correction in zip(asked, corrections, strict=True):
            told[place] = float(correction) - launches[place].row.target


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
    model = load_shipped()[launches[0].row.runtime]
    features = launches[0].row.features
    works: dict[str, Callable[[], object]] = {
        "answer": lambda: model.predict(features), "describe": lambda: describe(features),
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
            f"{one['rows']} rows of {one['kernels']} kernels{chosen}. 90 % intervals hold "
            f"{_list_holding(one)} %, device left out.", "",
            "| what tells | median | mean | within a factor 2 | bias |",
            "|---|---:|---:|---:|---:|",
            *(_row(name, told) for name, told in one["lines"].items() if told), "",
        ]  # fmt: skip
    lines += ["## By class of work", "", *render_classes(found)]
    for title, table in (
        ("Whose error it is", render_variances),
        ("The same launch on two devices: deviation of the logarithm of its times' ratio",
         render_ratios),
        ("What kernels observed on a device tell of others", render_observed),
    ):  # fmt: skip
        lines += ["", f"## {title}", "", *table(found["errors"])]
    lines += ["", "## Which device is faster", ""]
    for name, told in found["devices_ranked"].items():
        cells = ", ".join(f"{what} {value:.3g}" for what, value in told.items())
        lines.append(f"* {name}: {cells}")
    cells = ", ".join(f"{name} {value:.0f}" for name, value in found["speed_us"].items())
    return "\n".join([*lines, "", f"Microseconds of processor time: {cells}.", ""])


def render_classes(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by class of work, over all devices."""
    lines = ["| class of work | rows | analytic: median, mean, within a factor 2 | learned "
             "| device left out too | intervals hold |",
             "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for kind, told in [*found["classes"].items(), ("all", found["all"])]:
        scores = [told["lines"][name] for name in ("analytic", *LEARNED)]
        cells = [
            f"{100 * one['median']:.0f}, {100 * one['mean']:.0f}, {100 * one['within_2']:.0f} %"
            for one in scores
        ]
        held = _list_holding(told)
        lines.append(f"| {kind} | {told['rows']} | {' | '.join(cells)} | {held} % |")
    return lines


def render_devices(found: dict[str, Any]) -> list[str]:
    """Give a table of errors by device."""
    lines = [f"| device | {' | '.join(title for _, title in SHOWN)} | intervals hold |",
             "|---|" + "---:|" * (len(SHOWN) + 1)]  # fmt: skip
    for device, one in [*found["devices"].items(), ("all", found["all"])]:
        cells = [
            f"{100 * told['median']:.0f} / {100 * told['mean']:.0f}" if told else ""
            for told in (one["lines"].get(name) for name, _ in SHOWN)
        ]
        chosen = " (chosen on)" if device in found["chosen_on"] else ""
        lines.append(f"| `{device}`{chosen} | {' | '.join(cells)} | {_list_holding(one)} % |")
    return lines


def _list_holding(found: dict[str, Any]) -> str:
    return ", ".join(f"{100 * found['intervals_hold'][name]:.0f}" for name in LEARNED)


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
