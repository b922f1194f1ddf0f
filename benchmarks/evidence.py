"""What pieces of evidence say of stored rows, alone and fused, beside one whole run.

Run ``python benchmarks/evidence.py --data FILE...`` (the shipped rows unless given; about two
minutes of processor time a device); ``--only-tables`` renders the files again. Undisturbed rows of
today's sampler of at least 0.1 s and 256 work-groups. Writes ``results/evidence/<device>.json``,
``summary.md`` and ``errors.svg``.

Families of kernels are held out with all their rows: variances, settings of sizes, intervals, and
the correction with its gate are fitted on the others (ten parts; what is chosen is chosen by five
parts within). Which sets of samples stand for a moment is told in `kernelcast.training.evidence`;
it was chosen, as was the likelihood (`kernelcast.models.evidence.fusion.CORE`), on the rows of
``CHOSEN_ON`` alone.

Peers, for comparison only: StarPU's history-based ``a n^b``, its ``a n^b + c`` (the constant by
bisection, as StarPU does) and its multiple linear regression; n is the number of work-items, and
the terms of the last are work-items, instructions and bytes.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from evidence_report import write_report
from harness import write_json
from machine import describe_machine

from kernelcast.models.evidence.calibration import (
    EvidenceRow,
    calibrate,
    fit_variances,
    gather,
    list_others,
)
from kernelcast.models.evidence.fusion import FusedEstimate, fuse
from kernelcast.models.evidence.model import BUILT_IN, EvidenceModel, know_analytic
from kernelcast.models.evidence.sizes import KnownSize
from kernelcast.models.linear import fit_linear
from kernelcast.models.regression import divide_groups, number_groups
from kernelcast.records.observation import Observation
from kernelcast.training.evidence import choose_moments, make_row, read_launches
from kernelcast.training.registry import name_runtime
from kernelcast.training.settings import RowFilter
from kernelcast.training.table import machines_beside
from kernelcast.training_data.parquet import read_parquet

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "results" / "evidence"
SHIPPED = ROOT.parent / "src/kernelcast/training_data/measured"
CHOSEN_ON = "pocl-skylake-avx512-amd-a2d1"
COVERAGE = 0.9
FOLDS = 10
SOME, ALL = 3, 10_000
FACTORS = (1e-6, 1e-3, 0.1, 0.5, 2.0, 10.0, 1e3, 1e6)


_STEPS = 60
_FARTHEST = 20.0
Peer = Callable[[Sequence[KnownSize], KnownSize], float | None]
"""Gives ln seconds of a size from known ones; None where it has no answer."""


def regress(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit ln t = ln a + b ln n."""
    work = np.array([one.log_work[0] for one in known])
    if len(known) < 2 or np.ptp(work) == 0:
        return None
    slope, level = np.polyfit(work, [one.log_seconds for one in known], 1)
    return float(np.clip(level + slope * asked.log_work[0], -_FARTHEST, _FARTHEST))


def regress_with_constant(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit t = a n^b + c, c between nothing and the shortest time by the correlation of logs."""
    work = np.array([one.log_work[0] for one in known])
    seconds = np.exp([one.log_seconds for one in known])
    if len(known) < 3 or np.ptp(work) == 0:
        return None
    low, high = 0.0, float(seconds.min())
    for _ in range(_STEPS):
        step = (high - low) / 3
        left, right = low + step, high - step
        if _correlate(work, seconds - left) > _correlate(work, seconds - right):
            high = right
        else:
            low = left
    constant = min(low, 0.999 * float(seconds.min()))
    slope, level = np.polyfit(work, np.log(seconds - constant), 1)
    power = math.exp(float(np.clip(level + slope * asked.log_work[0], -_FARTHEST, _FARTHEST)))
    return math.log(power + constant)


def regress_linearly(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Fit t = c + sum of a_i w_i by least squares over three measures of work."""
    columns = np.exp(np.nan_to_num([one.log_work[:3] for one in (*known, asked)]))
    columns /= columns.mean(axis=0)
    terms = np.column_stack([np.ones(len(columns)), columns])
    seconds = np.exp([one.log_seconds for one in known])
    found = np.linalg.lstsq(terms[:-1], seconds, rcond=1e-6)[0]
    told = float(terms[-1] @ found)
    return math.log(told) if told > 0 else None


def scale_by_instructions(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Scale by counted instructions, by work-items where they are not known, and take the median.

    It is the line "other observed sizes, scaled" of the table that this work began with.
    """
    measure = 1 if all(math.isfinite(one.log_work[1]) for one in (*known, asked)) else 0
    rates = [one.log_seconds - one.log_work[measure] for one in known]
    return float(np.median(rates)) + asked.log_work[measure]


def scale_by_items(known: Sequence[KnownSize], asked: KnownSize) -> float | None:
    """Scale by work-items and take the median."""
    rates = [one.log_seconds - one.log_work[0] for one in known]
    return float(np.median(rates)) + asked.log_work[0]


def _correlate(work: np.ndarray, seconds: np.ndarray) -> float:
    return float(np.corrcoef(work, np.log(np.maximum(seconds, 1e-12)))[0, 1])


PEERS: Mapping[str, Peer] = {
    "median, by instructions": scale_by_instructions,
    "median, by work-items": scale_by_items,
    "StarPU: a n^b": regress,
    "StarPU: a n^b + c": regress_with_constant,
    "StarPU: multiple linear": regress_linearly,
}


SetKey = tuple[int, int]
"""Multiple and window set of a set of samples; the sampler's own have multiple 0."""
LINES: Mapping[str, tuple[SetKey, ...]] = {
    "the sampler's set 0": ((0, 0),),
    "the sampler's set 1": ((0, 1),),
    "pairs of 2 and 3 units, two moments": ((2, 0), (2, 1)),
    "pairs of 4 and 5 units, two moments": ((4, 0), (4, 1)),
    "all sets but the first, 3 units and more": (
        (0, 1), (0, 2), *((multiple, one) for multiple in (3, 4, 5) for one in (0, 1)),
    ),
}  # fmt: skip
"""Lines of the table that nothing is fitted for: the median of what these sets say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored launch with what each set of its samples says and costs."""

    observation: Observation
    line_s: Mapping[SetKey, float]
    """Seconds by today's line."""
    cost: Mapping[SetKey, float]
    """Time of its launches over the whole's."""

    @property
    def kernel(self) -> str:
        return self.observation.launch.kernel.label

    @property
    def is_even(self) -> bool:
        """What the sampler's first set has found, by its pilot or from the source."""
        return self.observation.samples[0].is_even

    @property
    def pilot_cost(self) -> float:
        """Time of the pilot's launches over the whole's."""
        launches = self.observation.samples[0].launches
        return sum(one.duration_s for one in launches if one.window < 0) / self.observation.seconds


def read_stored(path: Path) -> list[Stored]:
    """Read undisturbed rows of the file's newest sampler, long and large enough."""
    return [_read(one) for one in read_launches(read_parquet(path), RowFilter())]


def _read(one: Observation) -> Stored:
    sets = {
        (sample.multiple, sample.window_set): place
        for place, sample in enumerate(one.samples)
        if sample.linear_s
    }
    return Stored(
        observation=one,
        line_s={key: fit_linear(one.sample_run(place)).seconds for key, place in sets.items()},
        cost={key: one.samples[place].sampling_s / one.seconds for key, place in sets.items()},
    )


def tell_raw(rows: Sequence[Stored]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Give name, rows, errors in ln and costs of the lines that nothing is fitted for."""
    for name, keys in LINES.items():
        places, errors, costs = [], [], []
        for place, row in enumerate(rows):
            chosen = [key for key in keys if key in row.line_s]
            if chosen:
                told = np.log([row.line_s[key] for key in chosen])
                places.append(place)
                errors.append(float(np.median(told)) - math.log(row.observation.seconds))
                costs.append(sum(row.cost[key] for key in chosen))
        yield name, np.array(places), np.array(errors), np.array(costs)


def tell_whole_runs(rows: Sequence[Stored]) -> list[np.ndarray]:
    """Give, of each row, what each whole run says of the median of the others, in ln."""
    found = []
    for row in rows:
        runs = np.log(row.observation.runs.durations_s)
        found.append(np.array(
            [runs[one] - np.median(np.delete(runs, one)) for one in range(len(runs))]
            if len(runs) > 2 else []
        ))  # fmt: skip
    return found


def group(rows: Sequence[Stored]) -> dict[str, list[int]]:
    """Give places of rows by kernel."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        found[row.kernel].append(place)
    return found


MAIN = "two moments"
CLASSES = (0.0, 0.02, 0.04, 0.08, math.inf)
"""Of the noise of a row's whole runs."""
Told = tuple[float, float, bool]
"""ln error, half width of the interval, and whether it holds the measured time."""
Lines = dict[str, dict[int, Told]]


def summarise(told: Mapping[int, Told]) -> dict[str, Any]:
    """Score a line, and what its intervals hold."""
    errors, widths, inside = (np.array(one) for one in zip(*told.values(), strict=True))
    answered = np.isfinite(errors)
    return {
        **score(errors[answered]),
        "without_answer": int((~answered).sum()),
        "held": float(inside[answered].mean()),
        "half_width": float(np.median(widths[answered])),
    }


def score(errors: np.ndarray) -> dict[str, float]:
    """Give mean, median and the rest of relative errors, of errors in ln."""
    sizes = np.abs(np.expm1(np.clip(errors, -20.0, 20.0)))
    return {
        "answers": len(sizes),
        "mean": float(sizes.mean()),
        "median": float(np.median(sizes)),
        "p90": float(np.quantile(sizes, 0.9)),
        "worst": float(sizes.max()),
        "bias": float(np.median(errors)),
    }


DIVIDED = (
    "set 0", MAIN, f"{MAIN}, corrected", f"{MAIN}, three other sizes",
    "no sampling, three other sizes", "no sampling, all other sizes",
)  # fmt: skip


def _take(lines: Lines, wanted: Callable[[int], bool]) -> dict[str, dict[str, float]]:
    found = {}
    for name in DIVIDED:
        errors = np.array([one[0] for place, one in lines[name].items() if wanted(place)])
        if len(errors):
            found[name] = score(errors)
    return found


def divide_by_noise(
    stored: Sequence[Stored], lines: Lines, whole: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Divide by the noise of a row's whole runs."""
    noise = [one.observation.runs.noise or 0.0 for one in stored]
    found = []
    for low, high in pairwise(CLASSES):
        places = {place for place, one in enumerate(noise) if low <= one < high}
        runs = [whole[place] for place in places if len(whole[place])]
        if runs:
            found.append({
                "from": low, "to": None if math.isinf(high) else high, "rows": len(places),
                "one whole run for the others": score(np.concatenate(runs)),
                **_take(lines, places.__contains__),
            })  # fmt: skip
    return found


def divide_by_evenness(stored: Sequence[Stored], lines: Lines) -> dict[str, Any]:
    """Divide by whether work was found to be even."""
    return {
        name: _take(lines, lambda place, even=even: stored[place].is_even is even)  # type: ignore[misc]  # bound now
        for name, even in (("even", True), ("uneven", False))
    }


def divide_by_age(rows: Sequence[EvidenceRow], lines: Lines) -> dict[str, Any]:
    """Divide by whether another size was measured within an hour."""
    times: dict[str, list[float]] = defaultdict(list)
    for one in rows:
        times[one.kernel].append(one.size.at_s)
    recent = [
        sum(abs(at_s - one.size.at_s) < 3600.0 for at_s in times[one.kernel]) > 1 for one in rows
    ]
    return {
        name: _take(lines, lambda place, wanted=wanted: recent[place] is wanted)  # type: ignore[misc]  # bound now
        for name, wanted in (("another size within an hour", True), ("none", False))
    }


CHOICES: Mapping[str, Callable[[Observation], list[int]]] = {
    "set 0": lambda one: choose_moments(one)[:1],
    MAIN: choose_moments,
}
"""The sets that an answer rests on: the one that was taken first, and all of a first answer."""


def main() -> None:
    """Measure the rows of files, or only write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", type=Path, default=sorted(SHIPPED.glob("*.parquet")))
    parser.add_argument("--only-tables", action="store_true")
    options = parser.parse_args()
    for path in () if options.only_tables else options.data:
        stored = read_stored(path)
        if len({one.kernel for one in stored}) >= FOLDS:
            write_json(FOLDER / f"{path.stem}.json", measure(path.stem, stored))
    write_report(FOLDER)


def measure(device: str, stored: Sequence[Stored]) -> dict[str, Any]:
    """Judge every line on the rows of a device."""
    machine = machines_beside([SHIPPED])(device)
    found = [one.observation for one in stored]
    rows = {name: [make_row(one, machine, choose(one)) for one in found]
            for name, choose in CHOICES.items()}  # fmt: skip
    costs = {name: np.array([sum(one.samples[place].sampling_s for place in choose(one))
                             / one.seconds for one in found])
             for name, choose in CHOICES.items()}  # fmt: skip
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


if __name__ == "__main__":
    main()
