"""Observations in Parquet files, which people exchange."""

from kernelcast.training_data.parquet.format import ObservationFileError
from kernelcast.training_data.parquet.reader import (
    import_parquet,
    is_observation_file,
    read_parquet,
)
from kernelcast.training_data.parquet.writer import export_parquet

__all__ = [
    "ObservationFileError",
    "export_parquet",
    "import_parquet",
    "is_observation_file",
    "read_parquet",
]
