"""Makes problems of the corpus's kernels: parameters, local size, generated inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelcast.collection.corpus.inputs import InputCache
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import CorpusKernel, load_input_maker

LOCAL_PARAMETERS = tuple(f"LOCAL{axis}" for axis in range(MAX_DIMENSIONS))
"""Parameters of a problem file that stand for its local size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedProblem:
    """A launch of a corpus kernel."""

    problem: Problem
    parameters: Mapping[str, int]
    """All parameters of the problem file, those that follow from others and from the inputs
    included."""
    replaced: Mapping[str, int]
    """Those of them that are not as the problem file has them: given, of the local size, of the
    inputs."""
    inputs_folder: Path | None
    """Where the generated inputs lie, if there are any."""


def prepare_launch(
    kernel: CorpusKernel,
    parameters: Mapping[str, int],
    *,
    local_size: tuple[int, ...],
    cache_folder: Path,
) -> PreparedProblem:
    """Make the problem of a corpus kernel with any of its parameters replaced.

    Parameters
    ----------
    local_size : tuple of int
        One of `kernel.local_sizes`, or another that the kernel can take.
    cache_folder : Path
        Where generated inputs are kept: made once for each application and set of parameters,
        by whichever process comes first.

    Raises
    ------
    InputError
        If parameters or local size do not fit the problem file.
    """
    known = read_parameters(kernel.problem_path)
    extents = dict(zip(LOCAL_PARAMETERS, local_size, strict=False))
    chosen = dict(parameters) | {name: one for name, one in extents.items() if name in known}
    complete = _read_whole_numbers(kernel, chosen)
    folder, made = _make_inputs(kernel, complete, cache_folder)
    chosen |= made
    problem = read_problem(kernel.problem_path, parameters=chosen, inputs_folder=folder)
    if problem.ndrange.local_size != tuple(local_size):
        msg = (
            f"{kernel.name}: local size {local_size} was asked for, the problem file makes it "
            f'{problem.ndrange.local_size}; it must say `local_size: ["{{LOCAL0}}", ...]`'
        )
        raise InputError(msg)
    complete = _read_whole_numbers(kernel, chosen)
    return PreparedProblem(
        problem=problem, parameters=complete, replaced=chosen, inputs_folder=folder
    )


def _read_whole_numbers(kernel: CorpusKernel, chosen: Mapping[str, int]) -> dict[str, int]:
    parameters = read_parameters(kernel.problem_path, parameters=chosen)
    for name, value in parameters.items():
        if not float(value).is_integer():
            msg = f"{kernel.name}: parameter {name} is {value}; the corpus takes whole numbers"
            raise InputError(msg)
    return {name: int(value) for name, value in parameters.items()}


def _make_inputs(
    kernel: CorpusKernel, parameters: Mapping[str, int], cache_folder: Path
) -> tuple[Path | None, dict[str, int]]:
    """Give the folder of the generated inputs, if there are any, and what follows from them."""
    make = load_input_maker(kernel)
    if make is None:
        return None, {}
    given = {name: value for name, value in parameters.items() if name not in LOCAL_PARAMETERS}
    code = (kernel.problem_path.parent / "inputs.py").read_bytes()
    return InputCache(folder=cache_folder).get(kernel.application, given, code, make)
