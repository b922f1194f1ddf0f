"""Observations in Parquet files, which people exchange."""

from kernelcast.training_data.parquet.format import ObservationFileError
from kernelcast.training_data.parquet.reader import (
    import_parquet,
    read_parquet,
    is_observation_file,
)
from kernelcast.training_data.parquet.writer import export_parquet

__all__ = [
    "ObservationFileError",
    "export_parquet",
    "import_parquet",
    "read_parquet",
    "is_observation_file",
]
