"""What a learned correction brings to first answers: kernels, and devices, that it has not seen.

``python benchmarks/learned_answers.py`` (about five minutes of processor time) takes the shipped
rows of today's sampler: undisturbed launches of at least 0.1 s and 256 work-groups. Families of
kernels are held out in ten parts on all devices at once; variances, settings and gates
rest on the others. Three ways to learn: from the rows of the device, from those of all devices, and
from those of the other devices alone, which is what a machine that is not ours would have. Writes
``results/learned/answers.json`` and ``summary.md``: errors with and without, the interval of the
difference (bootstrap over families), by class of launches, and the gain over the number of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import write_json, write_text

from kernelcast.models.columns import make_columns
from kernelcast.models.evidence.calibration import EvidenceRow, fit_variances, gather
from kernelcast.models.evidence.fusion import FusedEstimate, fuse
from kernelcast.models.evidence.model import list_answer_values
from kernelcast.models.evidence.sizes import SizeSettings
from kernelcast.models.regression import (
    LEARNERS,
    Groups,
    divide_groups,
    fit_regression,
    number_groups,
    relative_errors,
)
from kernelcast.models.validation.comparison import Bootstrap, find_interval
from kernelcast.records.training_table import Numbers
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training.evidence import make_row, read_launches
from kernelcast.training.reading import read_observations
from kernelcast.training.settings import RowFilter
from kernelcast.training.table import machines_beside

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / "results" / "learned"
MEASURED = ROOT.parent / "src/kernelcast/training_data/measured"
FOLDS = 10
WAYS = ("own rows", "all devices", "other devices")
SHARES = (0.25, 0.5, 0.75, 1.0)
MOVED = 0.005
"""Corrections below it count as none."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Launches, what samples say of each by variances of other families, and labels."""

    rows: list[EvidenceRow]
    said: list[FusedEstimate]
    families: Groups
    devices: np.ndarray

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


def read_rows() -> Rows:
    """Read the launches, and fuse the samples of each."""
    find_machine = machines_beside([MEASURED])
    found = [one for one in read_observations([MEASURED]) if one.sampler == SAMPLER]
    rows = []
    for launch in read_launches(found, RowFilter()):
        machine = find_machine(launch.launch.device.id)
        rows.append(make_row(launch, machine))
    rows.sort(key=lambda one: (one.device, one.kernel, one.size.log_work))
    families = number_groups(np.array([one.family for one in rows], dtype=np.object_))
    devices = np.array([one.device for one in rows])
    said: dict[int, FusedEstimate] = {}
    for device in sorted({*devices}):
        ours = np.flatnonzero(devices == device)
        kernels = np.unique([rows[one].kernel for one in ours], return_inverse=True)[1]
        for train, test in divide_groups(families[ours], FOLDS):
            model = fit_variances(
                [rows[one] for one in ours[train]], kernels[train].astype(np.intp), SizeSettings()
            )
            said |= {int(one): fuse(gather(model, rows[one])) for one in ours[test]}
    return Rows(rows, [said[place] for place in range(len(rows))], families, devices)


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
    interval = find_interval(without - errors, clusters, Bootstrap(resamples=4000))
    return {
        "rows": len(places),
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
    yield "even work", np.flatnonzero(column["sampled.even_flag"] == 1)
    yield "uneven work", np.flatnonzero(column["sampled.even_flag"] == 0)
    yield "up to 4,096 work-groups", np.flatnonzero(groups <= 4096)
    yield "more work-groups", np.flatnonzero(groups > 4096)
    yield "samples and model within a factor of 1.5", np.flatnonzero(apart <= np.log(1.5))
    yield "farther apart", np.flatnonzero(apart > np.log(1.5))
    yield "addresses from memory", np.flatnonzero(column["static.indirect_access_ratio"] > 0)


def main() -> None:
    """Measure, and write the tables."""
    known = read_rows()
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
                ]
    for share in SHARES:
        corrections = correct(known, "svr", "own rows", share)
        everything = score(known, corrections, np.arange(len(known.rows)))
        found["curve"].append({"share of families": share, **everything})
    write_json(RESULTS / "answers.json", found)
    write_text(RESULTS / "summary.md", *list_lines(found))


def list_lines(found: dict[str, Any]) -> Iterator[str]:
    """Write the tables."""
    head = ("rows", "without", "with", "gain, 95 % interval", "acts on", "mean error of these")
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
                *(str(one[name]) for name in names), str(one["rows"]),
                *("{:.1%} / {:.1%}".format(*one[name]) for name in ("without", "with")),
                f"{100 * one['gain']:.2f} [{100 * low:.2f}, {100 * high:.2f}]",
                f"{one['moved']:.0%}",
                f"{one['moved_without']:.1%} to {one['moved_with']:.1%}" if one["moved"] else "",
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"
        yield ""


if __name__ == "__main__":
    main()
