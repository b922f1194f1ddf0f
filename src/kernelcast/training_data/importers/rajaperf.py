"""The RAJA Performance Suite on a V100 and on one core of a Xeon."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.observed_times import RunTimes, summarise_runs
from kernelcast.training_data.importers.foreign import DataSet, ForeignRow, read_rows

NAME = "rajaperf"
LICENCE = "MIT, (c) LLNL"
_WORK = {
    "iterations_per_rep": "static.work_items_count",
    "kernels_per_rep": "static.launches_count",
    "bytes_per_rep": "analytic.compulsory_bytes",
    "flops_per_rep": "analytic.flops_count",
}
# Derived in the data set from iterations and block size: true of most kernels, not of tiled ones
# and of reductions, so they are features and no index space.
_GPU = {"n_workgroups": "static.work_groups_count",
        "block_size": "static.work_items_per_work_group"}  # fmt: skip
_TOP_DOWN = "ctr_topdown_"
_TOP_DOWN_PARTS = (
    "retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict",
    "machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound",
    "ext_mem_bound", "l1_bound", "l2_bound", "l3_bound",
)  # fmt: skip
_CPU = {f"{_TOP_DOWN}{one}": f"counters.topdown_{one}_ratio" for one in _TOP_DOWN_PARTS}
_NAMES = ("group", "kernel", "device", "run_size", "time_s")
_CPU_NAMES = ("compiler", "opt_level", "tuning")
GPU_SCHEMA = FeatureSchema(names=(*_WORK.values(), *_GPU.values()), version=1)
CPU_SCHEMA = FeatureSchema(names=(*_WORK.values(), *_CPU.values()), version=1)


def read_gpu(path: Path) -> Iterator[Observation]:
    """Give one observation per kernel, size and block size.

    Absent: index spaces, single runs and their spread, drivers, samples, counters.
    """
    columns = (*_NAMES, "n_runs", "block_size", *_WORK, *_GPU)
    for row in read_rows(path, tuple(dict.fromkeys(columns))):
        yield ForeignRow(
            **_names_of(row),
            runs=RunTimes(median_s=row["time_s"], run_count=row["n_runs"]),
            parameters={"size": int(row["run_size"]), "block_size": int(row["block_size"])},
            features={name: row[column] for column, name in {**_WORK, **_GPU}.items()},
            schema=GPU_SCHEMA,
        ).as_observation()


def read_cpu(path: Path) -> Iterator[Observation]:
    """Give one observation per kernel, size, compiler and optimisation level, of repeated runs.

    Absent: index spaces (these are loops), samples. Top-down shares are means over the runs.
    """
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = defaultdict(list)
    columns = (*_NAMES, *_CPU_NAMES, *_WORK, *_CPU)
    for row in read_rows(path, columns):
        groups[tuple(row[one] for one in ("kernel", "run_size", *_CPU_NAMES))].append(row)
    for rows in groups.values():
        first = rows[0]
        yield ForeignRow(
            **_names_of(first),
            driver=f"{first['compiler']} {first['opt_level']}",
            runs=summarise_runs([row["time_s"] for row in rows]),
            parameters={"size": int(first["run_size"]), "tuning": first["tuning"]},
            features={
                **{name: first[column] for column, name in _WORK.items()},
                **{name: _mean(rows, column) for column, name in _CPU.items()},
            },
            schema=CPU_SCHEMA,
        ).as_observation()


def _names_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"data_set": NAME, "licence": LICENCE, "application": row["group"],
            "kernel": row["kernel"], "device": row["device"]}  # fmt: skip


def _mean(rows: list[dict[str, Any]], column: str) -> float | None:
    known = [row[column] for row in rows if row[column] is not None]
    return fmean(known) if known else None


RAJAPERF_GPU = DataSet(
    name=f"{NAME}_gpu",
    title="60 RAJAPerf kernels on a V100, 4 sizes and 4 block sizes",
    licence=LICENCE,
    columns=frozenset({"iterations_per_rep", "n_runs", "n_workgroups"}),
    read=read_gpu,
)
RAJAPERF_CPU = DataSet(
    name=f"{NAME}_cpu",
    title="67 RAJAPerf kernels on one core of a Xeon E5-2695 v4, 2 compilers, 4 levels",
    licence=LICENCE,
    columns=frozenset({"iterations_per_rep", "opt_level", "ctr_topdown_retiring"}),
    read=read_cpu,
)
