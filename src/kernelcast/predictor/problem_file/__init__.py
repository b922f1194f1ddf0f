"""Problem files (YAML): the unit that the commands take; every error names file and line."""

from kernelcast.predictor.problem_file.reader import read_parameters, read_problem

__all__ = ["read_parameters", "read_problem"]
