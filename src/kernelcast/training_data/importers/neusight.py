"""PyTorch operators on NVIDIA and AMD GPUs, with kernel names and grids."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.importers.foreign import (
    GRID_FEATURES,
    DataSet,
    ForeignRow,
    ImportFileError,
    Value,
    describe_grid,
    make_grid,
    number_repeats,
    read_rows,
)

NAME = "neusight"
LICENCE = "MIT, (c) 2025 Georgia Institute of Technology and Microsoft"
DEVICES_FILE = "devices.csv"
_VOLUMES = {
    "ana_read_bytes": "analytic.compulsory_load_bytes",
    "ana_write_bytes": "analytic.compulsory_store_bytes",
    "ana_flops": "analytic.flops_count",
}
_MACHINE = {
    "Mem_Bw": ("analytic.machine_bandwidth_bytes_per_s", 1e9),
    "Num_Sm": ("analytic.machine_compute_units_count", 1.0),
    "Freq": ("analytic.machine_clock_cycles_per_s", 1e6),
    "SingleFLOPs": ("analytic.machine_flops_per_s", 1e9),
    "L2Cache": ("analytic.machine_l2_bytes", 2.0**20),
}
"""Our name and the factor to our unit, by column of `DEVICES_FILE`."""
_SIZES = ("dim_b", "dim_m", "dim_n", "dim_k", "dim_h", "dim_input_channel", "dim_output_channel",
          "dim_kernel_size", "dim_input_size", "dim_stride", "dim_padding")  # fmt: skip
_COLUMNS = (
    "device", "op", "kernel", "n_kernels", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
    "block_z", "time_s", *_SIZES, *_VOLUMES,
)  # fmt: skip
SCHEMA = FeatureSchema(
    names=(*GRID_FEATURES, *_VOLUMES.values(), *(name for name, _ in _MACHINE.values())),
    version=1,
)


def read(path: Path) -> Iterator[Observation]:
    """Give one observation per operator, sizes and device.

    The operator is the application: its kernels are near copies of each other. Rows that are sums
    over several kernels are left out. Absent: repeated runs and noise, drivers, samples; figures
    of devices where `DEVICES_FILE` does not lie beside the file.
    """
    machines = _read_machines(path.with_name(DEVICES_FILE))
    rows = (row for row in read_rows(path, _COLUMNS) if row["n_kernels"] == 1)
    return number_repeats(_make(row, machines.get(row["device"], {})) for row in rows)


def _make(row: dict[str, Any], machine: Mapping[str, float]) -> Observation:
    ndrange = make_grid(
        [row[f"grid_{axis}"] for axis in "xyz"], [row[f"block_{axis}"] for axis in "xyz"]
    )
    sizes: dict[str, Value] = {
        name.removeprefix("dim_"): int(row[name]) for name in _SIZES if row[name] is not None
    }
    return ForeignRow(
        data_set=NAME,
        licence=LICENCE,
        application=row["op"],
        kernel=row["kernel"],
        device=row["device"],
        runs=RunTimes(median_s=row["time_s"]),
        ndrange=ndrange,
        parameters={"operator": row["op"], **sizes},
        features={
            **describe_grid(ndrange),
            **{name: row[column] for column, name in _VOLUMES.items()},
            **machine,
        },
        schema=SCHEMA,
    ).as_observation()


def _read_machines(path: Path) -> dict[str, dict[str, float]]:
    """Read figures of devices; empty cells are absent."""
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {
                row["Device"]: {
                    name: float(row[column]) * factor
                    for column, (name, factor) in _MACHINE.items()
                    if row[column]
                }
                for row in csv.DictReader(file)
            }
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        msg = f"{path}: is no table of devices ({error!r}); put the original back, or remove it"
        raise ImportFileError(msg) from error


NEUSIGHT = DataSet(
    name=NAME,
    title="PyTorch operators on GPUs from P4 to H100, with kernel names and grids",
    licence=LICENCE,
    columns=frozenset({"op", "n_kernels", "dim_b"}),
    read=read,
)
