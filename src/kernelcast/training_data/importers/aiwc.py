"""Extended OpenDwarfs on fifteen devices, with the features of Oclgrind's AIWC plugin."""

from collections.abc import Iterator
from pathlib import Path

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import Observation
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.importers.foreign import DataSet, ForeignRow, read_rows

NAME = "aiwc_opendwarfs"
LICENCE = "MIT, (c) 2018 Beau Johnston"
_FEATURES = {
    "aiwc_workitems": "static.work_items_count",
    "aiwc_opcode": "counters.aiwc_opcodes_count",
    "aiwc_granularity": "counters.aiwc_granularity_ratio",
    "aiwc_barriers_per_instruction": "counters.aiwc_barriers_ratio",
    "aiwc_instructions_per_operand": "counters.aiwc_simd_operands_ratio",
    "aiwc_total_instruction_count": "counters.aiwc_instructions_count",
    "aiwc_operand_sum": "counters.aiwc_operands_count",
    "aiwc_total_barriers_hit": "counters.aiwc_barriers_count",
    "aiwc_min_instructions_to_barrier": "counters.aiwc_min_instructions_to_barrier_count",
    "aiwc_max_instructions_to_barrier": "counters.aiwc_max_instructions_to_barrier_count",
    "aiwc_median_instructions_to_barrier": "counters.aiwc_median_instructions_to_barrier_count",
    "aiwc_max_simd_width": "counters.aiwc_max_simd_width_count",
    "aiwc_mean_simd_width": "counters.aiwc_mean_simd_width_count",
    "aiwc_stddev_simd_width": "counters.aiwc_simd_width_deviation_count",
    "aiwc_total_memory_footprint": "counters.aiwc_addresses_count",
    "aiwc_ninety_percent_memory_footprint": "counters.aiwc_ninety_percent_addresses_count",
    "aiwc_global_memory_address_entropy": "counters.aiwc_address_entropy_ratio",
    **{
        f"aiwc_local_memory_address_entropy_{bits}": f"counters.aiwc_address_entropy_{bits}_ratio"
        for bits in range(1, 11)
    },
    "aiwc_total_unique_branch_instructions": "counters.aiwc_branch_sites_count",
    "aiwc_ninety_percent_branch_instructions": "counters.aiwc_ninety_percent_branch_sites_count",
    "aiwc_branch_entropy_yokota": "counters.aiwc_branch_entropy_yokota_ratio",
    "aiwc_branch_entropy_average_linear": "counters.aiwc_branch_entropy_linear_ratio",
}
SCHEMA = FeatureSchema(names=tuple(_FEATURES.values()), version=1)
_COLUMNS = ("app", "input_size", "kernel", "device", "time_s", "n_runs", *_FEATURES)


def read(path: Path) -> Iterator[Observation]:
    """Give one observation per kernel, input size and device.

    Absent: work-group sizes and dimensions of the index space, single runs and their 10-90 %
    spread, drivers, samples.
    """
    for row in read_rows(path, _COLUMNS):
        yield ForeignRow(
            data_set=NAME,
            licence=LICENCE,
            application=row["app"],
            kernel=row["kernel"],
            device=row["device"],
            runs=RunTimes(median_s=row["time_s"], run_count=row["n_runs"]),
            parameters={"input_size": row["input_size"]},
            features={name: row[column] for column, name in _FEATURES.items()},
            schema=SCHEMA,
        ).as_observation()


AIWC = DataSet(
    name=NAME,
    title="37 OpenCL kernels of 11 OpenDwarfs applications on 15 devices",
    licence=LICENCE,
    columns=frozenset({"aiwc_opcode", "aiwc_workitems", "n_runs"}),
    read=read,
)
