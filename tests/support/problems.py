"""Launches of kernels that are written in a test."""

import re
from pathlib import Path

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Argument, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def buffer_of(kind: str, count: int = 64) -> BufferArgument:
    """Describe a buffer of zeros."""
    return BufferArgument(element=ElementType.parse(kind), count=count)


def number_of(value: float, kind: str = "int32") -> ScalarArgument:
    """Describe a number."""
    return ScalarArgument(element=ElementType.parse(kind), values=(value,))


def write_problem(
    source: str,
    *arguments: Argument,
    items: tuple[int, ...] = (64,),
    local: tuple[int, ...] | None = (64,),
    name: str = "",
) -> Problem:
    """Make a launch of a kernel, the source's first unless it is named."""
    if not name:
        found = re.search(r"kernel void (\w+)", source)
        name = found[1] if found else "f"
    return Problem(
        name=name,
        kernel=Kernel(name=name, source=source),
        ndrange=NDRange(global_size=items, local_size=local),
        arguments=arguments,
    )


def read_example(name: str, **parameters: float) -> Problem:
    """Read the problem of an example."""
    return read_problem(EXAMPLES / name / f"{name}.yaml", parameters=parameters)
