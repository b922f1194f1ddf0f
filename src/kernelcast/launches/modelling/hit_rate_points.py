"""Reads measurements that hit rates can be fitted to, and derives the points of the fit."""

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelcast.analytic.gpu.hit_rates import FUNCTIONS, HIT, HitRate, HitRates, find_hit_rates
from kernelcast.analytic.gpu.volumes import GpuVolumes
from kernelcast.launches.modelling.folding import parse_fold
from kernelcast.launches.modelling.gpu_estimates import model_volumes
from kernelcast.launches.modelling.sources import Folds, LaunchSource
from kernelcast.launches.problem_file.parts import read_text
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription

VOLUMES = (
    "l2_load_bytes_per_update",
    "dram_load_bytes_per_update",
    "dram_store_bytes_per_update",
)
"""Columns of measured volumes."""
RATE = "updates_per_s"
"""Column of the measured speed."""
# Less than this share of a volume drowns in the noise of counters.
_LEAST_SHARE = 0.05
_ALWAYS = HitRate(a=0.0, b=0.0, c=0.0)
_NEVER = HitRate(a=0.0, b=0.0, c=0.0, form=HIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRatePoint:
    """One measured hit rate."""

    function: str
    """One of `FUNCTIONS`."""
    oversubscription: float
    """Allocated bytes over the capacity of the cache."""
    hit_rate: float
    """Hits over redundant accesses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLaunch:
    """Volumes that counters measured of one launch."""

    local_size: tuple[int, ...]
    """Work-items per work-group."""
    folds: Folds = ()
    """Axes and updates per work-item."""
    volumes: Mapping[str, float] = field(default_factory=dict)
    """Some of `VOLUMES` and `RATE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What a file of measurements holds."""

    points: tuple[HitRatePoint, ...] = ()
    """Hit rates given as such."""
    launches: tuple[MeasuredLaunch, ...] = ()
    """Launches with volumes, from which hit rates follow."""


def read_measurements(path: Path) -> Measurements:
    """Read measurements from CSV or JSON."""
    points, launches = [], []
    for number, row in enumerate(_read_rows(path), start=1):
        try:
            if row.get("hit_rate") not in {None, ""}:
                points.append(_read_point(row))
            else:
                launches.append(_read_launch(row))
        except (InputError, KeyError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            msg = (
                f"{path}: row {number}: {reason}; expected function, oversubscription and "
                f"hit_rate, or local_size and some of {', '.join((*VOLUMES, RATE))}"
            )
            raise InputError(msg) from error
    if not points and not launches:
        msg = f"{path}: holds no measurement"
        raise InputError(msg)
    return Measurements(points=tuple(points), launches=tuple(launches))


def derive_points(
    source: LaunchSource, machine: MachineDescription, launches: Iterable[MeasuredLaunch]
) -> list[HitRatePoint]:
    """Derive hit rates from measured volumes: what was loaded beyond what had to be."""
    found: list[HitRatePoint | None] = []
    for one in launches:
        launch = source.launch(one.local_size, one.folds)
        always, never = (
            {name: model_volumes(launch, machine, rates) for name, rates in each.items()}
            for each in (_fix_rates(_ALWAYS), _fix_rates(_NEVER))
        )
        loaded, from_dram, stored = (one.volumes.get(column) for column in VOLUMES)
        updates = source.ndrange.work_item_count
        if loaded is not None:
            few, many = always["l1_load"], never["l1_load"]
            between = few.l2_load_bytes, many.l2_load_bytes
            found.append(_point("l1_load", few.l1.oversubscription, between, loaded * updates))
        if from_dram is not None:
            usual = model_volumes(launch, machine, source.hit_rates)
            found.append(_derive_overlap(usual, from_dram * updates))
        if stored is not None:
            few, many = always["l2_store"], never["l2_store"]
            between = few.dram_store_bytes, many.dram_store_bytes
            over = few.wave.skew_oversubscription
            found.append(_point("l2_store", over, between, stored * updates))
    return [one for one in found if one is not None]


def _fix_rates(rate: HitRate) -> dict[str, HitRates]:
    """Give sets of hit rates in which one function each is constant."""
    usual = find_hit_rates()
    return {"l1_load": replace(usual, l1_load=rate), "l2_store": replace(usual, l2_store=rate)}


def _derive_overlap(volumes: GpuVolumes, measured: float) -> HitRatePoint | None:
    wave = volumes.wave
    if not wave.overlaps:
        return None
    largest = max(wave.overlaps, key=lambda one: one.shared_bytes)
    shared = largest.shared_bytes * wave.waves
    least = volumes.dram_load_bytes - shared * (1 - largest.hit_rate)
    between = least, least + shared
    return _point("l2_overlap", largest.oversubscription, between, measured)


def _point(
    function: str, oversubscription: float, between: tuple[float, float], measured: float
) -> HitRatePoint | None:
    """Place a measured volume between the ones with all hits and with none."""
    least, most = between
    if most - least < _LEAST_SHARE * measured:
        return None
    rate = min(1.0, max(0.0, (most - measured) / (most - least)))
    return HitRatePoint(function=function, oversubscription=oversubscription, hit_rate=rate)


def _read_rows(path: Path) -> list[dict[str, Any]]:
    text = read_text(path, "file of measurements", InputError)
    if path.suffix.lower() != ".json":
        return list(csv.DictReader(text.splitlines()))
    try:
        rows = json.loads(text)
    except ValueError as error:
        msg = f"{path}: no valid JSON: {error}"
        raise InputError(msg) from error
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        msg = f"{path}: expected a list of objects"
        raise InputError(msg)
    return rows


def _read_point(row: Mapping[str, Any]) -> HitRatePoint:
    function = str(row["function"])
    if function not in FUNCTIONS:
        msg = f"function {function!r} is none of {', '.join(FUNCTIONS)}"
        raise InputError(msg)
    over, rate = float(row["oversubscription"]), float(row["hit_rate"])
    if not (over >= 0 and 0 <= rate <= 1):
        msg = f"oversubscription {over} and hit rate {rate} are out of range"
        raise InputError(msg)
    return HitRatePoint(function=function, oversubscription=over, hit_rate=rate)


def _read_launch(row: Mapping[str, Any]) -> MeasuredLaunch:
    size = row["local_size"]
    parts = size if isinstance(size, list) else str(size).replace("x", ",").split(",")
    volumes = {key: float(row[key]) for key in (*VOLUMES, RATE) if row.get(key) not in {None, ""}}
    if not volumes or not all(value > 0 for value in volumes.values()):
        msg = "no positive number is given"
        raise InputError(msg)
    fold = str(row.get("fold") or "")
    return MeasuredLaunch(
        local_size=tuple(int(one) for one in parts),
        folds=tuple(parse_fold(one) for one in fold.split(",") if one),
        volumes=volumes,
    )
