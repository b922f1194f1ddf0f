"""Reads a problem that came as JSON: the keys of a problem file, and no file of the sender."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import yaml
from yaml.representer import SafeRepresenter

from kernelcast.launches.problem_file.arguments import read_argument
from kernelcast.launches.problem_file.located import Located
from kernelcast.launches.problem_file.parts import read_ndrange
from kernelcast.launches.problem_file.reader import KEYS, REQUIRED, name_values, read_kernel
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.problem import Problem

_PLACE = Path("problem")
_DEEPEST = 6
_MOST_VALUES = 20_000
_TOO_MUCH = (
    f"problem: holds more than {_MOST_VALUES:,} values, or lists inside lists more than "
    f"{_DEEPEST} deep; a problem needs lists in mappings in one list, no more"
)


class InlineProblemError(ProblemFileError):
    """Is raised for a value that cannot be used; tells which one."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class _Inline(Located):
    """A value that knows its key; it has no line, and names no file."""

    whole: ClassVar[str] = "a problem needs code, kernel, global_size and args"

    def fail(self, complaint: str) -> NoReturn:
        msg = f"{self.key}: {complaint}" if self.key == "problem" else (
            f"problem: {self.key}: {complaint}"
        )  # fmt: skip
        raise InlineProblemError(msg.encode(errors="backslashreplace").decode(), self.key)

    def file(self, folder: Path) -> Path:
        del folder
        self.fail(
            "names a file, and no file of the sender is read here; give a source as `code`, and "
            "contents of buffers as recipes (zeros, ones, uniform, normal, arange, permutation)"
        )


def read_inline_problem(content: Mapping[str, Any], *, name: str | None = None) -> Problem:
    """Read a problem from plain values: the keys of a problem file, with the source as `code`."""
    root = _Inline(_make_node(content), _PLACE)
    root = replace(root, names=name_values(root, {}))
    entries = root.mapping(KEYS, required=REQUIRED)
    if "source" in entries:
        entries["source"].file(_PLACE)
    kernel = read_kernel(root, entries, _PLACE)
    return Problem(
        name=name or kernel.name,
        kernel=kernel,
        ndrange=read_ndrange(entries),
        arguments=tuple(read_argument(item, _PLACE) for item in entries["args"].items()),
    )


def _make_node(content: Mapping[str, Any]) -> yaml.Node:
    plain = dict(content)
    if _count_values(plain, 0) > _MOST_VALUES:
        raise ProblemFileError(_TOO_MUCH)
    return SafeRepresenter(sort_keys=False).represent_data(plain)


def _count_values(value: Any, depth: int) -> int:  # noqa: ANN401 - any plain value
    if depth > _DEEPEST:
        raise ProblemFileError(_TOO_MUCH)
    match value:
        case dict():
            return 1 + sum(_count_values(one, depth + 1) for one in value.values())
        case list() | tuple():
            return 1 + sum(_count_values(one, depth + 1) for one in value)
        case None | bool() | int() | str():
            return 1
        case float() if math.isfinite(value):
            return 1
    msg = f"problem: {value!r} is no text, finite number, list or mapping"
    raise ProblemFileError(msg)
