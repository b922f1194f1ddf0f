"""Machine description files (YAML): docs/reference/machine-files.md.

The keys are the fields of records. Every complaint names file, line and key. People read and edit
the files: one number a line.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import yaml

from kernelcast.launches.problem_file.located import Located, load, read_text
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import InputError, MachineFileError
from kernelcast.records.machine import (
    SCHEMA,
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.private_files import make_private_folder, write_output, writing

Record = TypeVar("Record")
NAMED_BY: Mapping[type, str] = {
    InstructionFacts: "name",
    CacheFacts: "name",
    MemoryFacts: "space",
    Curve: "name",
}
"""The field that is the key of such a record in its section."""

_LAST = ("not_obtained", "curves")
_TRAIT_KEYS = ("value", "low", "high", "source", "origin")


def machine_to_plain(machine: MachineDescription) -> dict[str, Any]:
    """Turn a description into dictionaries, lists, texts and numbers; leaves out what is empty."""
    plain = _plain(machine)
    last = {name: plain.pop(name) for name in _LAST if name in plain}
    return {"schema": SCHEMA, **plain, **last}


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any field
    if isinstance(value, Trait):
        told = {name: _plain(getattr(value, name)) for name in _TRAIT_KEYS}
        return {name: one for name, one in told.items() if one not in {None, ""}}
    if is_dataclass(value):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in fields(value)
            if one.name != NAMED_BY.get(type(value))
            and getattr(value, one.name)
            != (one.default if one.default_factory is MISSING else one.default_factory())
        }
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        key = NAMED_BY.get(type(value[0])) if value else None
        return {getattr(one, key): _plain(one) for one in value} if key else [*value]
    return str(value) if isinstance(value, str) else value


class MachineEntry(Located):
    """A value in a machine description, called by its whole path: ``caches.L1.size_bytes``."""

    __slots__ = ()
    error: ClassVar[type[InputError]] = MachineFileError
    whole: ClassVar[str] = f"a machine description needs `schema: {SCHEMA}`, id, name and kind"
    root: ClassVar[str] = "machine"

    def _at(self, node: yaml.Node, key: str) -> Self:
        return replace(self, node=node, key=key if self.key == self.root else f"{self.key}.{key}")


def read_machine(path: Path) -> MachineDescription:
    return parse_machine(read_text(path, "machine description", MachineFileError), path)


def parse_machine(text: str, path: Path) -> MachineDescription:
    root = load(path, text, MachineEntry)
    return read_described(MachineDescription, root, SCHEMA, "; calibrate anew, or update")


def read_described(
    record: type[Record], bare: MachineEntry, schema: str, remedy: str = ""
) -> Record:
    """Read a whole file: its schema, and the fields of a record."""
    root = replace(bare, key=bare.root)
    keys = ("schema", *(one.name for one in fields(record)))  # type: ignore[arg-type]  # as below
    entries = root.mapping(keys, required=("schema",))
    found = entries.pop("schema")
    if found.raw_text() != schema:
        found.fail(f"expected {schema}, found {found.raw_text()!r}{remedy}")
    return read_record(record, root, entries)


def read_record(
    record: type[Record], entry: Located, values: Mapping[str, Located], **known: object
) -> Record:
    """Read the fields of a record, by their types."""
    hints = get_type_hints(record)
    given = {name: _read(one, hints[name]) for name, one in values.items() if not one.is_null}
    for one in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        is_required = one.default is MISSING and one.default_factory is MISSING
        if is_required and one.name not in {*given, *known}:
            if one.name in values:
                values[one.name].fail("expected a value, found nothing")
            entry.fail(f"the key `{one.name}` is missing")
    with entry.pointing_here():
        return record(**known, **given)


def _read(entry: Located, hint: Any) -> Any:  # noqa: ANN401 - as the type of a field says
    """Read a value of a type that fields of descriptions have."""
    origin, kinds = get_origin(hint), [one for one in get_args(hint) if one is not NoneType]
    if NoneType in get_args(hint):
        return _read(entry, kinds[0])
    if origin is Trait:
        kind = kinds[0]
        if not isinstance(entry.node, yaml.MappingNode):
            return Trait(value=_read(entry, kind), source=TraitSource.ASSUMED)
        parts = entry.mapping(_TRAIT_KEYS, required=("value", "source"))
        value = _read(replace(parts["value"], key=entry.key), kind)
        low, high = (parts[one].number() if one in parts else None for one in ("low", "high"))
        if (low is not None and low > value) or (high is not None and high < value):
            entry.fail(f"expected low <= value <= high, found {low} <= {value} <= {high}")
        return Trait(
            value=value,
            low=low,
            high=high,
            source=_read(parts["source"], TraitSource),
            origin=parts["origin"].raw_text() if "origin" in parts else "",
        )
    if origin is tuple and kinds[0] is float:
        return tuple(float(one.number()) for one in entry.items())
    if origin is tuple:
        name, record = NAMED_BY[kinds[0]], kinds[0]
        keys = [one.name for one in fields(record) if one.name != name]
        return tuple(
            read_record(record, one, {} if one.is_null else one.mapping(keys), **{name: key})
            for key, one in entry.pairs().items()
        )
    if origin is not None:  # a mapping with keys of the writer's choice
        pairs = entry.pairs()
        for key, one in pairs.items():
            if kinds[0] is int and not (key.isdecimal() and int(key) >= 1):
                one.fail(f"expected a whole number of at least 1 as the key, found {key!r}")
        return {kinds[0](key): _read(one, kinds[1]) for key, one in pairs.items()}
    if hint is int:
        return entry.integer(minimum=1)
    if hint is float:
        number = entry.number()
        is_rate = "_per_s" in entry.key or entry.key.endswith("_hz")
        if number < 0 or (number == 0 and is_rate):
            entry.fail(f"expected a number above 0, found {number}")
        return float(number)
    text = entry.raw_text()
    if hint is bool and text.lower() not in {"true", "false"}:
        entry.fail(f"expected true or false, found {text.lower()!r}")
    if issubclass(hint, StrEnum) and text not in tuple(hint):
        entry.fail(f"expected one of {', '.join(hint)}, found {text!r}")
    return text.lower() == "true" if hint is bool else hint(text)


_HEADER = """\
# What kernelcast knows of a device; docs/reference/machine-files.md explains the keys.
# To correct a number, replace its braces by a plain number: that reads as `source: assumed`.
"""
_SPACED = frozenset({
    "compute_units", "instructions", "caches", "memories", "costs", "not_obtained", "curves",
})  # fmt: skip


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
    what = "the machine description"
    with writing(path, what):
        if not path.parent.exists():  # the data folder above it is closed to others, not this one
            make_private_folder(path.parent)
            # What a device can do is no secret, and confined processes of a service that root has
            # started read it as another user.
            path.parent.chmod(0o755)
    write_output(path, dump_machine(machine), what, mode=0o644)


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
    # Fractions that people read without counting zeros.
    is_short = value == 0 or 1e-3 <= abs(value) < 1e6
    text = repr(value) if is_short else np.format_float_scientific(value, trim="0", exp_digits=2)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_LIST = "tag:yaml.org,2002:seq"
_Dumper.add_representer(dict, _write_mapping)
_Dumper.add_representer(
    list, lambda dumper, values: dumper.represent_sequence(_LIST, values, flow_style=True)
)
_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(float, _write_number)
