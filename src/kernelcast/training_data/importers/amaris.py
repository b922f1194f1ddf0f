"""Nine CUDA vector and matrix kernels on nine NVIDIA GPUs, with nvprof's counters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.importers.foreign import (
    GRID_FEATURES,
    DataSet,
    ForeignRow,
    describe_grid,
    make_grid,
    number_repeats,
    read_column_names,
    read_rows,
)

NAME = "amaris_nca"
LICENCE = "CC BY 4.0, Marcos Amaris, gpuperfpredict"
_SCALES = {
    "regs_per_thread": ("compiler.registers_per_work_item", 1.0),
    "ana_read_bytes": ("analytic.compulsory_load_bytes", 1.0),
    "ana_write_bytes": ("analytic.compulsory_store_bytes", 1.0),
    "ana_flops": ("analytic.flops_count", 1.0),
    "dev_sms": ("analytic.machine_compute_units_count", 1.0),
    "dev_cores": ("analytic.machine_lanes_count", 1.0),
    "dev_clock_mhz": ("analytic.machine_clock_cycles_per_s", 1e6),
    "dev_mem_clock_mhz": ("analytic.machine_memory_clock_cycles_per_s", 1e6),
    "dev_bandwidth_gbs": ("analytic.machine_bandwidth_bytes_per_s", 1e9),
    "dev_l2_mb": ("analytic.machine_l2_bytes", 2.0**20),
}
"""Our name and the factor to our unit, by column."""
_LOCAL_BYTES = "compiler.local_bytes_per_work_group"
_COUNTER = "ctr_"
# What nvprof gives as a share, a mean or a percentage; everything else counts events.
_RATIOS = ("efficiency", "utilization", "hit_rate", "overhead", "ipc", "per_request", "per_warp",
           "occupancy", "activity", "per_active_cycle")  # fmt: skip


def read(path: Path) -> Iterator[Observation]:
    """Give one observation per row: kernel, block size, input size and GPU.

    Absent: repeated runs and noise, drivers, samples; counters that overflowed.
    """
    counters = {
        column: name_counter(column)
        for column in sorted(read_column_names(path))
        if column.startswith(_COUNTER)
    }
    schema = FeatureSchema(
        names=(*GRID_FEATURES, *(name for name, _ in _SCALES.values()), _LOCAL_BYTES,
               *counters.values()),
        version=1,
    )  # fmt: skip
    return number_repeats(_make(row, counters, schema) for row in read_rows(path))


def name_counter(column: str) -> str:
    """Name a counter of nvprof as a feature.

    Examples
    --------
    >>> name_counter("ctr_issued_ipc"), name_counter("ctr_shared_load")
    ('counters.nvprof_issued_ipc_ratio', 'counters.nvprof_shared_load_count')
    """
    unit = "ratio" if any(word in column for word in _RATIOS) else "count"
    return f"counters.nvprof_{column.removeprefix(_COUNTER)}_{unit}"


def _make(row: dict[str, Any], counters: dict[str, str], schema: FeatureSchema) -> Observation:
    ndrange = make_grid(
        [row[f"grid_{axis}"] for axis in "xyz"], [row[f"block_{axis}"] for axis in "xyz"]
    )
    scaled = {
        name: None if row[column] is None else row[column] * factor
        for column, (name, factor) in _SCALES.items()
    }
    return ForeignRow(
        data_set=NAME,
        licence=LICENCE,
        application=row["app"],
        kernel=row["kernel"],
        device=row["device"],
        runs=RunTimes(median_s=row["time_s"]),
        ndrange=ndrange,
        parameters={"input_size": row["input_size"]},
        features={
            **describe_grid(ndrange),
            **scaled,
            _LOCAL_BYTES: row["static_smem"] + row["dynamic_smem"],
            **{name: row[column] for column, name in counters.items()},
        },
        schema=schema,
    ).as_observation()


AMARIS = DataSet(
    name=NAME,
    title="9 CUDA kernels on 9 NVIDIA GPUs with nvprof's metrics and events",
    licence=LICENCE,
    columns=frozenset({"dev_cc", "static_smem", "ana_flops"}),
    read=read,
)
