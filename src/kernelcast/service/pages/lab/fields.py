"""The Lab's fields: read, filled in from examples and sources, made into problems and programs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

import yaml

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.launches.problem_file import read_inline_problem
from kernelcast.records.arguments import ElementType
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace
from kernelcast.records.problem import Problem
from kernelcast.service.dependencies import Form
from kernelcast.service.errors import message_of
from kernelcast.service.guard import check_source
from kernelcast.service.service import Service

_MOST_ARGUMENTS: Final = 256
_KERNEL = re.compile(r"\b(?:__)?kernel\b[^;{}()]*?(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(\w+)")
_PARAMETER = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>\S.*?)\s*")
_SEPARATORS = re.compile(r"[,;\n]")
_TYPED: Final = frozenset({
    "code", "kernel", "build_options", "parameters", "global_size", "local_size", "global_offset",
    "args",
})  # fmt: skip
"""Fields of a problem; other keys belong to arguments."""
_LONG: Final = frozenset({"code", "args"})


_FOLDER: Final = Path(__file__).parent / "examples"
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|restrict|__restrict|__?(?:global|local|constant|private|generic)|global"
    r"|local|constant|private|generic)\b|\*"
)


class FieldError(Exception):
    """Is raised for what cannot be read of a field; more lines of it point at the place."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFields:
    """What stands in the fields."""

    title: str = ""  # of an example
    code: str = ""
    kernel: str = ""
    build_options: str = ""
    parameters: str = ""
    global_size: str = ""
    local_size: str = ""
    global_offset: str = ""
    args: str = ""
    devices: tuple[str, ...] = ()
    machine: str = ""
    method: str = "analytic"  # or "estimate": how local sizes are compared
    may_sample: bool = True
    varied: str = ""  # the parameter that a picture of times is over

    @classmethod
    def read(cls, form: Form) -> Self:
        """Take the fields of a form that was sent."""
        return cls(
            **{name: form.first(name) for name in _TYPED - _LONG},
            **{name: form.get(name, [""])[0].replace("\r\n", "\n") for name in _LONG},
            devices=tuple(one for one in form.list("device") if 0 < len(one) <= 200),
            machine=form.first("machine"),
            method=form.first("method", "analytic"),
            may_sample=form.first("sampling", "never") == "auto",
            varied=form.first("varied"),
        )

    @property
    def options(self) -> list[str]:
        """Build options, one by one."""
        return self.build_options.split()

    def choose_kernel(self) -> str:
        """Give the kernel that is meant: the one named, else the only one of the source."""
        if self.kernel:
            return self.kernel
        found = list(dict.fromkeys(_KERNEL.findall(self.code)))
        if len(found) == 1:
            return str(found[0])
        message = (
            f"the source has several kernels; give one of {', '.join(found)}"
            if found
            else "the source has no kernel: kernel void NAME(...)"
        )
        raise FieldError("kernel" if found else "code", message)

    def check_code(self, service: Service) -> None:
        """Refuse a source and options that could reach files, or are too long."""
        if not self.code.strip():
            raise FieldError("code", "paste OpenCL C here, or load an example")
        for field, options in (("code", []), ("build_options", self.options)):
            try:
                check_source(self.code, service.settings.limits, options)
            except InputError as error:
                raise FieldError(field, message_of(error)) from error

    def to_content(self) -> dict[str, Any]:
        """Give the problem as the API takes it."""
        content: dict[str, Any] = {
            "code": self.code,
            "kernel": self.choose_kernel(),
            "global_size": _cut(self.global_size),
            "args": list(_read_arguments(self.args)),
        }
        if self.build_options:
            content["build_options"] = self.options
        if self.parameters:
            content["parameters"] = dict(read_parameters(self.parameters))
        for name in ("local_size", "global_offset"):
            if text := getattr(self, name):
                content[name] = _cut(text)
        return content

    def count_work_items(self) -> int:
        """Count the work-items of the launch; a usual number where sizes cannot be read yet."""
        content: dict[str, Any] = {"code": self.code, "kernel": "any", "args": []}
        try:
            content["global_size"] = _cut(self.global_size)
            content["parameters"] = dict(read_parameters(self.parameters))
            return read_inline_problem(content).ndrange.work_item_count
        except (FieldError, InputError, ValueError, OverflowError, RecursionError):
            return 1 << 20

    async def make_problem(
        self, service: Service, changes: Mapping[str, Any] | None = None
    ) -> tuple[str, Problem]:
        """Make the problem and keep it, as if it had been sent to the API."""
        self.check_code(service)
        try:
            return await service.problems.take({**self.to_content(), **(changes or {})})
        except InputError as error:
            field = "args" if error.key is None else re.split(r"[.[]", error.key)[0] or "code"
            raise FieldError(field, message_of(error).removeprefix("problem: ")) from error


def _cut(text: str) -> list[str]:
    """Cut sizes apart, which whoever reads the problem checks."""
    return [one.strip() for one in text.strip("[] ").split(",")]


@cache
def list_examples() -> dict[str, LabFields]:
    """Read all examples, by name."""
    found = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        texts: dict[str, Any] = {
            key: str(held.get(key, "")).rstrip("\n") for key in (*_TYPED, "title")
        }
        found[path.stem.partition("-")[2]] = LabFields(**texts)
    return found


def read_parameters(text: str) -> Iterator[tuple[str, str]]:
    """Read names for numbers, with what they stand for."""
    for part in _SEPARATORS.split(text):
        if not part.strip():
            continue
        match = _PARAMETER.fullmatch(part)
        if match is None:
            raise FieldError("parameters", f"{part.strip()!r}: expected NAME = VALUE")
        yield match["name"], match["value"]


def _read_arguments(text: str) -> Iterator[dict[str, Any]]:
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    if not lines:
        raise FieldError("args", "give a line per argument, or have them filled in from the source")
    if len(lines) > _MOST_ARGUMENTS:
        raise FieldError("args", f"{len(lines)} arguments; give at most {_MOST_ARGUMENTS}")
    for number, line in enumerate(lines, start=1):
        bare = line.removeprefix("-").strip()
        whole = bare if bare.startswith("{") else f"{{{bare}}}"
        held = None
        if len(whole) <= 1000:
            with suppress(yaml.YAMLError, ValueError, RecursionError):  # no date; many brackets
                held = yaml.safe_load(whole)
        if not isinstance(held, dict) or not all(
            isinstance(key, str) and _is_plain(value) for key, value in held.items()
        ):
            expected = "buffer: TYPE, count: N, or scalar: TYPE, value: V, or local: BYTES"
            raise FieldError("args", f"argument {number}: {line[:80]!r}: expected {expected}")
        yield held


def _is_plain(value: object) -> bool:
    """Tell whether a value is a number, a text, or a list of numbers, and nothing else of YAML."""
    if isinstance(value, list):
        return all(isinstance(one, int | float | str) for one in value)
    return value is None or isinstance(value, bool | int | float | str)


def propose_arguments(parameters: Sequence[ParameterFacts], items: int) -> str:
    """Write a line per argument: buffers of as many elements as work-items."""
    lines = []
    for one in parameters:
        bare = " ".join(_QUALIFIERS.sub(" ", one.type_name).split())
        # Of a structure, for instance, a person knows better.
        element = str(ElementType.from_opencl(bare) or "float32")
        if one.is_pointer and one.space is MemorySpace.LOCAL:
            lines.append("local: 4096")
        elif one.is_pointer:
            init = "uniform" if one.is_read else "zeros"
            lines.append(f"buffer: {element}, count: {items}, init: {init}")
        else:
            value = "1.0" if element.startswith("float") else str(items)
            lines.append(f"scalar: {element}, value: {value}")
    return "\n".join(lines)


def fields_of_content(content: Mapping[str, Any], devices: Sequence[str] = ()) -> LabFields:
    """Write a problem, as the API takes it, into the Lab's fields."""
    parameters = content.get("parameters") or {}

    def write_sizes(sizes: object) -> str:
        listed = sizes if isinstance(sizes, list | tuple) else [] if sizes is None else [sizes]
        return ", ".join(map(str, listed))

    return LabFields(
        code=str(content.get("code", "")),
        kernel=str(content.get("kernel", "")),
        build_options=" ".join(map(str, content.get("build_options") or ())),
        parameters=", ".join(f"{name} = {one}" for name, one in parameters.items()),
        global_size=write_sizes(content.get("global_size")),
        local_size=write_sizes(content.get("local_size")),
        global_offset=write_sizes(content.get("global_offset")),
        args="\n".join(map(write_argument, content.get("args") or ())),
        devices=tuple(devices),
    )


def write_argument(held: Mapping[str, Any]) -> str:
    """Write an argument as a line of the Lab."""
    text: str = yaml.safe_dump(
        dict(held), default_flow_style=True, sort_keys=False, allow_unicode=True, width=100_000
    )
    return text.strip()[1:-1]
