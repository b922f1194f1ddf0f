"""Reads the problem files of a command line; one that is bad does not keep the others back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem


def read_problems(
    paths: Sequence[Path], parameters: Mapping[str, int | float]
) -> tuple[list[Problem], list[KernelcastError]]:
    """Read problem files."""
    problems: list[Problem] = []
    refusals: list[KernelcastError] = []
    for path in paths:
        try:
            problems.append(read_problem(path, parameters=parameters))
        except KernelcastError as error:
            if len(paths) == 1:
                raise
            refusals.append(error)
    return problems, refusals
