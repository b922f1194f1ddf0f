"""Reads a problem that came as JSON: the keys of a problem file, and no file of the sender."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import yaml

from kernelcast.launches.problem_file.arguments import read_argument
from kernelcast.launches.problem_file.located import Located
from kernelcast.launches.problem_file.parts import read_ndrange
from kernelcast.launches.problem_file.reader import KEYS, REQUIRED, name_values, read_kernel
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.problem import Problem

_PLACE = Path("problem")
_TAG = "tag:yaml.org,2002:"
_DEEPEST = 6
_MOST_NODES = 20_000


class InlineProblemError(ProblemFileError):
    """Is raised for a value that cannot be used; tells which one.

    Parameters
    ----------
    message : str
        What is wrong.
    key : str
        Of the value: ``global_size``, ``args[0]``, ``count``.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class _Inline(Located):
    """A value that knows its key; it has no line, and names no file."""

    whole: ClassVar[str] = "a problem needs code, kernel, global_size and args"

    def fail(self, complaint: str) -> NoReturn:
        """Raise an error that names the key."""
        msg = f"{self.key}: {complaint}" if self.key == "problem" else (
            f"problem: {self.key}: {complaint}"
        )  # fmt: skip
        raise InlineProblemError(msg.encode(errors="backslashreplace").decode(), self.key)

    def file(self, folder: Path) -> Path:
        """Refuse: whoever sends a problem has no files here."""
        del folder
        self.fail(
            "names a file, and no file of the sender is read here; give a source as `code`, and "
            "contents of buffers as recipes (zeros, ones, uniform, normal, arange, permutation)"
        )


def read_inline_problem(content: Mapping[str, Any], *, name: str | None = None) -> Problem:
    """Read a problem from plain values.

    Parameters
    ----------
    content : mapping
        The keys of a problem file; the source is given as `code`.
    name : str, optional
        What answers call the problem; the kernel's name when left out.

    Raises
    ------
    ProblemFileError
        If a value cannot be used, or a file is named.

    Examples
    --------
    >>> read_inline_problem({
    ...     "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    ...     "kernel": "fill", "global_size": 64, "local_size": 16,
    ...     "args": [{"buffer": "float32", "count": "2 ** 6"}],
    ... }).buffer_bytes
    256
    """
    root = _Inline(_Builder().make(content, 0), _PLACE)
    root = _Inline(root.node, _PLACE, "problem", name_values(root, {}))
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


class _Builder:
    """Makes the nodes that a YAML parser would make of the same values."""

    def __init__(self) -> None:
        self._mark = yaml.Mark("problem", 0, 0, 0, None, 0)
        self._count = 0

    def make(self, value: Any, depth: int) -> yaml.Node:  # noqa: ANN401 - any plain value
        """Make the node of a value.

        Raises
        ------
        ProblemFileError
            If it is no plain value, or there are too many.
        """
        self._count += 1
        if depth > _DEEPEST or self._count > _MOST_NODES:
            msg = (
                f"problem: holds more than {_MOST_NODES:,} values, or lists inside lists more than "
                f"{_DEEPEST} deep; a problem needs lists in mappings in one list, no more"
            )
            raise ProblemFileError(msg)
        match value:
            case Mapping():
                pairs = [
                    (self._scalar("str", str(key)), self.make(one, depth + 1))
                    for key, one in value.items()
                ]
                return yaml.MappingNode(f"{_TAG}map", pairs, self._mark, self._mark)
            case list() | tuple():
                items = [self.make(one, depth + 1) for one in value]
                return yaml.SequenceNode(f"{_TAG}seq", items, self._mark, self._mark)
        return self._make_scalar(value)

    def _make_scalar(self, value: Any) -> yaml.ScalarNode:  # noqa: ANN401 - any plain value
        match value:
            case None:
                return self._scalar("null", "")
            case bool():
                return self._scalar("bool", str(value).lower())
            case str():
                return self._scalar("str", value)
            case int():
                return self._scalar("int", str(value))
            case float() if math.isfinite(value):
                return self._scalar("float", repr(value))
        msg = f"problem: {value!r} is no text, finite number, list or mapping"
        raise ProblemFileError(msg)

    def _scalar(self, kind: str, text: str) -> yaml.ScalarNode:
        return yaml.ScalarNode(f"{_TAG}{kind}", text, self._mark, self._mark)
