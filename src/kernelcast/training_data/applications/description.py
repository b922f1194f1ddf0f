"""Reads application.yaml (format: README.md of the corpus)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from kernelcast.records.errors import InputError
from kernelcast.training_data.applications.records import (
    Application,
    CorpusKernel,
    SizeRange,
    Suite,
)

DESCRIPTION = "application.yaml"
_KEYS = ("name", "suite", "title", "kernels")
_KERNEL_KEYS = ("problem", "table_2", "size", "local_sizes", "fp64", "note")
_SIZE_KEYS = ("parameter", "least", "most", "multiple_of", "power_of_two", "exponent")
_REQUIRED = object()

Value = TypeVar("Value")


class _Section:
    """A mapping of the file, read key by key; every complaint names the file and the key."""

    def __init__(self, content: Any, known: tuple[str, ...], place: str) -> None:  # noqa: ANN401 - YAML
        self._place = place
        if not isinstance(content, Mapping):
            self.fail(f"expected the keys {', '.join(known)}, found {content!r}")
        unknown = [str(key) for key in content if key not in known]
        if unknown:
            self.fail(f"unknown key {', '.join(unknown)}; the keys here are {', '.join(known)}")
        self._content = content

    def fail(self, complaint: str) -> NoReturn:
        """Raise an error that names the place."""
        msg = f"{self._place}: {complaint}"
        raise InputError(msg)

    def take(self, key: str, kind: type[Value], default: Any = _REQUIRED) -> Value:  # noqa: ANN401
        """Give a value of a kind; whole numbers are numbers, truth values are not."""
        if key not in self._content and default is not _REQUIRED:
            return default  # type: ignore[no-any-return]  # the caller's own
        if key not in self._content:
            self.fail(f"the key `{key}` is missing")
        value = self._content[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(f"{key}: expected {kind.__name__}, found {value!r}")
        return value


def read_application(folder: Path) -> Application:
    """Read an application's folder."""
    path = folder / DESCRIPTION
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise InputError(msg) from error
    section = _Section(content, _KEYS, str(path))
    suite = section.take("suite", str)
    if suite not in set(Suite):
        section.fail(f"suite: expected one of {', '.join(Suite)}; found {suite!r}")
    kernels = tuple(_read_kernel(item, folder, suite) for item in section.take("kernels", list))
    if not kernels:
        section.fail("kernels: expected at least one, found none")
    return Application(
        folder=folder,
        name=section.take("name", str),
        suite=Suite(suite),
        title=section.take("title", str),
        kernels=kernels,
    )


def _read_kernel(content: Any, folder: Path, suite: str) -> CorpusKernel:  # noqa: ANN401 - YAML
    section = _Section(content, _KERNEL_KEYS, f"{folder / DESCRIPTION}: kernels")
    problem_path = folder / section.take("problem", str)
    if not problem_path.is_file():
        section.fail(f"problem: there is no file {problem_path}")
    try:
        return CorpusKernel(
            application=folder.name,
            suite=suite,
            problem_path=problem_path,
            size=_read_size(section.take("size", dict), folder),
            local_sizes=_read_local_sizes(section),
            table_2=section.take("table_2", str, None),
            uses_fp64=section.take("fp64", bool, default=False),
            note=section.take("note", str, ""),
        )
    except InputError as error:
        place = f"{folder / DESCRIPTION}: "
        if str(error).startswith(place):
            raise
        msg = f"{place}{problem_path.name}: {error}"
        raise InputError(msg) from error


def _read_size(content: Any, folder: Path) -> SizeRange:  # noqa: ANN401 - YAML
    section = _Section(content, _SIZE_KEYS, f"{folder / DESCRIPTION}: size")
    return SizeRange(
        parameter=section.take("parameter", str),
        least=section.take("least", int),
        most=section.take("most", int),
        multiple_of=section.take("multiple_of", int, 1),
        is_power_of_two=section.take("power_of_two", bool, default=False),
        exponent=section.take("exponent", float, 1.0),
    )


def _read_local_sizes(section: _Section) -> tuple[tuple[int, ...], ...]:
    sizes = section.take("local_sizes", list)
    for one in sizes:
        if not isinstance(one, list) or not all(type(extent) is int for extent in one):
            section.fail(f"local_sizes: expected lists such as [64] or [16, 16], found {one!r}")
    return tuple(tuple(one) for one in sizes)
