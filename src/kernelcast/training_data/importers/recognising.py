"""Tells by its columns which data set a file is, or whether it is a table of one's own."""

from pathlib import Path

from kernelcast.training_data.importers.aiwc import AIWC
from kernelcast.training_data.importers.amaris import AMARIS
from kernelcast.training_data.importers.foreign import DataSet, ImportFileError, read_column_names
from kernelcast.training_data.importers.neusight import NEUSIGHT
from kernelcast.training_data.importers.rajaperf import RAJAPERF_CPU, RAJAPERF_GPU
from kernelcast.training_data.importers.tables import CSV_ENDING, REQUIRED, read_table

DATA_SETS: tuple[DataSet, ...] = (AIWC, AMARIS, NEUSIGHT, RAJAPERF_GPU, RAJAPERF_CPU)
"""Data sets with an importer."""
TABLE = DataSet(
    name="table", title="measurements of one's own", licence="", columns=frozenset(REQUIRED),
    read=read_table,
)  # fmt: skip


def find_data_set(path: Path) -> DataSet:
    """Find the importer of a file."""
    columns = frozenset() if path.suffix == CSV_ENDING else read_column_names(path)
    for one in DATA_SETS:
        if one.columns <= columns:
            return one
    if path.suffix == CSV_ENDING or {*REQUIRED} <= columns:
        return TABLE
    known = ", ".join(one.name for one in DATA_SETS)
    found = "a Parquet file of another kind" if columns else "no Parquet file"
    msg = (
        f"{path}: is {found}; expected a file of `kernelcast data export`, a data set with an "
        f"importer ({known}), a table with the columns {', '.join(REQUIRED)}, or JSON of an "
        "auto-tuner in the T4 format"
    )
    raise ImportFileError(msg)
