"""Public data sets as observations: which column of each is what, and one reader of them all."""

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.launch_identity import digest_text
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, Origin
from kernelcast.records.observed_times import summarise_runs
from kernelcast.training_data.store.errors import refuse_database
from kernelcast.training_data.store.schema import make_observation

_BATCH_ROWS = 5000
_GRID = tuple(f"{kind}_{axis}" for kind in ("grid", "block") for axis in "xyz")
# What nvprof gives as a share, a mean or a percentage; everything else counts events.
_RATIOS = ("efficiency", "utilization", "hit_rate", "overhead", "ipc", "per_request", "per_warp",
           "occupancy", "activity", "per_active_cycle")  # fmt: skip
Row = dict[str, Any]
"""Values by a data set's columns."""


class ImportFileError(InputError):
    """Is raised when a file of other people's measurements cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A public set of measurements in Parquet files."""

    name: str
    """Short name."""
    title: str
    """What it is, in a sentence."""
    licence: str
    """Under which it may be used, with the names to give."""
    marks: frozenset[str]
    """Columns by which its file is recognised."""
    columns: Mapping[str, str]
    """Its columns, by those of the store that they are."""
    parameters: Mapping[str, str]
    """Its columns, by parameters of launches; a number that is null counts as absent."""
    features: Mapping[str, str]
    """Features by its columns; what is null or not finite counts as absent."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """To our unit, of columns that have another."""
    suite: str = ""
    """Of its kernels, where that is not its name."""
    has_grid: bool = False
    """Whether it has CUDA's grids and blocks."""
    counter_prefix: str = ""
    """What columns of nvprof's counters begin with."""
    others: tuple[str, ...] = ()
    """Columns that `prepare` needs beside these."""
    made: tuple[str, ...] = ()
    """Columns that `prepare` makes."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """As `features`, of columns that it makes."""
    prepare: Callable[[Iterator[Row], Path], Iterator[Row]] = lambda rows, _: rows
    """Makes columns, leaves rows out, puts repeated runs together."""

    def read(self, path: Path) -> Iterator[Observation]:
        """Read one observation per launch; repeated measurements of a launch are numbered."""
        counters = {
            column: name_counter(column.removeprefix(self.counter_prefix))
            for column in sorted(read_column_names(path) if self.counter_prefix else ())
            if column.startswith(self.counter_prefix)
        }
        features = {**self.features, **self.derived, **counters}
        grid = GRID_FEATURES if self.has_grid else ()
        schema = FeatureSchema(names=(*grid, *features.values()), version=1)
        wanted = (
            *self.columns.values(), *self.parameters.values(), *self.features, *counters,
            *self.others, *(_GRID if self.has_grid else ()),
        )  # fmt: skip
        columns = tuple(one for one in dict.fromkeys(wanted) if one not in self.made)
        rows = self.prepare(read_rows(path, columns), path)
        return number_repeats(self._make(row, features, schema) for row in rows)

    def _make(self, row: Row, features: Mapping[str, str], schema: FeatureSchema) -> Observation:
        values = {name: row[column] for name, column in self.columns.items()}
        parameters = {name: row[column] for name, column in self.parameters.items()}
        told = {
            name: None if row.get(column) is None else row[column] * self.factors.get(column, 1.0)
            for column, name in features.items()
        }
        if self.has_grid:
            values["ndrange"] = make_grid([row[one] for one in _GRID[:3]],
                                          [row[one] for one in _GRID[3:]])  # fmt: skip
            told |= describe_grid(values["ndrange"])
        return make_foreign(
            values | {
                "suite": self.suite or self.name,
                "source": f"{self.suite or self.name} ({self.licence})",
                "parameters": {
                    name: int(one) if isinstance(one, float) else one
                    for name, one in sorted(parameters.items())
                    if one is not None
                },
            },
            told,
            schema,
        )  # fmt: skip


def make_foreign(
    values: Mapping[str, Any], features: Mapping[str, float | None], schema: FeatureSchema,
    *, identity: Sequence[str] = (), device_id: str = "",
) -> Observation:  # fmt: skip
    """Make an observation of a foreign row: names are hashed, for there is no source text."""
    names = [values.get("suite", ""), values.get("application", ""), values["kernel"]]
    parameters = sorted(values["parameters"].items())
    finite = {
        name: float(one) for name, one in features.items() if one is not None and math.isfinite(one)
    }
    derived = {
        "kernel_digest": digest_text(*(identity or names)),
        "device_id": device_id or f"imported-{make_slug(values['device'])}",
        "arguments_digest": digest_text(*(f"{name}={one}" for name, one in parameters)),
        "ndrange": None,
        "origin": Origin.IMPORTED,
    }
    return make_observation(derived | dict(values), make_vector(finite, schema))


def number_repeats(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Tell repeated measurements of one launch apart, by their order in the source."""
    seen: Counter[str] = Counter()
    for one in observations:
        repeat = seen[one.launch.key]
        seen[one.launch.key] += 1
        yield replace(one, measurement=f"repeat {repeat}") if repeat else one


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Read a Parquet file's rows, None where a value is null; all columns unless some are named."""
    import pyarrow as pa  # an extra
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        with pq.ParquetFile(path) as file:
            missing = sorted({*(columns or ())} - {*file.schema_arrow.names})
            if missing:
                msg = f"{path}: has no column {', '.join(missing)}; is it the right data set?"
                raise ImportFileError(msg)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        msg = f"{path}: cannot be read as Parquet ({said}); is it complete?"
        raise ImportFileError(msg) from error


def read_column_names(path: Path) -> frozenset[str]:
    """Read the names of a Parquet file's columns; none if it is no such file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_database(path, ImportFileError)
    try:
        return frozenset(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return frozenset()


def make_grid(groups: Sequence[int], local: Sequence[int]) -> NDRange:
    """Make an index space of a CUDA grid and block; trailing dimensions of one are left out."""
    dimensions = max([1, *(i + 1 for i in range(len(groups)) if max(groups[i], local[i]) > 1)])
    sizes = [int(g) * int(n) for g, n in zip(groups, local, strict=True)]
    return NDRange(
        global_size=tuple(sizes[:dimensions]), local_size=tuple(map(int, local[:dimensions]))
    )


def describe_grid(ndrange: NDRange) -> dict[str, float]:
    """Compute the features that every index space has."""
    sizes = (
        ndrange.work_item_count, ndrange.work_group_count, ndrange.work_group_size,
        ndrange.dimensions,
    )  # fmt: skip
    return dict(zip(GRID_FEATURES, sizes, strict=True))


GRID_FEATURES = (
    "static.work_items_count", "static.work_groups_count", "static.work_items_per_work_group",
    "static.dimensions_count",
)  # fmt: skip
"""Names that `describe_grid` gives."""


def make_slug(text: str) -> str:
    """Make a name of small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def name_counter(counter: str) -> str:
    """Name a counter of nvprof as a feature."""
    unit = "ratio" if any(word in counter for word in _RATIOS) else "count"
    return f"counters.nvprof_{counter}_{unit}"


# Absent: work-group sizes and dimensions of the index space, single runs and their 10-90 % spread,
# drivers, samples.
_AIWC = DataSet(
    name="aiwc_opendwarfs",
    title="37 OpenCL kernels of 11 OpenDwarfs applications on 15 devices",
    licence="MIT, (c) 2018 Beau Johnston",
    marks=frozenset({"aiwc_opcode", "aiwc_workitems", "n_runs"}),
    columns={"application": "app", "kernel": "kernel", "device": "device", "seconds": "time_s",
             "run_count": "n_runs"},
    parameters={"input_size": "input_size"},
    features={
        "aiwc_workitems": "static.work_items_count",
        "aiwc_opcode": "counters.aiwc_opcodes_count",
        "aiwc_granularity": "counters.aiwc_granularity_ratio",
        "aiwc_barriers_per_instruction": "counters.aiwc_barriers_ratio",
        "aiwc_instructions_per_operand": "counters.aiwc_simd_operands_ratio",
        "aiwc_total_instruction_count": "counters.aiwc_instructions_count",
        "aiwc_operand_sum": "counters.aiwc_operands_count",
        "aiwc_total_barriers_hit": "counters.aiwc_barriers_count",
        **{
            f"aiwc_{kind}_instructions_to_barrier":
            f"counters.aiwc_{kind}_instructions_to_barrier_count"
            for kind in ("min", "max", "median")
        },
        "aiwc_max_simd_width": "counters.aiwc_max_simd_width_count",
        "aiwc_mean_simd_width": "counters.aiwc_mean_simd_width_count",
        "aiwc_stddev_simd_width": "counters.aiwc_simd_width_deviation_count",
        "aiwc_total_memory_footprint": "counters.aiwc_addresses_count",
        "aiwc_ninety_percent_memory_footprint": "counters.aiwc_ninety_percent_addresses_count",
        "aiwc_global_memory_address_entropy": "counters.aiwc_address_entropy_ratio",
        **{
            f"aiwc_local_memory_address_entropy_{bits}":
            f"counters.aiwc_address_entropy_{bits}_ratio"
            for bits in range(1, 11)
        },
        "aiwc_total_unique_branch_instructions": "counters.aiwc_branch_sites_count",
        "aiwc_ninety_percent_branch_instructions":
        "counters.aiwc_ninety_percent_branch_sites_count",
        "aiwc_branch_entropy_yokota": "counters.aiwc_branch_entropy_yokota_ratio",
        "aiwc_branch_entropy_average_linear": "counters.aiwc_branch_entropy_linear_ratio",
    },
)  # fmt: skip


def _add_local_bytes(rows: Iterator[Row], _: Path) -> Iterator[Row]:
    for row in rows:
        yield row | {"smem": row["static_smem"] + row["dynamic_smem"]}


# Absent: repeated runs and noise, drivers, samples; counters that overflowed.
_AMARIS = DataSet(
    name="amaris_nca",
    title="9 CUDA kernels on 9 NVIDIA GPUs with nvprof's metrics and events",
    licence="CC BY 4.0, Marcos Amaris, gpuperfpredict",
    marks=frozenset({"dev_cc", "static_smem", "ana_flops"}),
    columns={"application": "app", "kernel": "kernel", "device": "device", "seconds": "time_s"},
    parameters={"input_size": "input_size"},
    has_grid=True,
    features={
        "regs_per_thread": "compiler.registers_per_work_item",
        "ana_read_bytes": "analytic.compulsory_load_bytes",
        "ana_write_bytes": "analytic.compulsory_store_bytes",
        "ana_flops": "analytic.flops_count",
        "dev_sms": "analytic.machine_compute_units_count",
        "dev_cores": "analytic.machine_lanes_count",
        "dev_clock_mhz": "analytic.machine_clock_cycles_per_s",
        "dev_mem_clock_mhz": "analytic.machine_memory_clock_cycles_per_s",
        "dev_bandwidth_gbs": "analytic.machine_bandwidth_bytes_per_s",
        "dev_l2_mb": "analytic.machine_l2_bytes",
    },
    factors={"dev_clock_mhz": 1e6, "dev_mem_clock_mhz": 1e6, "dev_bandwidth_gbs": 1e9,
             "dev_l2_mb": 2.0**20},
    derived={"smem": "compiler.local_bytes_per_work_group"},
    others=("static_smem", "dynamic_smem"),
    counter_prefix="ctr_",
    prepare=_add_local_bytes,
)  # fmt: skip
_DEVICES_FILE = "devices.csv"
_MACHINE = {
    "Mem_Bw": ("analytic.machine_bandwidth_bytes_per_s", 1e9),
    "Num_Sm": ("analytic.machine_compute_units_count", 1.0),
    "Freq": ("analytic.machine_clock_cycles_per_s", 1e6),
    "SingleFLOPs": ("analytic.machine_flops_per_s", 1e9),
    "L2Cache": ("analytic.machine_l2_bytes", 2.0**20),
}
"""Our name and the factor to our unit, by column of the table of devices beside the file."""


def _add_machines(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    """Add figures of devices, and leave sums over several kernels out."""
    machines: dict[str, Row] = {}
    table = path.with_name(_DEVICES_FILE)
    try:
        if table.is_file():
            with table.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    machines[row["Device"]] = {
                        name: float(row[name]) for name in _MACHINE if row[name]
                    }
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        msg = f"{table}: is no table of devices ({error!r}); put the original back, or remove it"
        raise ImportFileError(msg) from error
    return (row | machines.get(row["device"], {}) for row in rows if row["n_kernels"] == 1)


# The operator is the application: its kernels are near copies of each other. Absent: repeated runs
# and noise, drivers, samples.
_NEUSIGHT = DataSet(
    name="neusight",
    title="PyTorch operators on GPUs from P4 to H100, with kernel names and grids",
    licence="MIT, (c) 2025 Georgia Institute of Technology and Microsoft",
    marks=frozenset({"op", "n_kernels", "dim_b"}),
    columns={"application": "op", "kernel": "kernel", "device": "device", "seconds": "time_s"},
    parameters={"operator": "op", **{
        one: f"dim_{one}"
        for one in ("b", "m", "n", "k", "h", "input_channel", "output_channel", "kernel_size",
                    "input_size", "stride", "padding")
    }},
    has_grid=True,
    features={
        "ana_read_bytes": "analytic.compulsory_load_bytes",
        "ana_write_bytes": "analytic.compulsory_store_bytes",
        "ana_flops": "analytic.flops_count",
    },
    derived={column: name for column, (name, _) in _MACHINE.items()},
    factors={column: factor for column, (_, factor) in _MACHINE.items()},
    others=("n_kernels",),
    prepare=_add_machines,
)  # fmt: skip
_TOP_DOWN = tuple(
    f"ctr_topdown_{one}"
    for one in (
        "retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict",
        "machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound",
        "ext_mem_bound", "l1_bound", "l2_bound", "l3_bound",
    )
)  # fmt: skip
_REPEATED = ("kernel", "run_size", "compiler", "opt_level", "tuning")


def _join_repeats(rows: Iterator[Row], _: Path) -> Iterator[Row]:
    """Put the runs of a launch together; top-down shares are means over them."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[one] for one in _REPEATED)].append(row)
    for some in groups.values():
        times = summarise_runs([row["time_s"] for row in some])
        shares = {one: [row[one] for row in some if row[one] is not None] for one in _TOP_DOWN}
        yield some[0] | {
            "driver": f"{some[0]['compiler']} {some[0]['opt_level']}",
            "time_s": times.median_s, "durations_s": times.durations_s, "noise": times.noise,
            "run_count": times.run_count,
            **{one: fmean(known) if known else None for one, known in shares.items()},
        }  # fmt: skip


_RAJAPERF = DataSet(
    name="rajaperf_gpu",
    title="60 RAJAPerf kernels on a V100, 4 sizes and 4 block sizes",
    licence="MIT, (c) LLNL",
    suite="rajaperf",
    marks=frozenset({"iterations_per_rep", "n_runs", "n_workgroups"}),
    columns={"application": "group", "kernel": "kernel", "device": "device", "seconds": "time_s",
             "run_count": "n_runs"},
    parameters={"size": "run_size", "block_size": "block_size"},
    features={
        "iterations_per_rep": "static.work_items_count",
        "kernels_per_rep": "static.launches_count",
        "bytes_per_rep": "analytic.compulsory_bytes",
        "flops_per_rep": "analytic.flops_count",
        # Derived in the data set from iterations and block size: true of most kernels, not of tiled
        # ones and of reductions, so they are features and no index space.
        "n_workgroups": "static.work_groups_count",
        "block_size": "static.work_items_per_work_group",
    },
)  # fmt: skip
DATA_SETS: tuple[DataSet, ...] = (
    _AIWC, _AMARIS, _NEUSIGHT, _RAJAPERF,
    replace(
        _RAJAPERF,
        name="rajaperf_cpu",
        title="67 RAJAPerf kernels on one core of a Xeon E5-2695 v4, 2 compilers, 4 levels",
        marks=frozenset({"iterations_per_rep", "opt_level", "ctr_topdown_retiring"}),
        columns={
            **_RAJAPERF.columns, "driver": "driver", "durations_s": "durations_s", "noise": "noise",
            "run_count": "run_count",
        },
        parameters={"size": "run_size", "tuning": "tuning"},
        features={
            **dict([*_RAJAPERF.features.items()][:4]),
            **{one: f"counters.{one.removeprefix('ctr_')}_ratio" for one in _TOP_DOWN},
        },
        others=_REPEATED,
        made=("driver", "durations_s", "noise", "run_count"),
        prepare=_join_repeats,
    ),
)  # fmt: skip
"""Data sets with an importer."""
