"""What was simulated as problems: sources, sizes and arguments that models can read."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.records.arguments import Argument, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import find_kernels
from support.simulated_gpu.runs import SimulatedKernel


def make_problem(kernel: SimulatedKernel, cache_folder: Path) -> Problem:
    """Give the problem whose launch was simulated."""
    if kernel.parameters:
        [entry] = find_kernels(kernel.name)
        return prepare_launch(
            entry, kernel.parameters, local_size=kernel.local_size, cache_folder=cache_folder
        ).problem
    if not kernel.arguments:
        msg = f"{kernel.name} on {kernel.gpu.id}: its arguments are not known; ask for its runs"
        raise InputError(msg)
    source = (files("support.simulated_gpu") / "kernels.cl").read_text(encoding="utf-8")
    sizes = zip(kernel.group_counts, kernel.local_size, strict=True)
    return Problem(
        name=kernel.name,
        kernel=Kernel(name=kernel.function, source=source),
        ndrange=NDRange(
            global_size=tuple(count * local for count, local in sizes),
            local_size=kernel.local_size,
        ),
        arguments=tuple(_make_argument(one) for one in kernel.arguments),
    )


def _make_argument(held: Mapping[str, Any]) -> Argument:
    if "buffer" in held:
        return BufferArgument(element=ElementType.parse(held["buffer"]), count=held["count"])
    return ScalarArgument(element=ElementType.parse(held["scalar"]), values=(held["value"],))
