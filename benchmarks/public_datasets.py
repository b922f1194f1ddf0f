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

import csv
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from limiter_times import FittedLimiters, LimiterReference, Volume

from kernelcast.models.regression import INNER_FOLDS, divide_groups, number_groups
from kernelcast.models.time_models import FittedModel, Forecast, TimeModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.validation.running import Candidate, ValidationPlan, validate
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import Numbers, Texts, TrainingTable, make_table
from kernelcast.training_data.importers import find_data_set

RESULTS = Path(__file__).parent / "results" / "public_datasets"
OURS = "gated SVR on the better reference (ours)"
LAUNCH = Volume(name="")
LAUNCH_S = 5e-6
# Cycles and time in other words: nothing that could be known before the launch has ended.
_TELLS_TIME = ("elapsed_cycles", "active_cycles", "active_warps", "occupancy", "throughput")
_NEUSIGHT_ROWS = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One way to divide one set.

    Parameters
    ----------
    name : str
        Short name.
    file : str
        Path of the set under the folder.
    baseline : tuple of str
        Data set and beginning of the protocol's name in ``baselines.csv``.
    volumes : tuple of Volume
        What takes time.
    roofline : callable or None
        Gives Roofline's time in seconds by features; None where the set tells no peaks.
    label : callable
        Gives the group that is held out.
    keep : callable
        Gives whether a feature is used.
    device : str
        The only device to take, by its name; all when empty.
    needs_counters : bool
        Whether rows without complete counters are left out.
    rows : int
        Rows to take, spread evenly over the set; all when 0.
    """

    name: str
    file: str
    baseline: tuple[str, str]
    volumes: tuple[Volume, ...]
    roofline: Callable[[Mapping[str, float]], float] | None = None
    label: Callable[[Observation], str] = lambda one: one.launch.kernel.label
    keep: Callable[[str], bool] = lambda name: bool(name)
    device: str = ""
    needs_counters: bool = False
    rows: int = 0


def _roof(one: Mapping[str, float], volume_bytes: float, peaks: tuple[float, float]) -> float:
    """Give a launch's floor and the larger of two limiters' times."""
    bandwidth, flops = peaks
    launches = one.get("static.launches_count", 1.0)
    return LAUNCH_S * launches + max(
        volume_bytes / bandwidth, one.get("analytic.flops_count", np.nan) / flops
    )


def _roof_rajaperf(one: Mapping[str, float]) -> float:
    return _roof(one, one["analytic.compulsory_bytes"], (790e9, 7e12))


def _compulsory_bytes(one: Mapping[str, float]) -> float:
    loads = one.get("analytic.compulsory_load_bytes", np.nan)
    return loads + one.get("analytic.compulsory_store_bytes", np.nan)


def _roof_neusight(one: Mapping[str, float]) -> float:
    peaks = one["analytic.machine_bandwidth_bytes_per_s"], one["analytic.machine_flops_per_s"]
    return _roof(one, _compulsory_bytes(one), peaks)


def _roof_amaris(one: Mapping[str, float]) -> float:
    lanes, clock = one["analytic.machine_lanes_count"], one["analytic.machine_clock_cycles_per_s"]
    peaks = one["analytic.machine_bandwidth_bytes_per_s"], 2 * lanes * clock
    return _roof(one, _compulsory_bytes(one), peaks)


def _volumes(*names: str) -> tuple[Volume, ...]:
    pairs = (name.partition("/") for name in names)
    return (LAUNCH, *(Volume(name=name, per=per) for name, _, per in pairs))


_AMARIS = _volumes(
    "analytic.compulsory_load_bytes/analytic.machine_bandwidth_bytes_per_s",
    "analytic.compulsory_store_bytes/analytic.machine_bandwidth_bytes_per_s",
    "analytic.flops_count/analytic.machine_lanes_count",
    "static.work_items_count/analytic.machine_lanes_count",
)
_AIWC = _volumes(
    "counters.aiwc_instructions_count", "counters.aiwc_operands_count",
    "counters.aiwc_addresses_count", "counters.aiwc_barriers_count", "static.work_items_count",
)  # fmt: skip
_NEUSIGHT = _volumes(
    "analytic.compulsory_load_bytes", "analytic.compulsory_store_bytes", "analytic.flops_count",
    "static.work_groups_count",
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
    Protocol(
        name="amaris_analytic", file="amaris_nca/data.parquet",
        baseline=("amaris_nca", "LOKO 9 kernels, 9 GPUs pooled"), volumes=_AMARIS,
        roofline=_roof_amaris,
        keep=lambda name: not name.startswith("counters."),
    ),
    Protocol(
        name="amaris_counters", file="amaris_nca/data.parquet",
        baseline=("amaris_nca", "LOKO 9 kernels, rows with complete counters"),
        volumes=(
            *_AMARIS,
            *_volumes(
                "counters.nvprof_instructions_issued_count/analytic.machine_lanes_count",
                "counters.nvprof_global_load_transactions_count/analytic.machine_lanes_count",
                "counters.nvprof_device_memory_read_transactions_count"
                "/analytic.machine_bandwidth_bytes_per_s",
                "counters.nvprof_device_memory_write_transactions_count"
                "/analytic.machine_bandwidth_bytes_per_s",
            )[1:],
        ),
        keep=lambda name: not any(word in name for word in _TELLS_TIME),
        needs_counters=True, roofline=_roof_amaris,
    ),
    *(
        Protocol(
            name=f"neusight_{short}", file="neusight/data.parquet",
            baseline=("neusight", f"{device} leave-one-op-out"), volumes=_NEUSIGHT,
            label=lambda one: one.launch.kernel.application, device=device, rows=_NEUSIGHT_ROWS,
            roofline=_roof_neusight,
        )
        for short, device in (("a100", "NVIDIA A100-PCIE-40GB"), ("t4", "Tesla T4"))
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
    found: Iterable[Observation] = find_data_set(path).read(path)
    if protocol.device:
        found = (one for one in found if one.launch.device.name == protocol.device)
    rows = [*found]
    if protocol.rows and len(rows) > protocol.rows:
        step = len(rows) / protocol.rows
        rows = [rows[int(place * step)] for place in range(protocol.rows)]
    return _make_table(rows, protocol)


def _make_table(rows: Sequence[Observation], protocol: Protocol) -> tuple[TrainingTable, Texts]:
    names = next(one.features.schema.names for one in rows if one.features is not None)
    kept = tuple(name for name in names if protocol.keep(name))
    columns_kept = [place for place, name in enumerate(names) if protocol.keep(name)]
    matrix = np.array([one.features.align()[columns_kept] for one in rows if one.features])
    counters = np.array([name.startswith("counters.") for name in kept])
    whole = np.ones(len(rows), dtype=np.bool_)
    if protocol.needs_counters:  # counters that a whole generation of devices lacks do not count
        common = counters & (np.isnan(matrix).mean(axis=0) < 0.1)
        whole = ~np.isnan(matrix[:, common]).any(axis=1)
    columns: dict[str, Sequence[str] | Sequence[float]] = {
        "keys": [one.key for one in rows],
        "kernels": [protocol.label(one) for one in rows],
        "devices": [one.launch.device.name for one in rows],
        "seconds": [one.seconds for one in rows],
    }
    if protocol.roofline is not None:
        kept = (*kept, "analytic.estimate_s")
        times = [protocol.roofline(one.features.as_dict()) for one in rows if one.features]
        matrix = np.column_stack([matrix, times])
    table = make_table(FeatureSchema(names=kept, version=1), matrix, columns).take(whole)
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
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["ds"] == data_set]
    return [
        Outcome(
            protocol=protocol.name, model=f"baseline: {row['model']}", rows=int(row["n"]),
            mean=float(row["MAPE"]), median=float(row["medAPE"]), p90=float(row["p90APE"]),
            geometric_factor=float(row["geo"]), within_factor_2=float(row["within2x"]),
            coverage_of_90=None, half_width=None,
        )
        for row in rows
        if row["proto"].startswith(begin) or row["proto"].startswith("no training")
    ]  # fmt: skip


def write_summary() -> None:
    """Write a table of every protocol that was run."""
    lines = [
        "# Public data sets: leave-one-group-out",
        "",
        "Written by `benchmarks/public_datasets.py`. Errors in percent; baselines are those that "
        "come with the sets. Intervals were asked to hold 90 %.",
        "",
        "| protocol | model | rows | mean | median | 90th | geometric factor | within 2x "
        "| 90 % interval held | half width |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["outcomes"]:
            numbers = [row["mean"], row["median"], row["p90"]]
            intervals = [row["coverage_of_90"], row["half_width"]]
            lines.append(
                f"| {row['protocol']} | {row['model']} | {row['rows']} | "
                + " | ".join(f"{one:.1f}" for one in numbers)
                + f" | {row['geometric_factor']:.2f} | {row['within_factor_2']:.1f} | "
                + " | ".join("" if one is None else f"{one:.1f}" for one in intervals)
                + " |"
            )
    (RESULTS / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path, protocol: Protocol) -> None:
    """Validate one protocol, and write what was found."""
    began = time.perf_counter()
    table, groups = read_table(folder, protocol)
    plan = ValidationPlan(split="kernel", is_per_device=False)
    report = validate(table, list_models(protocol), groups, plan)
    outcomes = [*read_baselines(folder / "baselines.csv", protocol), *summarise(report, protocol)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    content = {
        "data_digest": report.data_digest,
        "groups": len(set(groups.tolist())),
        "refused": dict(report.refused),
        "versions": dict(report.versions),
        "outcomes": [asdict(one) for one in outcomes],
    }
    path = RESULTS / f"{protocol.name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
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
