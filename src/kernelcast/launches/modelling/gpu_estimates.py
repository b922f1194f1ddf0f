"""Asks the GPU model for launches and sweeps; fits hit rates to measured launches, and compares."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import yaml

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.analytic.gpu.hit_rates import (
    FUNCTIONS,
    HIT,
    HitRate,
    HitRates,
    find_hit_rates,
    fit_hit_rate,
)
from kernelcast.analytic.gpu.machine import FITTED, PAPER_2022, read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.launches.modelling.estimating import add_code
from kernelcast.launches.modelling.launches import (
    AXES,
    Folds,
    ModelledKernel,
    find_unknown,
    parse_fold,
)
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, MachineFileError, NDRangeError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.private_files import writing
from kernelcast.records.yaml_files import load, read_described, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to launch a kernel, and what the model says of it."""

    local_size: tuple[int, ...]
    folds: Folds
    estimate: AnalyticEstimate
    volumes: GpuVolumes
    updates: int

    @property
    def label(self) -> str:
        """Local size and folding, such as ``16x2x32, folded 2z``."""
        return write_launch(self.local_size, self.folds)

    def predict(self, quantity: str) -> float:
        """Predict what can be measured of a launch: `RATE`, or one of `VOLUMES`."""
        if quantity == RATE:
            return self.updates / self.estimate.seconds
        return self.volumes.crossing_bytes[VOLUMES[quantity]] / self.updates


def write_folds(folds: Folds) -> str:
    """Write a folding as it is typed, such as ``2z``; empty without one."""
    return ",".join(f"{times}{AXES[axis]}" for axis, times in folds)


def write_launch(local_size: tuple[int, ...], folds: Folds) -> str:
    sides = "x".join(str(one) for one in local_size)
    return f"{sides}, folded {write_folds(folds)}" if folds else sides


def model_volumes(
    launch: ModelledLaunch, machine: MachineDescription, rates: HitRates | None = None
) -> GpuVolumes:
    machine.require_kind(DeviceKind.GPU)
    limit = machine.max_work_group_size
    size = launch.ndrange.work_group_size
    if limit is not None and size > limit.value:
        raise NDRangeError(
            f"local size {launch.ndrange.known_local_size} has {size} work-items; {machine.id} "
            f"takes at most {limit.value} per work-group"
        )
    unknown = find_unknown(launch.accesses, launch.recorded)
    if unknown:
        raise unknown[0].refuse_unknown(launch.kernel)
    return compute_volumes(launch, read_machine(machine), rates)


def configure(
    source: ModelledKernel,
    machine: MachineDescription,
    local_size: tuple[int, ...] | None = None,
    folds: Folds | None = None,
) -> Configuration:
    """Ask for one local size and one folding, the source's own when left out."""
    folds = source.folds if folds is None else folds
    launch = add_code(source.launch(local_size, folds), machine)
    volumes = model_volumes(launch, machine, source.hit_rates)
    constants = PAPER_2022 if volumes.rates == PAPER_2022.name else FITTED
    return Configuration(
        local_size=launch.ndrange.known_local_size,
        folds=folds,
        estimate=estimate_gpu(launch, machine, volumes, constants=constants),
        volumes=volumes,
        updates=source.ndrange.work_item_count,
    )


def list_local_sizes(ndrange: NDRange, machine: MachineDescription) -> list[tuple[int, ...]]:
    """List local sizes worth trying: powers of two per dimension, at least a warp of work-items."""
    if machine.max_work_group_size is None:
        raise InputError(
            f"machine {machine.id}: max_work_group_size is missing; `kernelcast calibrate` finds "
            "it on the device itself, or add it to the description"
        )
    most = machine.max_work_group_size.value
    warp = machine.warp_width.value if machine.warp_width else 32
    least = min(warp, ndrange.work_item_count)
    # NVIDIA's devices take 64 work-items of a work-group along dimension 2.
    limits = [most, most, 64]
    sides = [
        [1 << power for power in range(min(limit, size).bit_length())]
        for limit, size in zip(limits, ndrange.global_size, strict=False)
    ]
    return [one for one in product(*sides) if least <= math.prod(one) <= most]


def sweep_local_sizes(
    source: ModelledKernel,
    machine: MachineDescription,
    folds: Sequence[Folds] | None = None,
    report: Callable[[int, int], None] = lambda _, __: None,
) -> tuple[list[Configuration], list[tuple[str, str]]]:
    """Ask for all local sizes and some foldings: those found, fastest first, and those refused,
    each with the reason."""
    wanted = [source.folds] if folds is None else list(folds)
    sizes = list_local_sizes(source.ndrange, machine)
    found: list[Configuration] = []
    refused: list[tuple[str, str]] = []
    total = len(sizes) * len(wanted)
    for done, (each, size) in enumerate(product(wanted, sizes)):
        report(done, total)
        try:
            found.append(configure(source, machine, size, each))
        except InputError as error:
            refused.append((write_launch(size, each), str(error)))
    report(total, total)
    if not found:
        reason = refused[0][1] if refused else "no local size fits"
        raise InputError(f"{source.name}: no local size can be modelled on {machine.id}: {reason}")
    return sorted(found, key=lambda one: one.estimate.seconds), refused


def find_transition(sizes: Sequence[float], volumes: Sequence[float]) -> dict[str, float] | None:
    """Find a climb from few bytes per update to many, with the sizes at which a tenth and half of
    it is done; None where there is no climb."""
    low = min(volumes)
    start = max(index for index, volume in enumerate(volumes) if volume == low)
    high = max(volumes[start:])
    if low <= 0 or high < 1.15 * low:
        return None
    rest = list(zip(sizes[start:], volumes[start:], strict=True))
    begins, middle = (
        # The first size at which the curve, drawn in straight lines, reaches a level.
        next(
            before + (after - before) * (level - lower) / (upper - lower)
            for (before, lower), (after, upper) in pairwise(rest)
            if upper >= level > lower
        )
        for level in (low + 0.1 * (high - low), low + 0.5 * (high - low))
    )
    return {"begins": begins, "middle": middle, "low": low, "high": high}


def configuration_to_json(name: str, found: Configuration) -> dict[str, object]:
    """Give one answer; times are in seconds, volumes in bytes of the whole launch."""
    return {
        **({"kernel": name} if name else {}), "local_size": found.local_size,
        "fold": write_folds(found.folds), "updates": found.updates, **asdict(found.estimate),
    }  # fmt: skip


VOLUMES = {
    "l2_load_bytes_per_update": "L2_to_L1",
    "dram_load_bytes_per_update": "DRAM_to_L2",
    "dram_store_bytes_per_update": "L2_to_DRAM",
}
"""Columns of measured volumes, and the boundaries that the model calls them by."""
RATE = "updates_per_s"
Points: TypeAlias = dict[str, list[tuple[float, float]]]
"""Of each hit rate the oversubscription, allocated bytes over the capacity of the cache, and what
was measured there."""


MeasuredLaunch: TypeAlias = tuple[tuple[int, ...], Folds, Mapping[str, float]]
"""Local size, folding, and the quantities that were measured."""


def read_measurements(path: Path) -> tuple[Points, list[MeasuredLaunch]]:
    """Read hit rates and launches: rows of a table, or a list of objects (.json)."""
    text, is_json = read_text(path, "file of measurements"), path.suffix.lower() == ".json"
    points: Points = {name: [] for name in FUNCTIONS}
    launches, place = list[MeasuredLaunch](), ""
    try:
        rows = json.loads(text) if is_json else csv.DictReader(text.splitlines())
        for number, read in enumerate(rows, start=1):
            place = f" row {number}:"
            if not isinstance(read, dict):
                raise InputError("expected a list of objects")
            row = {key: value for key, value in read.items() if value not in (None, "")}
            if "hit_rate" in row:
                over, rate = float(row["oversubscription"]), float(row["hit_rate"])
                function = row["function"]
                if function not in points:
                    raise InputError(f"function {function!r} is none of {', '.join(FUNCTIONS)}")
                if not (over >= 0 and 0 <= rate <= 1):
                    msg = f"oversubscription {over} and hit rate {rate} are out of range"
                    raise InputError(msg)
                points[function].append((over, rate))
                continue
            size, folds = row["local_size"], str(row.get("fold", "")).split(",")
            sides = size if isinstance(size, list) else str(size).replace("x", ",").split(",")
            volumes = {key: float(row[key]) for key in (*VOLUMES, RATE) if key in row}
            if not volumes or not all(value > 0 for value in volumes.values()):
                raise InputError("no positive number is given")
            folded = tuple(parse_fold(one) for one in folds if one)
            launches.append((tuple(map(int, sides)), folded, volumes))
    except (InputError, KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(
            f"{path}:{place} {reason}; expected function, oversubscription and hit_rate, or "
            f"local_size and some of {', '.join((*VOLUMES, RATE))}"
        ) from error
    if not any(points.values()) and not launches:
        raise InputError(f"{path}: holds no measurement")
    return points, launches


def derive_points(
    source: ModelledKernel, machine: MachineDescription, launches: Iterable[MeasuredLaunch]
) -> Points:
    """Derive hit rates from measured volumes: what was loaded beyond what had to be."""
    points: Points = {name: [] for name in FUNCTIONS}

    def place(function: str, over: float, least: float, most: float, measured: float) -> None:
        """Place a measured volume between the ones with all hits and with none."""
        # Less than this share of a volume drowns in the noise of counters.
        if most - least >= 0.05 * measured:
            points[function].append(
                (over, float(np.clip((most - measured) / (most - least), 0, 1)))
            )

    for local_size, folds, given in launches:
        launch = source.launch(local_size, folds)
        loaded, from_dram, stored = (given.get(column) for column in VOLUMES)
        updates = source.ndrange.work_item_count
        usual = model_volumes(launch, machine, source.hit_rates)
        if loaded is not None:
            few, many = _bound(launch, machine, "l1_load")
            # What neighbours on the unit have loaded is not what this rate is about.
            own = loaded * updates + usual.l1.neighbour_bytes * usual.work_groups
            least, most = (
                (each.l1.compulsory_bytes + each.l1.capacity_bytes) * each.work_groups
                for each in (few, many)
            )
            place("l1_load", few.l1.oversubscription, least, most, own)
        if from_dram is not None and usual.wave.overlaps:
            largest = max(usual.wave.overlaps, key=lambda one: one.shared_bytes)
            shared = largest.shared_bytes * usual.wave.waves
            least = usual.dram_load_bytes - shared * (1 - largest.hit_rate)
            over = largest.oversubscription
            place("l2_overlap", over, least, least + shared, from_dram * updates)
        if stored is not None:
            few, many = _bound(launch, machine, "l2_store")
            over, least = few.wave.skew_oversubscription, few.dram_store_bytes
            place("l2_store", over, least, many.dram_store_bytes, stored * updates)
    return points


def _bound(
    launch: ModelledLaunch, machine: MachineDescription, function: str
) -> tuple[GpuVolumes, GpuVolumes]:
    """Ask for volumes where a hit rate is constant: all hits, and none."""
    always, never = HitRate(a=0.0, b=0.0, c=0.0), HitRate(a=0.0, b=0.0, c=0.0, form=HIT)
    few, many = (
        model_volumes(launch, machine, replace(find_hit_rates(), **{function: one}))  # type: ignore[arg-type]  # one of FUNCTIONS
        for one in (always, never)
    )
    return few, many


SCHEMA = "kernelcast-hit-rates-1"
Fits: TypeAlias = dict[str, tuple[HitRate, dict[str, float]]]
"""Hit rates by their names, and the standard errors of their constants."""
_LEAST_POINTS = 4


def fit_all(points: Points) -> Fits:
    """Fit each hit rate that has at least four points which determine it."""
    found: Fits = {}
    for function, own in points.items():
        if len(own) >= _LEAST_POINTS:
            shipped: HitRate = getattr(find_hit_rates(), function)
            rate, errors = fit_hit_rate(*zip(*own, strict=True), form=shipped.form)
            if 0 < errors["c"] < math.inf and rate.deviation < 0.25:  # no wide scatter
                found[function] = rate, errors
    if not found:
        given = ", ".join(f"{name}: {len(own)}" for name, own in points.items())
        raise InputError(
            f"no hit rate can be fitted: each needs {_LEAST_POINTS} points that follow a sigmoid "
            f"({given}); measure more local sizes"
        )
    return found


def write_hit_rates(path: Path, provenance: str, fits: Fits, points: Points) -> None:
    """Write fitted hit rates with their errors, and the shipped ones in the place of others."""
    content: dict[str, object] = {"schema": SCHEMA, "name": path.stem, "provenance": provenance}
    for function in FUNCTIONS:
        rate, errors = fits.get(function, (getattr(find_hit_rates(), function), None))
        entry = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in asdict(rate).items()
        }
        if errors is None:
            entry["fitted"] = False
        else:
            entry["standard_errors"] = {key: float(f"{one:.6g}") for key, one in errors.items()}
            entry["points"] = len(points[function])
        content[function] = entry
    with writing(path, "the hit rates"):
        path.write_text(yaml.safe_dump(content, sort_keys=False, width=100), encoding="utf-8")


def read_hit_rates_file(wanted: str) -> HitRates:
    """Find a shipped set of hit rates by its name, or read a file that `write_hit_rates` wrote."""
    path = Path(wanted)
    if path.suffix.lower() not in {".yaml", ".yml"}:
        return find_hit_rates(wanted)
    needs = f"hit rates need `schema: {SCHEMA}`; `kernelcast model fit` writes such files"
    return read_described(_make_rates, load(path, "hit rates", needs, MachineFileError), SCHEMA)


_ABOUT_FITS = ("standard_errors", "points", "fitted")
_Rate: TypeAlias = Annotated[HitRate, lambda one: one.call(HitRate, without=_ABOUT_FITS)]


def _make_rates(
    name: str, provenance: str, l1_load: _Rate, l2_overlap: _Rate, l2_store: _Rate
) -> HitRates:
    return HitRates(
        name=name, provenance=provenance, l1_load=l1_load, l2_overlap=l2_overlap, l2_store=l2_store
    )


def compare_with_measured(
    source: ModelledKernel, machine: MachineDescription, launches: Sequence[MeasuredLaunch]
) -> list[dict[str, Any]]:
    """Compare predictions with each quantity that was measured: mean relative error, its sign left
    out or not, and Kendall's tau, None where all values are alike."""
    from scipy.stats import kendalltau  # takes a while to load

    if not launches:
        raise InputError("no launch was measured; expected rows with local_size")
    found = [configure(source, machine, size, folds or None) for size, folds, _ in launches]
    comparisons = []
    for quantity in (*VOLUMES, RATE):
        rows: list[dict[str, Any]] = [
            {"launch": answer.label, "measured": given[quantity],
             "predicted": answer.predict(quantity)}
            for (*_, given), answer in zip(launches, found, strict=True)
            if quantity in given
        ]  # fmt: skip
        if not rows:
            continue
        measured, predicted = ([row[name] for row in rows] for name in ("measured", "predicted"))
        errors = np.divide(predicted, measured) - 1
        differ = len({*measured}) > 1 and len({*predicted}) > 1
        comparisons.append({
            "quantity": quantity, "mean_error": float(np.mean(np.abs(errors))),
            "bias": float(np.mean(errors)),
            "kendall_tau": float(kendalltau(measured, predicted).statistic) if differ else None,
            "launches": rows,
        })  # fmt: skip
    return comparisons
