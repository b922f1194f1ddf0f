"""What a learned correction brings to first answers: kernels, and devices, that it has not seen.

``python benchmarks/learned_answers.py`` (about five minutes of processor time) takes the shipped
rows of today's sampler: undisturbed launches of at least 0.1 s and 256 work-groups. Families of
kernels are held out in ten parts on all devices at once; variances, settings and gates
rest on the others. Three ways to learn: from the rows of the device, from those of all devices, and
from those of the other devices alone, which is what a machine that is not ours would have. Writes
``results/learned/answers.json`` and ``summary.md``: errors with and without, the interval of the
difference (bootstrap over families), by class of launches, and the gain over the number of rows.

``--data results/learned/rows`` takes what `collect_learning.py` wrote instead, launches
of all lengths alone and beside programs, and writes ``all_lengths.json`` and
``all_lengths.md``. Variances are those that are shipped for the runtime. Times beside programs
are compared as those alone, and corrections see how much a run was slowed down.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from harness import write_json, write_text

from kernelcast.models.evidence.calibration import EvidenceRow, fit_variances, gather
from kernelcast.models.evidence.fusion import FusedEstimate, fuse
from kernelcast.models.evidence.model import list_answer_values, load_evidence
from kernelcast.models.evidence.sizes import SizeSettings
from kernelcast.models.regression import (
    LEARNERS,
    Groups,
    divide_groups,
    fit_regression,
    make_columns,
    number_groups,
    relative_errors,
)
from kernelcast.models.validation.comparison import find_interval
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.records.training_table import Numbers
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training.evidence import make_row, read_launches
from kernelcast.training.registry import list_evidence_names
from kernelcast.training.settings import ALL_ROWS, RowFilter
from kernelcast.training.table import machines_beside, read_observations

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / "results" / "learned"
MEASURED = ROOT.parent / "src/kernelcast/training_data/measured"
FOLDS = 10
WAYS = ("own rows", "all devices", "other devices")
SHARES = (0.25, 0.5, 0.75, 1.0)
LENGTHS = (("below 10 ms", 0.0, 0.01), ("10 to 100 ms", 0.01, 0.1), ("0.1 s and more", 0.1, np.inf))
MOVED = 0.005
"""Corrections below it count as none."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Launches, what samples say of each by variances of other families, and labels."""

    rows: list[EvidenceRow]
    said: list[FusedEstimate]
    families: Groups
    devices: np.ndarray
    states: np.ndarray
    """What ran beside them; empty where nothing did by choice."""

    def columns(self, places: Groups) -> dict[str, Numbers]:
        """Give what a correction sees."""
        values = [list_answer_values(self.said[one], self.rows[one].values) for one in places]
        names = sorted({name for row in self.rows for name in row.values} | {"linear_s"})
        names.append("linear_error")
        return make_columns({
            name: np.array([one.get(name, np.nan) for one in values]) for name in names
        })  # fmt: skip

    @property
    def targets(self) -> Numbers:
        """Natural logarithms of measured over fused times."""
        pairs = zip(self.rows, self.said, strict=True)
        return np.array([row.size.log_seconds - one.log_seconds for row, one in pairs])


def read_rows(folder: Path | None) -> Rows:
    """Read the launches, shipped ones or those of a folder, and fuse the samples of each."""
    sources = {one.name: one for one in sorted(folder.iterdir())} if folder else {"": MEASURED}
    found: list[tuple[str, EvidenceRow]] = []
    for state, source in sources.items():
        find_machine = machines_beside([source])
        known = [one for one in read_observations([source]) if one.sampler == SAMPLER]
        for launch in read_launches(known, ALL_ROWS if folder else RowFilter()):
            row = make_row(launch, find_machine(launch.launch.device.id))
            if state:
                slowdown = launch.machine_state.slowdown or 1.0
                row = replace(row, values={**row.values, "sampled.slowdown_ratio": slowdown})
            found.append((state, row))
    found.sort(key=lambda one: (one[1].device, one[1].kernel, one[1].size.log_work, one[0]))
    rows = [one for _, one in found]
    families = number_groups(np.array([one.family for one in rows], dtype=np.object_))
    devices = np.array([one.device for one in rows])
    said: dict[int, FusedEstimate] = {}
    for device in sorted({*devices}):
        ours = np.flatnonzero(devices == device)
        if folder:
            runtime = list_evidence_names(device, is_cpu=True)[1]
            shipped = load_evidence(VersionedFiles(url=find_shipped()), runtime, sampler=SAMPLER)
            said |= {int(one): fuse(gather(shipped, rows[one])) for one in ours}
            continue
        kernels = np.unique([rows[one].kernel for one in ours], return_inverse=True)[1]
        for train, test in divide_groups(families[ours], FOLDS):
            model = fit_variances(
                [rows[one] for one in ours[train]], kernels[train].astype(np.intp), SizeSettings()
            )
            said |= {int(one): fuse(gather(model, rows[one])) for one in ours[test]}
    told = [said[place] for place in range(len(rows))]
    return Rows(rows, told, families, devices, np.array([state for state, _ in found]))


def correct(known: Rows, learner: str, way: str, share: float = 1.0) -> Numbers:
    """Correct every launch by a regression that has not seen its family."""
    found = np.zeros(len(known.rows))
    draw = np.random.default_rng(0)
    for train, test in divide_groups(known.families, FOLDS):
        present = np.unique(known.families[train])
        kept = draw.permutation(present)[: round(share * len(present))]
        seen = train[np.isin(known.families[train], kept)]
        for device in sorted({*known.devices[test]}):
            ours = test[known.devices[test] == device]
            is_own = known.devices[seen] == device
            taught = {"own rows": seen[is_own], "all devices": seen}.get(way, seen[~is_own])
            fitted, *_ = fit_regression(
                known.columns(taught), known.targets[taught], known.families[taught], learner
            )
            found[ours] = fitted.predict(known.columns(ours))[0]
    return found


def score(known: Rows, corrections: Numbers, places: Groups) -> dict[str, Any]:
    """Score launches with and without a correction, and those that it moves."""
    targets = known.targets[places]
    without, errors = relative_errors(targets), relative_errors(targets - corrections[places])
    moved = np.abs(corrections[places]) > MOVED
    clusters = np.unique(known.families[places], return_inverse=True)[1].astype(np.intp)
    interval = find_interval(without - errors, clusters, 4000)
    return {
        "rows": len(places),
        "bias": float(np.expm1(-np.median(targets))),
        "without": [float(without.mean()), float(np.median(without))],
        "with": [float(errors.mean()), float(np.median(errors))],
        "gain": float((without - errors).mean()),
        "interval": interval,
        "moved": float(moved.mean()),
        "moved_without": float(without[moved].mean()) if moved.any() else None,
        "moved_with": float(errors[moved].mean()) if moved.any() else None,
    }


def divide(known: Rows) -> Iterator[tuple[str, Groups]]:
    """Give classes of launches, by what is known before they run."""
    column = known.columns(np.arange(len(known.rows)))
    groups = np.array([one.values["work_groups"] for one in known.rows])
    apart = np.abs(column["analytic.estimate_over_linear_ratio"])
    lengths_s = np.array([one.seconds for one in known.said])
    for state in sorted({*known.states} - {""}):
        for name, least_s, most_s in LENGTHS:
            places = (known.states == state) & (lengths_s >= least_s) & (lengths_s < most_s)
            yield f"{state}, {name}", np.flatnonzero(places)
    yield "even work", np.flatnonzero(column["sampled.even_flag"] == 1)
    yield "uneven work", np.flatnonzero(column["sampled.even_flag"] == 0)
    yield "up to 4,096 work-groups", np.flatnonzero(groups <= 4096)
    yield "more work-groups", np.flatnonzero(groups > 4096)
    yield "samples and model within a factor of 1.5", np.flatnonzero(apart <= np.log(1.5))
    yield "farther apart", np.flatnonzero(apart > np.log(1.5))
    yield "addresses from memory", np.flatnonzero(column["static.indirect_access_ratio"] > 0)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    folder = parser.parse_args().data
    known = read_rows(folder)
    devices = sorted({*known.devices})
    found: dict[str, Any] = {"lines": [], "classes": [], "curve": []}
    for way in WAYS:
        for learner in LEARNERS:
            corrections = correct(known, learner, way)
            for device in (*devices, "all"):
                places = np.flatnonzero((known.devices == device) | (device == "all"))
                line = {"way": way, "learner": learner, "device": device}
                found["lines"].append(line | score(known, corrections, places))
            if learner == "svr":
                found["classes"] += [
                    {"way": way, "class": name, **score(known, corrections, places)}
                    for name, places in divide(known)
                    if len(places)
                ]
    for share in SHARES:
        corrections = correct(known, "svr", "own rows", share)
        everything = score(known, corrections, np.arange(len(known.rows)))
        found["curve"].append({"share of families": share, **everything})
    numbers, tables = ("all_lengths",) * 2 if folder else ("answers", "summary")
    write_json(RESULTS / f"{numbers}.json", found)
    write_text(RESULTS / f"{tables}.md", *list_lines(found))


def list_lines(found: dict[str, Any]) -> Iterator[str]:
    """Write the tables."""
    head = (
        "rows",
        "bias without",
        "without",
        "with",
        "gain, 95 % interval",
        "acts on",
        "mean error of these",
    )
    yield from ("# Learned corrections of first answers", "", "Mean / median relative errors; see")
    yield from ("`benchmarks/learned_answers.py`.", "")
    tables: Sequence[tuple[str, tuple[str, ...], str]] = (
        ("Families of kernels held out", ("way", "learner", "device"), "lines"),
        ("By class of launches, epsilon-SVR", ("way", "class"), "classes"),
        ("Own rows, by the share of families learned from", ("share of families",), "curve"),
    )
    for title, names, key in tables:
        yield from (f"## {title}", "", f"| {' | '.join((*names, *head))} |")
        yield f"|{'---|' * (len(names) + len(head))}"
        for one in found[key]:
            low, high = one["interval"] or (np.nan, np.nan)
            cells = [
                *(str(one[name]) for name in names), str(one["rows"]), f"{one['bias']:+.1%}",
                *("{:.1%} / {:.1%}".format(*one[name]) for name in ("without", "with")),
                f"{100 * one['gain']:.2f} [{100 * low:.2f}, {100 * high:.2f}]",
                f"{one['moved']:.0%}",
                f"{one['moved_without']:.1%} to {one['moved_with']:.1%}" if one["moved"] else "",
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"
        yield ""


if __name__ == "__main__":
    main()
