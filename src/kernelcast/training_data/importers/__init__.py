"""Other people's measurements as observations of ours."""

from kernelcast.training_data.importers.tables import ImportFileError, find_data_set
from kernelcast.training_data.importers.tuning import TuningFiles, find_tuning_files, read_tuning

__all__ = [
    "ImportFileError",
    "TuningFiles",
    "find_data_set",
    "find_tuning_files",
    "read_tuning",
]
