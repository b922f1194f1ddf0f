"""Reads machine descriptions; every complaint names file, line and key."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

import yaml

from kernelcast.launches.machine_file.plain import NAMED_BY
from kernelcast.launches.problem_file.located import Located, load
from kernelcast.launches.problem_file.parts import read_text
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, MachineFileError
from kernelcast.records.machine import (
    SCHEMA,
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait, TraitSource

Record = TypeVar("Record")
Reader = Callable[["MachineEntry"], Any]

_TRAIT_KEYS = ("value", "low", "high", "source", "origin")
# libyaml is ten times faster than PyYAML, but crashes on what nests too deeply.
_DEEPEST = 20
_NESTED_BLOCKS = re.compile(r"^\s{200}|(?:[-?:]\s+){20}", re.MULTILINE)


class MachineEntry(Located):
    """A value in a machine description, called by its whole path: ``caches.L1.size_bytes``."""

    __slots__ = ()
    error: ClassVar[type[InputError]] = MachineFileError
    whole: ClassVar[str] = f"a machine description needs `schema: {SCHEMA}`, id, name and kind"
    deepest: ClassVar[str] = "a machine description nests four levels, no more"
    root: ClassVar[str] = "machine"
    """How the whole file is called."""

    def _at(self, node: yaml.Node, key: str) -> Self:
        return replace(self, node=node, key=key if self.key == self.root else f"{self.key}.{key}")


def read_machine(path: Path) -> MachineDescription:
    """Read a machine description file.

    Raises
    ------
    MachineFileError
        If it cannot be read or says something that cannot be used.
    """
    return parse_machine(read_text(path, "machine description", MachineFileError), path)


def parse_machine(text: str, path: Path) -> MachineDescription:
    """Read a machine description from its text; `path` is for messages.

    Raises
    ------
    MachineFileError
        If it is no machine description.
    """
    loader = yaml.SafeLoader
    if _is_flat(text):
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    root = load(path, text, MachineEntry, loader=loader)
    root = replace(root, key=MachineEntry.root)
    keys = ("schema", *(one.name for one in fields(MachineDescription)))
    entries = root.mapping(keys, required=("schema",))
    found = entries.pop("schema")
    if found.raw_text() != SCHEMA:
        found.fail(f"expected {SCHEMA}, found {found.raw_text()!r}; calibrate anew, or update")
    return _make(MachineDescription, root, entries)


def _is_flat(text: str) -> bool:
    depth = deepest = 0
    for sign in re.findall(r"[\[{\]}]", text):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest <= _DEEPEST and not _NESTED_BLOCKS.search(text)


def _make(
    record: type[Record], entry: MachineEntry, values: Mapping[str, MachineEntry], **known: object
) -> Record:
    """Read the fields of a record."""
    readers = _READERS[record]
    given = {name: readers[name](one) for name, one in values.items() if not one.is_null}
    for one in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        is_required = one.default is MISSING and one.default_factory is MISSING
        if is_required and one.name not in {*given, *known}:
            entry.fail(f"the key `{one.name}` is missing")
    with entry.pointing_here():
        return record(**known, **given)


def _make_named(record: type[Record]) -> Reader:
    """Give what reads a section of records by their names."""
    key = NAMED_BY[record]
    keys = tuple(one.name for one in fields(record) if one.name != key)  # type: ignore[arg-type]  # a dataclass

    def read(entry: MachineEntry) -> tuple[Record, ...]:
        return tuple(
            _make(record, one, {} if one.is_null else one.mapping(keys), **{key: name})
            for name, one in entry.pairs().items()
        )

    return read


def _text(entry: MachineEntry) -> str:
    return entry.raw_text()


def _flag(entry: MachineEntry) -> bool:
    text = entry.raw_text().lower()
    if text not in {"true", "false"}:
        entry.fail(f"expected true or false, found {text!r}")
    return text == "true"


def _kind(entry: MachineEntry) -> DeviceKind:
    return DeviceKind(_choice(entry, tuple(DeviceKind)))


def _choice(entry: MachineEntry, choices: tuple[str, ...]) -> str:
    text = entry.raw_text()
    if text not in choices:
        entry.fail(f"expected one of {', '.join(choices)}, found {text!r}")
    return text


def _number(entry: MachineEntry) -> float:
    return float(entry.number())


def _numbers(entry: MachineEntry) -> tuple[float, ...]:
    return tuple(_number(one) for one in entry.items())


def _whole(entry: MachineEntry) -> int:
    return entry.integer(minimum=1)


def _amount(entry: MachineEntry) -> float:
    number = entry.number()
    if number < 0 or (number == 0 and entry.key.endswith("_per_s")):
        entry.fail(f"expected a number above 0, found {number}")
    return float(number)


def _trait(read_value: Reader) -> Reader:
    """Give what reads a number with its source; a plain number is assumed."""

    def read(entry: MachineEntry) -> Trait[Any]:
        if not isinstance(entry.node, yaml.MappingNode):
            return Trait(value=read_value(entry), source=TraitSource.ASSUMED)
        parts = entry.mapping(_TRAIT_KEYS, required=("value", "source"))
        value = read_value(replace(parts["value"], key=entry.key))
        low, high = (parts[one].number() if one in parts else None for one in ("low", "high"))
        if (low is not None and low > value) or (high is not None and high < value):
            entry.fail(f"expected low <= value <= high, found {low} <= {value} <= {high}")
        return Trait(
            value=value,
            low=low,
            high=high,
            source=TraitSource(_choice(parts["source"], tuple(TraitSource))),
            origin=parts["origin"].raw_text() if "origin" in parts else "",
        )

    return read


def _by_key(read_key: Callable[[MachineEntry, str], Any], read_value: Reader) -> Reader:
    """Give what reads a mapping with keys of the writer's choice."""

    def read(entry: MachineEntry) -> dict[Any, Any]:
        return {read_key(one, key): read_value(one) for key, one in entry.pairs().items()}

    return read


def _same(_: MachineEntry, key: str) -> str:
    return key


def _whole_key(entry: MachineEntry, key: str) -> int:
    if not key.isdecimal() or int(key) < 1:
        entry.fail(f"expected a whole number of at least 1 as the key, found {key!r}")
    return int(key)


_BY_TYPE: Mapping[Any, Reader] = {
    str: _text,
    DeviceKind: _kind,
    bool | None: _flag,
    Trait[int] | None: _trait(_whole),
    Trait[float] | None: _trait(_amount),
    tuple[float, ...]: _numbers,
    Mapping[str, str]: _by_key(_same, _text),
    Mapping[str, Trait[float]]: _by_key(_same, _trait(_amount)),
    Mapping[int, Trait[float]]: _by_key(_whole_key, _trait(_amount)),
    tuple[InstructionFacts, ...]: _make_named(InstructionFacts),
    tuple[CacheFacts, ...]: _make_named(CacheFacts),
    tuple[MemoryFacts, ...]: _make_named(MemoryFacts),
    tuple[Curve, ...]: _make_named(Curve),
}

_READERS: Mapping[type, Mapping[str, Reader]] = {
    record: {name: _BY_TYPE[hint] for name, hint in get_type_hints(record).items()}
    for record in (MachineDescription, *NAMED_BY)
}
"""What reads each field of a record, by the field's type."""
