"""The configurations that a problem file allows."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.problem_file import ProblemTemplate, read_template
from kernelcast.records.arithmetic import Number
from kernelcast.records.errors import InputError, NDRangeError, ProblemFileError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

MOST_CONFIGURATIONS = 100_000
_LOCAL_NAMES = ("local_x", "local_y", "local_z")
_OF_GROUPS = re.compile(r"\breqd_work_group_size\b|\bwork_group_(?:all|any|broadcast|reduce|scan)")
_LARGEST_GROUP = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to launch."""

    number: int
    """Place in the space, from 0."""
    parameters: Mapping[str, Number]
    """Values of what is searched over."""
    problem: Problem | None
    """The launch; None where the values allow none."""
    obstacle: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """All configurations of a problem."""

    name: str
    kernel: str
    names: tuple[str, ...]
    """What is searched over."""
    configurations: tuple[Configuration, ...]
    """In the order of the lists, the last fastest."""


def read_space(path: Path | str, *, parameters: Mapping[str, Number] | None = None) -> SearchSpace:
    """Read the configurations of a problem file: of lists among `parameters`, else local sizes."""
    template = read_template(path, parameters=parameters)
    if template.swept:
        return _read_swept(template)
    names = next(template.list_parameters(), None)
    if names is None:
        raise InputError(_explain_empty(template))
    return vary_local_size(template.make(names))


def vary_local_size(problem: Problem) -> SearchSpace:
    """Give the same problem with other local sizes: powers of two that divide the global size."""
    if _OF_GROUPS.search(problem.kernel.source) or model_kernel(problem).is_for_one_local_size:
        msg = (
            f"{problem.name}: the kernel requires its local size, shares local memory or has a "
            "place for each work-group, so that it is right for one local size; give lists of "
            "values among the `parameters`, from which macros, local memory and sizes follow"
        )
        raise InputError(msg)
    sizes = list(_list_local_sizes(problem.ndrange))
    if not sizes:
        msg = (
            f"{problem.name}: no local size but the given one divides the global size "
            f"{problem.ndrange.global_size}; give lists of values among the `parameters`"
        )
        raise InputError(msg)
    names = _LOCAL_NAMES[: problem.ndrange.dimensions]
    return SearchSpace(
        name=problem.name,
        kernel=problem.kernel.name,
        names=names,
        configurations=tuple(
            Configuration(
                number=number,
                parameters=dict(zip(names, local, strict=True)),
                problem=replace(problem, ndrange=replace(problem.ndrange, local_size=local)),
            )
            for number, local in enumerate(sizes)
        ),
    )


def _read_swept(template: ProblemTemplate) -> SearchSpace:
    found: list[Configuration] = []
    kernel, first_error = "", None
    for number, values in enumerate(template.list_parameters()):
        if number >= MOST_CONFIGURATIONS:
            msg = f"{template.path}: more than {MOST_CONFIGURATIONS:,} configurations; restrict it"
            raise InputError(msg)
        searched = {name: values[name] for name in template.swept}
        try:
            problem = template.make(values)
        except ProblemFileError as error:
            first_error = first_error or error
            found.append(
                Configuration(number=number, parameters=searched, problem=None, obstacle=str(error))
            )
            continue
        kernel = problem.kernel.name
        found.append(Configuration(number=number, parameters=searched, problem=problem))
    if not found:
        raise InputError(_explain_empty(template))
    if first_error is not None and all(one.problem is None for one in found):
        raise first_error
    return SearchSpace(
        name=template.path.stem,
        kernel=kernel,
        names=template.swept,
        configurations=tuple(found),
    )


def _list_local_sizes(ndrange: NDRange) -> Iterator[tuple[int, ...]]:
    axes = [
        [2**power for power in range(int(math.log2(min(size, _LARGEST_GROUP))) + 1)
         if size % 2**power == 0]
        for size in ndrange.global_size
    ]  # fmt: skip
    for local in product(*axes):
        if not 4 <= math.prod(local) <= _LARGEST_GROUP:
            continue
        try:
            replace(ndrange, local_size=local)
        except NDRangeError:
            continue
        yield local


def _explain_empty(template: ProblemTemplate) -> str:
    return f"{template.path}: the restrictions leave no configuration; loosen them"
