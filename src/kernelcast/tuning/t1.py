"""Tuning problems in the auto-tuning community's T1 format.

The schema is at https://github.com/odgaard/TuningSchema. BAT's and Kernel Tuner's files have
`ProblemSize` and grid divisors beside or instead of its sizes; both forms are read.
"""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
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
from kernelcast.tuning.space import MOST_CONFIGURATIONS, SearchSpace, collect_space

_LANGUAGE = "OpenCL"
_ACCESS = {
    "ReadOnly": Access.READ, "WriteOnly": Access.WRITE, "ReadWrite": Access.READ_WRITE
}  # fmt: skip
_AXES = "XYZ"


def read_t1(path: Path | str) -> SearchSpace:
    path = Path(path)
    content = _load(path)
    try:
        return _T1(path, content).read()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{path}: is no T1 file that can be used ({error!r}); see the schema of TuningSchema"
        raise InputError(msg) from error


class _T1:
    """One file."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self._path = path
        self._space: Mapping[str, Any] = content["ConfigurationSpace"]
        self._kernel: Mapping[str, Any] = content["KernelSpecification"]
        self._source: str | None = None

    def read(self) -> SearchSpace:
        language = self._kernel.get("Language", _LANGUAGE)
        if language != _LANGUAGE:
            raise InputError(f"Language is {language}; kernels in {_LANGUAGE} C can be tuned")
        values = {
            str(one["Name"]): _read_values(one["Values"]) for one in self._space["TuningParameters"]
        }
        if math.prod(map(len, values.values())) > MOST_CONFIGURATIONS:
            raise InputError(f"more than {MOST_CONFIGURATIONS:,} configurations; restrict them")
        conditions = [str(one["Expression"]) for one in self._space.get("Conditions", ())]
        every = (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))
        met = (names for names in every if all(_meets(one, names) for one in conditions))
        return collect_space(self._path.stem, values, met, self._make_problem)

    def _make_problem(self, names: Mapping[str, Number]) -> Problem:
        known: dict[str, Any] = {**names, "ProblemSize": self._problem_size()}
        global_size, local_size = self._read_sizes(known)
        options = [*self._kernel.get("CompilerOptions", ()),
                   *(f"-D{name}={value}" for name, value in names.items())]  # fmt: skip
        return Problem(
            name=self._path.stem,
            kernel=Kernel(
                name=str(self._kernel["KernelName"]),
                source=self._read_source(),
                source_name=str(self._kernel["KernelFile"]),
                build_options=tuple(str(one) for one in options),
            ),
            ndrange=NDRange(global_size=global_size, local_size=local_size),
            arguments=tuple(_read_argument(one, known) for one in self._kernel["Arguments"]),
        )

    def _problem_size(self) -> Sequence[int]:
        given = self._kernel.get("ProblemSize", ())
        return [given] if isinstance(given, int) else [int(one) for one in given]

    def _read_sizes(self, known: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        local = self._kernel.get("LocalSize")
        if local is None:
            names = ("block_size_x", "block_size_y", "block_size_z")
            local = {
                axis: known[name] for axis, name in zip(_AXES, names, strict=True) if name in known
            }
        whole = self._kernel.get("GlobalSize")
        counts_groups = str(self._kernel.get("GlobalSizeType", _LANGUAGE)) != _LANGUAGE
        if whole is None:
            # Give work-groups as Kernel Tuner counts them: the problem over the grid's divisors.
            found = {}
            for at, axis in enumerate(_AXES[: len(self._problem_size())]):
                divisors = self._kernel.get(f"GridDiv{axis}")
                if divisors is None:
                    divisors = [str(local[axis])] if axis in local else []
                product_text = " * ".join(f"({one})" for one in divisors) or "1"
                found[axis] = f"ceil(ProblemSize[{at}] / ({product_text}))"
            whole, counts_groups = found, True
        axes = [axis for axis in _AXES if axis in whole or axis in local]
        sizes = [evaluate_size(local.get(axis, 1), known) for axis in axes]
        counts = [evaluate_size(whole.get(axis, 1), known) for axis in axes]
        if not counts_groups:  # as Kernel Tuner does: the kernel guards what lies beyond
            counts = [-(-count // size) for count, size in zip(counts, sizes, strict=True)]
        counts = [count * size for count, size in zip(counts, sizes, strict=True)]
        return tuple(counts), tuple(sizes)

    def _read_source(self) -> str:
        if self._source is None:
            name = str(self._kernel["KernelFile"])
            places = (self._path.parent / name, self._path.parent.parent / name, Path(name))
            file = next((one for one in places if one.is_file()), None)
            if file is None:
                raise InputError(f"there is no file {places[0]}")
            self._source = file.read_text(encoding="utf-8")
        return self._source


def _load(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from error
    needed = ("ConfigurationSpace", "KernelSpecification")
    if not isinstance(content, dict) or not all(
        isinstance(content.get(one), dict) for one in needed
    ):
        msg = f"{path}: has no {' and '.join(needed)}; expected a tuning problem in the T1 format"
        raise InputError(msg)
    return content


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
