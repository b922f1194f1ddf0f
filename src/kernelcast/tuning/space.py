"""The configurations that a problem file allows."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.problem_file import read_template
from kernelcast.records.arithmetic import Number
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.tuning.report import TunedConfiguration

MOST_CONFIGURATIONS = 100_000
_LOCAL_NAMES = ("local_x", "local_y", "local_z")
_OF_GROUPS = re.compile(r"\breqd_work_group_size\b|\bwork_group_(?:all|any|broadcast|reduce|scan)")
_LARGEST_GROUP = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """All configurations of a problem."""

    name: str
    kernel: str
    names: tuple[str, ...]
    """What is searched over."""
    configurations: tuple[TunedConfiguration, ...]
    """In the order of the lists, the last fastest."""


def read_space(path: Path | str, *, parameters: Mapping[str, Number] | None = None) -> SearchSpace:
    """Read the configurations of a problem file: of lists among `parameters`, else local sizes."""
    template = read_template(path, parameters=parameters)
    if template.swept:
        combined = template.list_parameters()
        return collect_space(template.path.stem, template.swept, combined, template.make)
    names = next(template.list_parameters(), None)
    if names is None:
        raise InputError(f"{template.path}: the restrictions leave no configuration; loosen them")
    return vary_local_size(template.make(names))


def vary_local_size(problem: Problem) -> SearchSpace:
    """List a problem with other local sizes: powers of two that divide the global size."""
    if _OF_GROUPS.search(problem.kernel.source) or model_kernel(problem).is_for_one_local_size:
        raise InputError(
            f"{problem.name}: the kernel requires its local size, shares local memory or has a "
            "place for each work-group, so that it is right for one local size; give lists of "
            "values among the `parameters`, from which macros, local memory and sizes follow"
        )
    sizes = list(_list_local_sizes(problem.ndrange))
    if not sizes:
        raise InputError(
            f"{problem.name}: no local size but the given one divides the global size "
            f"{problem.ndrange.global_size}; give lists of values among the `parameters`"
        )
    names = _LOCAL_NAMES[: problem.ndrange.dimensions]

    def make(values: Mapping[str, Number]) -> Problem:
        local_size = tuple(int(values[one]) for one in names)
        return replace(problem, ndrange=replace(problem.ndrange, local_size=local_size))

    combined = (dict(zip(names, local, strict=True)) for local in sizes)
    return collect_space(problem.name, names, combined, make)


def collect_space(
    name: str,
    names: Iterable[str],
    combined: Iterable[Mapping[str, Number]],
    make: Callable[[Mapping[str, Number]], Problem],
) -> SearchSpace:
    """Make the problem of each combination of parameters; the first reason counts if none has."""
    searched, found = tuple(names), list[TunedConfiguration]()
    first_error: InputError | None = None
    for number, values in enumerate(combined):
        if number >= MOST_CONFIGURATIONS:
            msg = f"{name}: more than {MOST_CONFIGURATIONS:,} configurations; restrict them"
            raise InputError(msg)
        problem, obstacle = None, ""
        try:
            problem = make(values)
        except InputError as error:
            first_error, obstacle = first_error or error, str(error)
        parameters = {one: values[one] for one in searched}
        found.append(
            TunedConfiguration(
                number=number, parameters=parameters, problem=problem, obstacle=obstacle
            )
        )
    if not found:
        raise InputError(f"{name}: the restrictions leave no configuration; loosen them")
    kernels = [one.problem.kernel.name for one in found if one.problem is not None]
    if first_error is not None and not kernels:
        raise first_error
    return SearchSpace(name=name, kernel=kernels[0], names=searched, configurations=tuple(found))


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
