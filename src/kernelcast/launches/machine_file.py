"""Machine description files (YAML): docs/reference/machine-files.md.

The keys are the fields of records. Every complaint names file, line and key. People read and edit
the files: one number a line.
"""

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

import numpy as np
import yaml

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
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.traits import Trait, TraitSource

Record = TypeVar("Record")
NAMED_BY: Mapping[type, str] = {
    InstructionFacts: "name",
    CacheFacts: "name",
    MemoryFacts: "space",
    Curve: "name",
}
"""The field that is the key of such a record in its section."""

_LAST = ("not_obtained", "curves")


def machine_to_plain(machine: MachineDescription) -> dict[str, Any]:
    """Turn a description into dictionaries, lists, texts and numbers; leaves out what is empty."""
    plain = _plain_fields(machine)
    last = {name: plain.pop(name) for name in _LAST if name in plain}
    return {"schema": SCHEMA, **plain, **last}


def _plain_fields(record: Any, *, without: str = "") -> dict[str, Any]:  # noqa: ANN401 - any record
    return {
        one.name: _plain(getattr(record, one.name))
        for one in fields(record)
        if one.name != without and getattr(record, one.name) != _default(one)
    }


def _default(one: Field[Any]) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any field
    if isinstance(value, Trait):
        told = {one.name: getattr(value, one.name) for one in fields(value)}
        order = ("value", "low", "high", "source", "origin")
        return {
            name: str(told[name]) if name == "source" else told[name]
            for name in order
            if told[name] not in {None, ""}
        }
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return _plain_tuple(value)
    return str(value) if isinstance(value, str) else value


def _plain_tuple(values: tuple[Any, ...]) -> Any:  # noqa: ANN401 - by the tuple's members
    key = NAMED_BY.get(type(values[0])) if values else None
    if key is None:
        return list(values)
    return {getattr(one, key): _plain_fields(one, without=key) for one in values}


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

    def _at(self, node: yaml.Node, key: str) -> Self:
        return replace(self, node=node, key=key if self.key == self.root else f"{self.key}.{key}")


def read_machine(path: Path) -> MachineDescription:
    return parse_machine(read_text(path, "machine description", MachineFileError), path)


def parse_machine(text: str, path: Path) -> MachineDescription:
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
    readers = _READERS[record]
    given = {name: readers[name](one) for name, one in values.items() if not one.is_null}
    for one in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        is_required = one.default is MISSING and one.default_factory is MISSING
        if is_required and one.name not in {*given, *known}:
            entry.fail(f"the key `{one.name}` is missing")
    with entry.pointing_here():
        return record(**known, **given)


def _make_named(record: type[Record]) -> Reader:
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


_HEADER = """\
# What kernelcast knows of a device; docs/reference/machine-files.md explains the keys.
# To correct a number, replace its braces by a plain number: that reads as `source: assumed`.
"""
# Fractions that people read without counting zeros.
_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e6
_SPACED = frozenset({
    "compute_units", "instructions", "caches", "memories", "costs", "not_obtained", "curves",
})  # fmt: skip


# What a device can do is no secret, and confined processes of a service that root has started read
# it as another user.
_READABLE, _OPEN = 0o644, 0o755


def dump_machine(machine: MachineDescription) -> str:
    text = _HEADER
    for key, value in machine_to_plain(machine).items():
        section = yaml.dump(
            {key: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=math.inf
        )
        text += f"\n{section}" if key in _SPACED else section
    return text


def write_machine(path: Path, machine: MachineDescription) -> None:
    """Write a description so that the file is there whole or not at all."""
    text = dump_machine(machine)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _make_folder(path.parent)
        if path.exists() and not path.is_file():  # /dev/stdout and the like cannot be replaced
            path.write_text(text, encoding="utf-8")
            return
        try:
            partial.write_text(text, encoding="utf-8")
            partial.chmod(_READABLE)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path}: the machine description cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def _make_folder(folder: Path) -> None:
    """Make the folder; the data folder above it is closed to others, this one need not be."""
    if not folder.exists():
        make_private_folder(folder)
        folder.chmod(_OPEN)


class _Dumper(yaml.SafeDumper):
    """Writes numbers with their sources, and lists, on one line each."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _write_mapping(dumper: _Dumper, value: dict[Any, Any]) -> yaml.Node:
    is_trait = "value" in value
    if is_trait and value == {"value": value["value"], "source": TraitSource.ASSUMED.value}:
        return dumper.represent_data(value["value"])
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=is_trait)


def _write_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None if text.isprintable() else '"'  # one line each
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _write_number(dumper: _Dumper, value: float) -> yaml.Node:
    """Write a number so that it is read back the same, by any reader of YAML 1.1."""
    if not math.isfinite(value):
        msg = f"{value}: machine descriptions hold finite numbers only; leave it out instead"
        raise MachineFileError(msg)
    is_short = value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO
    text = repr(value) if is_short else np.format_float_scientific(value, trim="0", exp_digits=2)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


def _write_list(dumper: _Dumper, values: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=True)


_Dumper.add_representer(dict, _write_mapping)
_Dumper.add_representer(list, _write_list)
_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(float, _write_number)
