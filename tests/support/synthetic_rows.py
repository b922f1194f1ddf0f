"""Rows of launches with planted structure, on which learners can be judged without a device.

Every kernel has hidden traits. The time of its launch follows a known law, of which the linear
model sees only what a sample shows: launches that fit into the cache while sampled and do not
while whole are predicted too fast, short ones pay the launch's floor, and each kernel differs
from the law by an amount of its own that no feature tells.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table

SCHEMA = FeatureSchema(
    names=(
        "static.work_items_count", "static.work_groups_count", "static.buffer_bytes",
        "static.loops_count", "static.fp64_flag", "compiler.registers_per_work_item",
        "sampled.work_groups_count", "sampled.total_s", "sampled.linear_s",
        "sampled.launch_overhead_s", "sampled.spread_ratio",
        "counters.issued_instructions_per_work_item",
        "counters.flops_per_work_item", "counters.global_load_bytes_per_work_item",
        "counters.lane_efficiency_ratio", "analytic.estimate_s", "analytic.dram_limiter_s",
        "analytic.fp32_limiter_s", "analytic.l2_oversubscription_ratio",
    ),
    version=1,
)  # fmt: skip
"""Features of synthetic rows."""
_ITEMS = 256
_FLOOR_S = 2e-4
_CURVATURE = 0.35
"""How much slower a launch far beyond the cache is than its sample says, as a logarithm."""
_KERNEL_EFFECT = 0.02
"""Standard deviation of what each kernel differs by, as a logarithm."""
_SAMPLE_NOISE = 0.02
"""Relative standard deviation of linear estimates."""
_RUN_NOISE = 0.015
"""Relative standard deviation of whole runs."""
_ABSENT = 0.05
"""Share of counters that are absent."""


@dataclass(frozen=True, slots=True)
class _Device:
    name: str
    compute_units: float
    cache_bytes: float
    bandwidth: float
    flops: float


def make_rows(
    *, kernels: int = 24, sizes: int = 6, devices: int = 1, seed: int = 0
) -> TrainingTable:
    """Make a table of kernels x sizes x devices rows."""
    rng = np.random.default_rng(seed)
    found = [_make_device(number) for number in range(devices)]
    columns: dict[str, list[Any]] = {}
    features = []
    for kernel in range(kernels):
        traits = rng.normal(size=6)
        effects = rng.normal(scale=_KERNEL_EFFECT, size=devices)
        for size in range(sizes):
            groups = float(round(1024 * 2 ** (6 * (size + rng.uniform()) / sizes)))
            for device, effect in zip(found, effects, strict=True):
                row = _make_row(traits, groups, device, rng)
                row["seconds"] = row["seconds"] * math.exp(effect)
                features.append(_hide(row.pop("features"), rng))
                row |= {
                    "kernels": f"suite/app{kernel // 2}/kernel{kernel}",
                    "applications": f"suite/app{kernel // 2}", "devices": device.name,
                    "problems": f"{seed}/kernel{kernel}/{groups:.0f}",
                    "keys": f"{seed}/{kernel:06d}/{size:04d}/{device.name}",
                }  # fmt: skip
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
    return make_table(SCHEMA, np.array(features), columns)


def _make_device(number: int) -> _Device:
    rng = np.random.default_rng(1000 + number)
    return _Device(
        f"device-{number}", float(2 ** rng.integers(1, 6)), 2.0 ** rng.uniform(22, 26),
        10 ** rng.uniform(9.5, 11.5), 10 ** rng.uniform(10.5, 12.5),
    )  # fmt: skip


def _make_row(
    traits: npt.NDArray[np.float64], groups: float, device: _Device, rng: np.random.Generator
) -> dict[str, Any]:
    flops = 10 ** (2.2 + 0.7 * traits[0])
    load_bytes = 10 ** (1.2 + 0.4 * traits[1])
    lanes = 1 / (1 + math.exp(-1.5 - traits[2]))
    spread = 0.02 * math.exp(0.8 * traits[3])
    items = groups * _ITEMS
    compute_s, memory_s = items * flops / device.flops, items * load_bytes / device.bandwidth
    working_set = items * load_bytes * 0.02 * math.exp(0.5 * traits[4])
    share = memory_s / (compute_s + memory_s)
    # Beyond the cache the sample's rate no longer holds: the cold start's curvature.
    beyond = math.tanh(math.log1p(working_set / device.cache_bytes) / 2)
    curve = _CURVATURE * share * beyond
    ideal_s = (compute_s + memory_s) / lanes
    seen_s = ideal_s * math.exp(rng.normal(scale=_SAMPLE_NOISE + 0.3 * spread))
    whole_s = (ideal_s * math.exp(curve) + _FLOOR_S) * math.exp(rng.normal(scale=_RUN_NOISE))
    sampled_groups = max(6.0, round(0.02 * groups))
    return {
        "seconds": whole_s, "linear_s": seen_s, "noise": _RUN_NOISE * 1.28,
        "linear_error": _SAMPLE_NOISE + 0.3 * spread, "work_groups": groups,
        "sampling_s": seen_s * sampled_groups / groups, "compute_units": device.compute_units,
        "cache_bytes": device.cache_bytes, "bandwidth_bytes_per_s": device.bandwidth,
        "flops_per_s": device.flops,
        "features": [
            items, groups, working_set, float(round(abs(traits[5]) * 2)), float(traits[5] > 1),
            float(round(20 + 8 * abs(traits[0]))), sampled_groups,
            seen_s * sampled_groups / groups, seen_s, _FLOOR_S, spread,
            flops * 1.8, flops, load_bytes,
            lanes, 0.7 * max(compute_s, memory_s), memory_s, compute_s,
            working_set / device.cache_bytes,
        ],
    }  # fmt: skip


def _hide(row: list[float], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Make some of the counters absent."""
    values = np.array(row, dtype=np.float64)
    is_counter = np.array([name.startswith("counters.") for name in SCHEMA.names])
    values[is_counter & (rng.uniform(size=len(values)) < _ABSENT)] = np.nan
    return values
