"""Finds the applications of the benchmark corpus, their kernels and their reference checks."""

from kernelcast.training_data.applications.loading import (
    InputMaker,
    choose_kernels,
    find_applications,
    find_kernels,
    load_input_maker,
    load_reference,
)
from kernelcast.training_data.applications.records import (
    Application,
    CorpusKernel,
    SizeRange,
    Suite,
)

__all__ = [
    "Application",
    "CorpusKernel",
    "InputMaker",
    "SizeRange",
    "Suite",
    "choose_kernels",
    "find_applications",
    "find_kernels",
    "load_input_maker",
    "load_reference",
]
