"""Other people's measurements as observations of ours."""

from kernelcast.training_data.importers.data_sets import DATA_SETS, DataSet, ImportFileError
from kernelcast.training_data.importers.tables import find_data_set
from kernelcast.training_data.importers.tuning import TuningFiles, find_tuning_files, read_tuning

__all__ = [
    "DATA_SETS",
    "DataSet",
    "ImportFileError",
    "TuningFiles",
    "find_data_set",
    "find_tuning_files",
    "read_tuning",
]
