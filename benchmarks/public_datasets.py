"""Leave-one-group-out errors of our learner on other people's measurements.

None of these sets holds samples, so there is no linear model to correct. The learner is the
hybrid's, gated epsilon-SVR, on one of two references: Roofline with the peaks that the set gives
for its devices (for the V100 of RAJAPerf those in ``baselines.csv``), or
`limiter_times`, volumes over rates learned from the training's rows. Each fit takes
the one whose error is lower on groups held out within its own training rows. What is held out
outside chooses nothing. Groups, rows and
features follow the protocol of the baselines that come with the sets: see the README of each.

Run it as ``python benchmarks/public_datasets.py FOLDER [SET ...]``, where FOLDER holds the data
sets and ``baselines.csv``.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from harness import read_json, write_json, write_text
from limiter_times import FittedLimiters, LimiterReference, Volume

from kernelcast.models.regression import INNER_FOLDS, divide_groups, number_groups
from kernelcast.models.time_models import FittedModel, Forecast, TimeModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.validation.running import Candidate, ValidationPlan, validate
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import Numbers, Texts, TrainingTable, make_table
from kernelcast.training_data.importers.tables import find_data_set

RESULTS = harness.RESULTS / "public_datasets"
OURS = "gated SVR on the better reference (ours)"
LAUNCH = Volume(name="")
LAUNCH_S = 5e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One way to divide one set."""

    name: str
    file: str
    """Path of the set under the folder."""
    baseline: tuple[str, str]
    """Data set and beginning of the protocol's name in ``baselines.csv``."""
    volumes: tuple[Volume, ...]
    """What takes time."""
    roofline: Callable[[Mapping[str, float]], float] | None = None
    """Roofline's time in seconds by features; None where the set tells no peaks."""
    label: Callable[[Observation], str] = lambda one: one.launch.kernel.label
    """The group that is held out."""


def _roof_rajaperf(one: Mapping[str, float]) -> float:
    """Give the launches' floor and the larger of two limiters' times."""
    launches = one.get("static.launches_count", 1.0)
    return LAUNCH_S * launches + max(
        one["analytic.compulsory_bytes"] / 790e9, one.get("analytic.flops_count", np.nan) / 7e12
    )


def _volumes(*names: str) -> tuple[Volume, ...]:
    return (LAUNCH, *(Volume(name=name) for name in names))


_AIWC = _volumes(
    "counters.aiwc_instructions_count", "counters.aiwc_operands_count",
    "counters.aiwc_addresses_count", "counters.aiwc_barriers_count", "static.work_items_count",
)  # fmt: skip
PROTOCOLS = (
    Protocol(
        name="rajaperf", file="rajaperf/lassen_v100_configs.parquet",
        baseline=("rajaperf", "LOKO"), roofline=_roof_rajaperf,
        volumes=(
            Volume(name="static.launches_count"),
            *_volumes("analytic.compulsory_bytes", "analytic.flops_count")[1:],
        ),
    ),
    Protocol(
        name="aiwc_kernel", file="aiwc_opendwarfs/configs.parquet",
        baseline=("aiwc", "leave-one-kernel-out"), volumes=_AIWC,
    ),
    Protocol(
        name="aiwc_application", file="aiwc_opendwarfs/configs.parquet",
        baseline=("aiwc", "leave-one-app-out"), volumes=_AIWC,
        label=lambda one: one.launch.kernel.application,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLearned:
    """A learned reference, and what corrects it; made by `Learned.fit`."""

    name: str
    reference: FittedLimiters | None
    model: FittedModel

    @property
    def inner_error(self) -> float:
        """Mean error on groups held out within the training."""
        assert self.model.correction is not None
        return self.model.correction.inner_error

    def predict(self, table: TrainingTable) -> Numbers:
        """Give the time of every launch, in seconds."""
        return self.model.predict(self._refer(table))

    def forecast(self, table: TrainingTable, coverage: float = DEFAULT_COVERAGE) -> Forecast:
        """Give times with intervals."""
        return self.model.forecast(self._refer(table), coverage)

    def _refer(self, table: TrainingTable) -> TrainingTable:
        return table if self.reference is None else table.assign(
            linear_s=self.reference.seconds(table)
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A gated SVR on the limiters' times, or on the Roofline's where there are no volumes."""

    name: str
    volumes: tuple[Volume, ...] = ()

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedLearned:
        """Fit the reference, and correct what it says of groups that it has not seen."""
        labels = table.kernels if groups is None else groups
        if not self.volumes:
            model = TimeModel(name=self.name, reference="analytic", learner="svr")
            return FittedLearned(name=self.name, reference=None, model=model.fit(table, labels))
        reference = LimiterReference(volumes=self.volumes)
        parts = divide_groups(number_groups(labels), INNER_FOLDS)
        unseen = table.assign(linear_s=reference.cross_seconds(table, parts))
        model = TimeModel(name=self.name, learner="svr")
        return FittedLearned(
            name=self.name, reference=reference.fit(table), model=model.fit(unseen, labels)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """Models, of which each fit keeps the one that errs least on held-out groups of its rows."""

    name: str
    candidates: tuple[Learned, ...]
    """The plainest first: it wins where errors are equal."""

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedLearned:
        """Fit all and keep the best."""
        fitted = [one.fit(table, groups) for one in self.candidates]
        return min(fitted, key=lambda one: one.inner_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Errors of one model under one protocol, in the words of ``baselines.csv``; percentages."""

    protocol: str
    model: str
    rows: int
    mean: float
    median: float
    p90: float
    geometric_factor: float
    within_factor_2: float
    coverage_of_90: float | None
    half_width: float | None


def read_table(folder: Path, protocol: Protocol) -> tuple[TrainingTable, Texts]:
    """Read the rows of a protocol, and their groups."""
    path = folder / protocol.file
    rows = [*find_data_set(path).read(path)]
    names = next(one.features.schema.names for one in rows if one.features is not None)
    matrix = np.array([one.features.align() for one in rows if one.features])
    if protocol.roofline is not None:
        names = (*names, "analytic.estimate_s")
        times = [protocol.roofline(one.features.as_dict()) for one in rows if one.features]
        matrix = np.column_stack([matrix, times])
    columns: dict[str, Sequence[str] | Sequence[float]] = {
        "keys": [one.key for one in rows],
        "kernels": [protocol.label(one) for one in rows],
        "devices": [one.launch.device.name for one in rows],
        "seconds": [one.seconds for one in rows],
    }
    table = make_table(FeatureSchema(names=names, version=1), matrix, columns)
    return table, table.kernels


def list_models(protocol: Protocol) -> list[Candidate]:
    """Give our learner, its two halves, and the references alone where they need no learning."""
    halves = [Learned(name="limiters + gated SVR", volumes=protocol.volumes)]
    if protocol.roofline is None:
        return [BestOf(name=OURS, candidates=(*halves,))]
    halves.insert(0, Learned(name="Roofline + gated SVR"))
    roofline = TimeModel(name="Roofline", reference="analytic")
    return [roofline, *halves, BestOf(name=OURS, candidates=(*halves,))]


def summarise(report: ValidationReport, protocol: Protocol) -> list[Outcome]:
    """Give errors over the rows of all devices together."""
    measured = np.array(report.rows.measured_s)
    outcomes = []
    for one in report.rows.models:
        seconds, low, high = (
            np.array(column, dtype=np.float64) for column in (one.seconds, one.low, one.high)
        )
        known = np.isfinite(seconds)
        errors = np.abs(seconds - measured)[known] / measured[known]
        factors = np.abs(np.log(seconds[known] / measured[known]))
        inside = (low <= measured)[known] & (measured <= high)[known]
        outcomes.append(Outcome(
            protocol=protocol.name, model=one.model, rows=int(known.sum()),
            mean=100 * float(errors.mean()), median=100 * float(np.median(errors)),
            p90=100 * float(np.quantile(errors, 0.9)),
            geometric_factor=float(np.exp(factors.mean())),
            within_factor_2=100 * float((factors <= np.log(2)).mean()),
            coverage_of_90=100 * float(inside.mean()),
            half_width=100 * float(np.median(np.sqrt(high[known] / low[known]) - 1)),
        ))  # fmt: skip
    return outcomes


def read_baselines(path: Path, protocol: Protocol) -> list[Outcome]:
    """Give the baselines of a protocol."""
    data_set, begin = protocol.baseline
    table = pd.read_csv(path)
    is_shown = (table["ds"] == data_set) & (
        table["proto"].str.startswith(begin) | table["proto"].str.startswith("no training")
    )
    return [
        Outcome(
            protocol=protocol.name, model=f"baseline: {row['model']}", rows=int(row["n"]),
            mean=row["MAPE"], median=row["medAPE"], p90=row["p90APE"],
            geometric_factor=row["geo"], within_factor_2=row["within2x"],
            coverage_of_90=None, half_width=None,
        )
        for row in table[is_shown].to_dict("records")
    ]  # fmt: skip


def write_summary() -> None:
    """Write a table of every protocol that was run."""
    outcomes = pd.DataFrame(
        one for path in sorted(RESULTS.glob("*.json")) for one in read_json(path)["outcomes"]
    )
    titles = (
        "protocol", "model", "rows", "mean", "median", "90th", "geometric factor", "within 2x",
        "90 % interval held", "half width",
    )  # fmt: skip
    digits = {"geometric_factor": 2, "rows": 0}
    for name in outcomes.columns[2:]:
        outcomes[name] = [
            None if pd.isna(one) else f"{one:.{digits.get(name, 1)}f}" for one in outcomes[name]
        ]
    cells = outcomes.astype(object).where(outcomes.notna(), None).to_numpy()
    write_text(
        RESULTS / "summary.md",
        "# Public data sets: leave-one-group-out", "",
        "Written by `benchmarks/public_datasets.py`. Errors in percent; baselines are those that "
        "come with the sets. Intervals were asked to hold 90 %.", "",
        *harness.make_table(titles, cells),
    )  # fmt: skip


def run(folder: Path, protocol: Protocol) -> None:
    """Validate one protocol, and write what was found."""
    began = time.perf_counter()
    table, groups = read_table(folder, protocol)
    plan = ValidationPlan(split="kernel", is_per_device=False)
    report = validate(table, list_models(protocol), groups, plan)
    outcomes = [*read_baselines(folder / "baselines.csv", protocol), *summarise(report, protocol)]
    content = {
        "data_digest": report.data_digest,
        "groups": len(set(groups.tolist())),
        "refused": dict(report.refused),
        "versions": dict(report.versions),
        "outcomes": [asdict(one) for one in outcomes],
    }
    write_json(RESULTS / f"{protocol.name}.json", content)
    for one in outcomes:
        print(f"{one.protocol:18} {one.model:38} {one.mean:7.1f} {one.median:6.1f} {one.p90:7.1f}")
    print(f"{protocol.name}: {time.perf_counter() - began:.0f} s")


def main(arguments: Sequence[str]) -> None:
    """Run the protocols named, or all."""
    folder, wanted = Path(arguments[0]), {*islice(arguments, 1, None)}
    for protocol in PROTOCOLS:
        if not wanted or protocol.name in wanted:
            run(folder, protocol)
    write_summary()


if __name__ == "__main__":
    main(sys.argv[1:])
