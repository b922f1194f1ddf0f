"""What pieces of evidence say of stored rows, alone and fused, beside one whole run.

Run ``python benchmarks/evidence.py --data FILE...`` (the shipped rows unless given; about two
minutes of processor time a device); ``--only-tables`` renders the files again. Undisturbed rows of
today's sampler of at least 0.1 s and 256 work-groups. Writes ``results/evidence/<device>.json``,
``summary.md`` and ``errors.svg``.

Families of kernels are held out with all their rows: variances, settings of sizes, intervals, and
the correction with its gate are fitted on the others (ten parts; what is chosen is chosen by five
parts within). Which sets of samples stand for a moment is told in `kernelcast.training.evidence`;
it was chosen, as was the likelihood (`kernelcast.models.evidence.fusion.CORE`), on the rows of
``CHOSEN_ON`` alone. What corrections bring is told in full by ``learned_answers.py``.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from machine import describe_machine

from kernelcast.models.evidence.calibration import (
    EvidenceRow,
    calibrate,
    fit_variances,
    gather,
    list_others,
)
from kernelcast.models.evidence.fusion import FusedEstimate, fuse
from kernelcast.models.evidence.model import BUILT_IN, EvidenceModel
from kernelcast.models.evidence.stored import know_analytic
from kernelcast.models.regression import divide_groups, number_groups
from kernelcast.training.evidence import choose_moments, make_row
from kernelcast.training.peaks import read_peaks
from kernelcast.training.registry import name_runtime
from kernelcast.training.table import machines_beside

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "results" / "evidence"
SHIPPED = ROOT.parent / "src/kernelcast/training_data/measured"
CHOSEN_ON = "pocl-skylake-avx512-amd-a2d1"
COVERAGE = 0.9
FOLDS = 10
SOME, ALL = 3, 10_000
FACTORS = (1e-6, 1e-3, 0.1, 0.5, 2.0, 10.0, 1e3, 1e6)
CHOICES = {"set 0": choose_first, "pairs of 2 and 3": choose_paper,
           "two moments": choose_moments}  # fmt: skip
"""Rows without pairs have no second line."""


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
    machine = machines_beside([SHIPPED])(device)
    peaks = {} if machine is None else {"peaks": read_peaks(machine)}
    rows = {name: [make_row(one, choose(one), **peaks) for one in stored]
            for name, choose in choices.items()}  # fmt: skip
    costs = {name: np.array([sum(one.cost[key] for key in choose(one)) for one in stored])
             for name, choose in choices.items()}  # fmt: skip
    # As on a machine that is not ours: its runtime's model knows the analytic errors of the corpus.
    plain = know_analytic(BUILT_IN, name_runtime(device)).plain
    lines: Lines = defaultdict(dict)
    weights: dict[str, list[float]] = defaultdict(list)
    families = number_groups(np.array([one.family for one in rows[MAIN]], dtype=np.object_))
    groups = number_groups(np.array([one.kernel for one in stored], dtype=np.object_))
    for number, (train, test) in enumerate(divide_groups(families, FOLDS)):
        sizes = fit_variances([rows[MAIN][one] for one in train], groups[train]).sizes
        for name, those in rows.items():
            seen = [those[place] for place in train]
            model = calibrate(seen, sizes=sizes, learners=(), plain=plain)
            for line, place, fused in _ask(name, model, those, test, seed=number):
                lines[line][place] = _judge(model, those[place], fused)
                for piece, weight in zip(fused.pieces, fused.weights, strict=True):
                    weights[f"{line}: {piece.kind}"].append(weight)
        model = calibrate([rows[MAIN][place] for place in train], sizes=sizes)
        for place in test.tolist():
            row = rows[MAIN][place]
            corrected = model.correct(fuse(gather(model, row)), row.values)
            lines[f"{MAIN}, corrected"][place] = _judge(model, row, corrected)
        _ask_peers(lines, rows[MAIN], test, seed=number)
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


def _ask(
    name: str, model: EvidenceModel, rows: Sequence[EvidenceRow], places: np.ndarray, *, seed: int
) -> Iterator[tuple[str, int, FusedEstimate]]:
    """Fuse what each situation knows of rows that were held out."""
    for place in places.tolist():
        yield name, place, fuse(gather(model, rows[place]))
        if name == MAIN:
            yield (
                f"{name}, one whole run",
                place,
                fuse(gather(model, rows[place], what="samples+run")),
            )
            yield from _poison(model, rows[place], (), "samples", place)
    for count, told in ((SOME, "three"), (ALL, "all")):
        for place, others in list_others(rows, places, np.random.default_rng(seed), count):
            if len(others) < (SOME if count == SOME else 1):
                continue
            row = rows[place]
            yield (
                f"{name}, {told} other sizes",
                place,
                fuse(gather(model, row, others, "samples+sizes")),
            )
            if name == MAIN:
                pieces = gather(model, row, others, "sizes")
                yield f"no sampling, {told} other sizes", place, fuse(pieces)
                pieces = gather(model, row, others, "estimates")
                yield f"no sampling, {told} estimated sizes", place, fuse(pieces)
                pieces = gather(model, row, others, "samples+estimates")
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
    pieces = gather(model, row, others, "samples+sizes" if others else "samples")
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
    model = calibrate(rows, learners=())
    listed = list_others(rows, np.arange(len(rows)), np.random.default_rng(0), SOME)
    place, others = max(listed, key=lambda one: len(one[1]))
    row = rows[place]
    pieces = gather(model, row, others, "samples+sizes")
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
