"""Problem files (YAML): the unit that the commands take; every error names file and line."""

from kernelcast.launches.problem_file.reader import read_parameters, read_problem, read_template

__all__ = ["read_parameters", "read_problem", "read_template"]
