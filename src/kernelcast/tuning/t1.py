"""Tuning problems in the auto-tuning community's T1 format.

The schema is at https://github.com/odgaard/TuningSchema. BAT's and Kernel Tuner's files have
`ProblemSize` and grid divisors beside or instead of its sizes; both forms are read.
"""

import ast
import math
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

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
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.importers.tuning import count_groups, load_json, read_problem_size
from kernelcast.tuning.space import MOST_CONFIGURATIONS, SearchSpace, collect_space

_LANGUAGE = "OpenCL"
_ACCESS = {
    "ReadOnly": Access.READ, "WriteOnly": Access.WRITE, "ReadWrite": Access.READ_WRITE
}  # fmt: skip


def read_t1(path: Path | str) -> SearchSpace:
    path = Path(path)
    content = load_json(path)
    space, kernel = content.get("ConfigurationSpace"), content.get("KernelSpecification")
    if not (isinstance(space, dict) and isinstance(kernel, dict)):
        raise InputError(
            f"{path}: has no ConfigurationSpace and KernelSpecification; expected a tuning problem "
            "in the T1 format"
        )
    try:
        return _read_space(path, space, kernel)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{path}: is no T1 file that can be used ({error!r}); see the schema of TuningSchema"
        raise InputError(msg) from error


def _read_space(path: Path, space: Mapping[str, Any], kernel: Mapping[str, Any]) -> SearchSpace:
    language = kernel.get("Language", _LANGUAGE)
    if language != _LANGUAGE:
        raise InputError(f"Language is {language}; kernels in {_LANGUAGE} C can be tuned")
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

    conditions = [str(one["Expression"]) for one in space.get("Conditions", ())]
    every = (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))
    met = (names for names in every if all(_meets(one, names) for one in conditions))
    return collect_space(path.stem, values, met, make)


def _read_values(text: object) -> list[Number]:
    """Read ``[1, 2, 4]``, a list, or ``list(range(1, 5))``; nothing is executed."""
    if isinstance(text, list):
        values = text
    else:
        body = str(text).strip().removeprefix("list(").strip()
        matched = re.fullmatch(r"range\(([^()]*)\)\)?", body)
        try:
            if matched:
                values = list(range(*(int(one) for one in matched[1].split(","))))
            else:
                values = list(ast.literal_eval(str(text)))
        except (ValueError, SyntaxError, TypeError, MemoryError) as error:
            raise InputError(f"Values {text!r}: expected a list of numbers") from error
    if not values or not all(isinstance(one, int | float) for one in values):
        raise InputError(f"Values {text!r}: expected a list of numbers")
    return [int(one) if isinstance(one, bool) else one for one in values]


def _meets(expression: str, names: Mapping[str, Number]) -> bool:
    try:
        return holds(expression.replace("&&", " and ").replace("||", " or "), names)
    except ArithmeticProblem as problem:
        raise InputError(f"condition {expression!r} cannot be evaluated ({problem})") from problem


def _read_argument(one: Mapping[str, Any], known: Mapping[str, Any]) -> Argument:
    kind = one["MemoryType"]
    if kind == "Local":
        return LocalArgument(bytes=evaluate_size(one["Size"], known) * _element(one).bytes)
    element = _element(one)
    if kind == "Scalar":
        value = one.get("FillValue", 0)
        return ScalarArgument(element=element, values=(value,) * element.lanes)
    if kind != "Vector":
        raise InputError(f"argument {one.get('Name', '')}: memory of type {kind} is not supported")
    return BufferArgument(
        element=element,
        count=evaluate_size(one["Size"], known),
        access=_ACCESS.get(str(one.get("AccessType"))),
        **_read_fill(one, element),
    )


def _element(one: Mapping[str, Any]) -> ElementType:
    return ElementType.parse(str(one["Type"]))


def _read_fill(one: Mapping[str, Any], element: ElementType) -> dict[str, Any]:
    fill, value = one.get("FillType", "Random"), one.get("FillValue", 0)
    if fill == "Constant":
        if value in (0, 1):
            return {"init": Init.ONES if value else Init.ZEROS}
        # The end of a range that holds one value, or hardly more.
        step = max(abs(value), 1) * 1e-6 if element.dtype.kind == "f" else 1
        return {"init": Init.UNIFORM, "low": value, "high": value + step}
    if fill != "Random":
        msg = f"argument {one.get('Name', '')}: filled by {fill}; Constant and Random are supported"
        raise InputError(msg)
    return {"init": Init.UNIFORM}
