"""The configurations that a problem file allows, of ours or of other auto-tuners."""

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.problem_file import read_template
from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    Init,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.arithmetic import ArithmeticProblem, Number, evaluate_size, holds
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.importers.tuning import count_groups, load_json, read_problem_size
from kernelcast.tuning.report import TunedConfiguration

MOST_CONFIGURATIONS = 100_000
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
    given = next(template.list_parameters(), None)
    if given is None:
        raise InputError(f"{template.path}: the restrictions leave no configuration; loosen them")
    problem = template.make(given)
    if _OF_GROUPS.search(problem.kernel.source) or model_kernel(problem).is_for_one_local_size:
        raise InputError(
            f"{problem.name}: the kernel requires its local size, shares local memory or has a "
            "place for each work-group, so that it is right for one local size; give lists of "
            "values among the `parameters`, from which macros, local memory and sizes follow"
        )
    ndrange = problem.ndrange
    sizes = []
    # Powers of two that divide the global size.
    powers = [2**power for power in range(_LARGEST_GROUP.bit_length())]
    axes = [[one for one in powers if size % one == 0] for size in ndrange.global_size]
    for local in product(*axes):
        if 4 <= math.prod(local) <= _LARGEST_GROUP:
            with suppress(NDRangeError):
                sizes.append(replace(ndrange, local_size=local).known_local_size)
    if not sizes:
        raise InputError(
            f"{problem.name}: no local size but the given one divides the global size "
            f"{ndrange.global_size}; give lists of values among the `parameters`"
        )
    names = ("local_x", "local_y", "local_z")[: ndrange.dimensions]

    def make(values: Mapping[str, Number]) -> Problem:
        local_size = tuple(int(values[one]) for one in names)
        return replace(problem, ndrange=replace(ndrange, local_size=local_size))

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


_ACCESS = {
    "ReadOnly": Access.READ, "WriteOnly": Access.WRITE, "ReadWrite": Access.READ_WRITE
}  # fmt: skip


def read_t1(path: Path | str) -> SearchSpace:
    """Read a tuning problem in the auto-tuning community's T1 format.

    The schema is at https://github.com/odgaard/TuningSchema. BAT's and Kernel Tuner's files have
    `ProblemSize` and grid divisors beside or instead of its sizes; both forms are read.
    """
    path = Path(path)
    content = load_json(path)
    space, kernel = content.get("ConfigurationSpace"), content.get("KernelSpecification")
    if not (isinstance(space, dict) and isinstance(kernel, dict)):
        raise InputError(
            f"{path}: has no ConfigurationSpace and KernelSpecification; expected a tuning problem "
            "in the T1 format"
        )
    try:
        return _read_t1(path, space, kernel)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{path}: is no T1 file that can be used ({error!r}); see the schema of TuningSchema"
        raise InputError(msg) from error


def _read_t1(path: Path, space: Mapping[str, Any], kernel: Mapping[str, Any]) -> SearchSpace:
    language = kernel.get("Language", "OpenCL")
    if language != "OpenCL":
        raise InputError(f"Language is {language}; kernels in OpenCL C can be tuned")
    values = {str(one["Name"]): _read_values(one["Values"]) for one in space["TuningParameters"]}
    if math.prod(map(len, values.values())) > MOST_CONFIGURATIONS:
        raise InputError(f"more than {MOST_CONFIGURATIONS:,} configurations; restrict them")
    name, problem_size = str(kernel["KernelFile"]), read_problem_size(kernel)
    places = (path.parent / name, path.parent.parent / name, Path(name))
    file = next((one for one in places if one.is_file()), None)
    if file is None:
        raise InputError(f"there is no file {places[0]}")
    source = file.read_text(encoding="utf-8")

    def make(names: Mapping[str, Number]) -> Problem:
        counts, local_size = count_groups(kernel, names)
        whole = (count * size for count, size in zip(counts, local_size, strict=True))
        known = {**names, "ProblemSize": problem_size}
        options = [*kernel.get("CompilerOptions", ()),
                   *(f"-D{name}={value}" for name, value in names.items())]  # fmt: skip
        return Problem(
            name=path.stem,
            kernel=Kernel(
                name=str(kernel["KernelName"]), source=source, source_name=name,
                build_options=tuple(map(str, options)),
            ),
            ndrange=NDRange(global_size=tuple(whole), local_size=tuple(local_size)),
            arguments=tuple(_read_argument(one, known) for one in kernel["Arguments"]),
        )  # fmt: skip

    def meets(expression: str, names: Mapping[str, Number]) -> bool:
        try:
            return holds(expression.replace("&&", " and ").replace("||", " or "), names)
        except ArithmeticProblem as problem:
            msg = f"condition {expression!r} cannot be evaluated ({problem})"
            raise InputError(msg) from problem

    conditions = [str(one["Expression"]) for one in space.get("Conditions", ())]
    every = (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))
    met = (names for names in every if all(meets(one, names) for one in conditions))
    return collect_space(path.stem, values, met, make)


def _read_values(text: object) -> list[Number]:
    """Read ``[1, 2, 4]``, a list, or ``list(range(1, 5))``; nothing is executed."""
    msg = f"Values {text!r}: expected a list of numbers"
    body = str(text).strip().removeprefix("list(").strip()
    matched = re.fullmatch(r"range\(([^()]*)\)\)?", body)
    try:
        values: list[Any] = (
            text if isinstance(text, list)
            else [*range(*map(int, matched[1].split(",")))] if matched
            else list(ast.literal_eval(str(text)))
        )  # fmt: skip
    except (ValueError, SyntaxError, TypeError, MemoryError) as error:
        raise InputError(msg) from error
    if not values or not all(isinstance(one, int | float) for one in values):
        raise InputError(msg)
    return [int(one) if isinstance(one, bool) else one for one in values]


def _read_argument(one: Mapping[str, Any], known: Mapping[str, Any]) -> Argument:
    kind, element = one["MemoryType"], ElementType.parse(str(one["Type"]))
    fill, value = one.get("FillType", "Random"), one.get("FillValue", 0)
    if kind == "Local":
        return LocalArgument(bytes=evaluate_size(one["Size"], known) * element.bytes)
    if kind == "Scalar":
        return ScalarArgument(element=element, values=(value,) * element.lanes)
    where = f"argument {one.get('Name', '')}"
    if kind != "Vector":
        raise InputError(f"{where}: memory of type {kind} is not supported")
    if fill not in {"Constant", "Random"}:
        raise InputError(f"{where}: filled by {fill}; Constant and Random are supported")
    content: dict[str, Any] = {"init": Init.UNIFORM}
    if fill == "Constant" and value in (0, 1):
        content = {"init": Init.ONES if value else Init.ZEROS}
    elif fill == "Constant":
        # The end of a range that holds one value, or hardly more.
        step = max(abs(value), 1) * 1e-6 if element.dtype.kind == "f" else 1
        content |= {"low": value, "high": value + step}
    count, access = evaluate_size(one["Size"], known), _ACCESS.get(str(one.get("AccessType")))
    return BufferArgument(element=element, count=count, access=access, **content)
