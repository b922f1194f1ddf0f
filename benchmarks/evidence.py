"""What pieces of evidence say of stored rows, alone and fused, beside one whole run.

Run ``python benchmarks/evidence.py --data FILE...`` (the shipped rows unless given; about two
minutes of processor time a device); ``--only-tables`` renders the files again. Undisturbed rows of
today's sampler of at least 0.1 s and 256 work-groups. Writes ``results/evidence/<device>.json``,
``summary.md`` and ``errors.svg``.

Kernels are held out with all their rows: variances, settings of sizes, intervals, gate and
correction are fitted on the others (ten parts; intervals and correction by five parts within).
Which sets of samples stand for a moment is told in `kernelcast.training.evidence`; it was
chosen, as was the likelihood (`kernelcast.models.evidence.fusion.CORE`), on the rows of
``CHOSEN_ON`` alone.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cpu_time import least_us
from evidence_peers import PEERS
from evidence_report import write_report
from evidence_rows import (
    Stored,
    choose_first,
    choose_paper,
    read_stored,
    tell_raw,
    tell_whole_runs,
)
from evidence_scores import (
    MAIN,
    Lines,
    Told,
    divide_by_age,
    divide_by_evenness,
    divide_by_noise,
    score,
    summarise,
)
from kernelcast.models.correction import ALL_GROUPS, CorrectionModel
from kernelcast.models.evidence.correction import FUSED, replace_reference
from kernelcast.models.grouping import divide_groups, number_groups
from kernelcast.models.learned.learner import Part
from kernelcast.models.learned.svr import SvrLearner
from kernelcast.models.references import ColumnReference
from machine import describe_machine

from kernelcast.models.evidence.calibration import (
    EvidenceRow,
    calibrate,
    fit_variances,
    gather_all,
    gather_estimates,
    gather_estimates_alone,
    gather_observed,
    gather_plain,
    gather_samples,
    gather_sizes,
    list_others,
)
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import EvidenceModel
from kernelcast.models.evidence.piece import FusedEstimate, Kind
from kernelcast.models.evidence.sizes import SizeSettings
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.evidence import choose_moments, make_row
from kernelcast.training.table import tabulate

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "results" / "evidence"
SHIPPED = ROOT.parent / "src/kernelcast/training_data/measured"
CHOSEN_ON = "pocl-skylake-avx512-amd-a2d1"
COVERAGE = 0.9
FOLDS, INNER_FOLDS, SOURCE_FOLDS = 10, 5, 3
SOME, ALL = 3, 10_000
FACTORS = (1e-6, 1e-3, 0.1, 0.5, 2.0, 10.0, 1e3, 1e6)
CHOICES = {"set 0": choose_first, "pairs of 2 and 3": choose_paper,
           "two moments": choose_moments}  # fmt: skip
"""Rows without pairs have no second line."""
SOURCE = CorrectionModel(
    name="source", learner=SvrLearner(), reference=ColumnReference(name="analytic"),
    feature_groups=tuple(one for one in ALL_GROUPS if one != "sampled"), is_gated=False,
)  # fmt: skip
"""Learns from features that need no samples."""


def main() -> None:
    """Measure the rows of files, or only write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", type=Path, default=sorted(SHIPPED.glob("*.parquet")))
    parser.add_argument("--only-tables", action="store_true")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in () if options.only_tables else options.data:
        stored = read_stored(path)
        if len({one.kernel for one in stored}) >= FOLDS:
            found = measure(path.stem, stored)
            text = json.dumps(found, indent=1) + "\n"
            (FOLDER / f"{path.stem}.json").write_text(text, encoding="utf-8")
    write_report(FOLDER)


def measure(device: str, stored: Sequence[Stored]) -> dict[str, Any]:
    """Judge every line on the rows of a device."""
    has_pairs = any((2, 0) in one.places for one in stored)
    choices = {name: one for name, one in CHOICES.items() if has_pairs or one is not choose_paper}
    rows = {name: [make_row(one, choose(one)) for one in stored]
            for name, choose in choices.items()}  # fmt: skip
    costs = {name: np.array([sum(one.cost[key] for key in choose(one)) for one in stored])
             for name, choose in choices.items()}  # fmt: skip
    lines: Lines = defaultdict(dict)
    weights: dict[str, list[float]] = defaultdict(list)
    groups = number_groups(np.array([one.kernel for one in stored], dtype=np.object_))
    table = _tabulate(stored)
    for number, part in enumerate(divide_groups(groups, FOLDS)):
        sizes = fit_variances([rows[MAIN][one] for one in part.train], groups[part.train]).sizes
        for name, those in rows.items():
            model = calibrate([those[place] for place in part.train], sizes=sizes)
            for line, place, fused in _ask(name, model, those, part.test, seed=number):
                lines[line][place] = _judge(model, those[place], fused)
                for piece, weight in zip(fused.pieces, fused.weights, strict=True):
                    weights[f"{line}: {piece.kind}"].append(weight)
        _correct(lines, rows[MAIN], table, groups, part, sizes)
        _learn_from_source(lines, rows[MAIN], table, groups, part, sizes)
        _ask_peers(lines, rows[MAIN], part.test, seed=number)
    whole = tell_whole_runs(stored)
    measured = np.array([one.observation.seconds for one in stored])
    return {
        "device": device,
        "sampler": stored[0].observation.sampler,
        "was_chosen_on": device == CHOSEN_ON,
        "machine": describe_machine(),
        "rows": len(stored),
        "kernels": int(groups.max()) + 1,
        "uneven_rows": sum(not one.is_even for one in stored),
        "seconds": {"median": float(np.median(measured)), "longest": float(measured.max())},
        "whole_runs": score(np.concatenate(whole)),
        "raw": {
            name: {**score(errors), "cost": float(np.median(costs))}
            for name, _, errors, costs in tell_raw(stored)
            if len(errors)
        },
        "lines": {name: summarise(told) for name, told in sorted(lines.items())},
        "costs": {name: float(np.median(found)) for name, found in costs.items()},
        "mean_costs": {name: float(np.mean(found)) for name, found in costs.items()},
        "pilot_cost": float(np.median([one.pilot_cost for one in stored])),
        "weights": {name: float(np.mean(found)) for name, found in sorted(weights.items())},
        "by_noise": divide_by_noise(stored, lines, whole),
        "by_evenness": divide_by_evenness(stored, lines),
        "by_age": divide_by_age(rows[MAIN], lines),
        "speed_us": _time(rows[MAIN]),
    }


def _tabulate(stored: Sequence[Stored]) -> TrainingTable:
    """Tabulate rows in the order they are in."""
    table = tabulate(one.observation for one in stored)
    place = {key: row for row, key in enumerate(table.keys.tolist())}
    return table.take(np.array([place[one.observation.key] for one in stored]))


def _ask(
    name: str, model: EvidenceModel, rows: Sequence[EvidenceRow], places: np.ndarray, *, seed: int
) -> Iterator[tuple[str, int, FusedEstimate]]:
    """Fuse what each situation knows of rows that were held out."""
    for place in places.tolist():
        yield name, place, fuse(gather_samples(model, rows[place], ()))
        if name == MAIN:
            yield f"{name}, one whole run", place, fuse(gather_observed(model, rows[place], ()))
            yield from _poison(model, rows[place], (), "samples", place)
    for count, told in ((SOME, "three"), (ALL, "all")):
        for place, others in list_others(rows, places, np.random.default_rng(seed), count):
            if len(others) < (SOME if count == SOME else 1):
                continue
            row = rows[place]
            yield f"{name}, {told} other sizes", place, fuse(gather_all(model, row, others))
            if name == MAIN:
                pieces = gather_sizes(model, row, others)
                yield f"no sampling, {told} other sizes", place, fuse(pieces)
                pieces = gather_estimates_alone(model, row, others)
                yield f"no sampling, {told} estimated sizes", place, fuse(pieces)
                pieces = gather_estimates(model, row, others)
                yield f"{name}, {told} estimated sizes", place, fuse(pieces)
            if name == MAIN and count == SOME:
                yield from _poison(model, row, others, "samples and sizes", place)


def _poison(
    model: EvidenceModel,
    row: EvidenceRow,
    others: Sequence[EvidenceRow],
    name: str,
    place: int,
) -> Iterator[tuple[str, int, FusedEstimate]]:
    """Add an observation of the launch that is wrong by a factor."""
    pieces = gather_all(model, row, others) if others else gather_samples(model, row, ())
    for factor in FACTORS:
        told = row.runs[0] + math.log(factor)
        wrong = model.weigh_observation(told, model.sizes.usual_noise)
        yield f"poisoned, {name}, factor {factor:g}", place, fuse([*pieces, wrong])


def _judge(model: EvidenceModel, row: EvidenceRow, fused: FusedEstimate) -> Told:
    interval = model.surround(fused, COVERAGE)
    measured_s = math.exp(row.size.log_seconds)
    error = fused.log_seconds - row.size.log_seconds
    inside = interval.low <= measured_s <= interval.high
    return error, interval.high / interval.seconds - 1.0, inside


def _correct(
    lines: Lines,
    rows: Sequence[EvidenceRow],
    table: TrainingTable,
    groups: np.ndarray,
    fold: Part,
    sizes: SizeSettings,
) -> None:
    """Correct fused values by what the others' features teach."""
    draw = np.random.default_rng(0)
    train, test = fold.train, fold.test
    seen = [rows[place] for place in train]
    whole = fit_variances(seen, groups[train], sizes)
    for name, gather, count in (
        (MAIN, gather_samples, ALL), (f"{MAIN}, three other sizes", gather_all, SOME),
    ):  # fmt: skip
        fused: dict[int, FusedEstimate] = {}
        for part in divide_groups(groups[train], INNER_FOLDS):
            inner = [seen[place] for place in part.train]
            model = fit_variances(inner, groups[train][part.train], sizes)
            for place, others in list_others(seen, part.test, draw, count):
                fused[place] = fuse(gather(model, seen[place], others))
        asked = {
            place: fuse(gather(whole, rows[place], others))
            for place, others in list_others(rows, test, draw, count)
            if gather is gather_samples or len(others) >= SOME
        }
        if not asked:
            continue
        known = replace_reference(table.take(train), [fused[place] for place in range(len(seen))])
        fitted = FUSED.fit(known)
        places = np.array(list(asked))
        told = fitted.forecast(replace_reference(table.take(places), list(asked.values())))
        for row, place in enumerate(places.tolist()):
            measured_s = float(table.seconds[place])
            lines[f"{name}, corrected"][place] = (
                math.log(told.seconds[row] / measured_s),
                float(told.high[row] / told.seconds[row] - 1.0),
                bool(told.low[row] <= measured_s <= told.high[row]),
            )


def _learn_from_source(
    lines: Lines,
    rows: Sequence[EvidenceRow],
    table: TrainingTable,
    groups: np.ndarray,
    fold: Part,
    sizes: SizeSettings,
) -> None:
    """Add what features without samples say, learned from other kernels."""
    train, test = (
        part[SOURCE.reference.knows(table.take(part))] for part in (fold.train, fold.test)
    )
    if not len(train) or not len(test):
        return  # the device was not calibrated when these rows were taken
    told = np.full(len(table), np.nan)
    for part in divide_groups(groups[train], SOURCE_FOLDS):
        fitted = SOURCE.fit(table.take(train[part.train]))
        told[train[part.test]] = np.log(fitted.predict(table.take(train[part.test])))
    told[test] = np.log(SOURCE.fit(table.take(train)).predict(table.take(test)))
    known = [replace(row, plain={**row.plain, Kind.LEARNED: float(one)})
             for row, one in zip(rows, told, strict=True)]  # fmt: skip
    model = calibrate([known[place] for place in train], sizes=sizes)
    for place in test.tolist():
        row = known[place]
        for name, gather in ((f"{MAIN}, learned", gather_samples),
                             ("no sampling, learned", gather_plain)):  # fmt: skip
            lines[name][place] = _judge(model, row, fuse(gather(model, row, ())))


def _ask_peers(lines: Lines, rows: Sequence[EvidenceRow], places: np.ndarray, *, seed: int) -> None:
    for count, told in ((SOME, "three"), (ALL, "all")):
        for place, others in list_others(rows, places, np.random.default_rng(seed), count):
            if len(others) < SOME:
                continue
            lines[f"evidence, {told} sizes"][place] = lines[f"no sampling, {told} other sizes"][
                place
            ]
            known = [one.size for one in others]
            for name, peer in PEERS.items():
                answer = peer(known, rows[place].size)
                error = math.inf if answer is None else answer - rows[place].size.log_seconds
                lines[f"{name}, {told} sizes"][place] = error, math.nan, False


def _time(rows: Sequence[EvidenceRow]) -> dict[str, float]:
    """Time fusion, sizes and an answer without sampling: processor time, least of 20 rounds."""
    model = calibrate(rows)
    listed = list_others(rows, np.arange(len(rows)), np.random.default_rng(0), SOME)
    place, others = max(listed, key=lambda one: len(one[1]))
    row = rows[place]
    pieces = gather_all(model, row, others)
    eight = (pieces * 8)[:8]
    sizes = model.tabulate([one.size for one in others])

    def answer() -> FusedEstimate:
        told = sizes.predict(row.size.log_work, row.size.at_s)
        return fuse([model.weigh_sizes(told)])

    return {
        f"fuse {len(pieces)} pieces": least_us(lambda: fuse(pieces)),
        "fuse 8 pieces": least_us(lambda: fuse(eight)),
        f"ask {len(others)} sizes": least_us(
            lambda: sizes.predict(row.size.log_work, row.size.at_s)
        ),
        "answer without sampling": least_us(answer),
        "interval": least_us(lambda: model.surround(fuse(pieces), COVERAGE)),
    }


if __name__ == "__main__":
    main()
