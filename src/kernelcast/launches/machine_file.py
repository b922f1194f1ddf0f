"""Machine description files (YAML): docs/reference/machine-files.md.

The keys are the fields of records. Every complaint names file, line and key. People read and edit
the files: one number a line.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import MachineFileError
from kernelcast.records.machine import SCHEMA, MachineDescription
from kernelcast.records.private_files import make_private_folder, write_output, writing
from kernelcast.records.yaml_files import Located, load

Record = TypeVar("Record")
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
            if getattr(value, one.name)
            != (one.default if one.default_factory is MISSING else one.default_factory())
        }
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        # The first field is the key.
        named = map(_plain, value)
        return {one.pop(next(iter(one))): one for one in named}
    if isinstance(value, tuple):
        return [*value]
    return str(value) if isinstance(value, str) else value


def read_machine(path: Path) -> MachineDescription:
    return parse_machine(None, path)


def parse_machine(text: str | None, path: Path) -> MachineDescription:
    """Read a description of a text, or of the file itself."""
    needs = f"a machine description needs `schema: {SCHEMA}`, id, name and kind"
    root = load(path, "machine description", needs, MachineFileError, text)
    return read_described(MachineDescription, root, SCHEMA, "; calibrate anew, or update")


def read_described(
    record: Callable[..., Record], root: Located, schema: str, remedy: str = ""
) -> Record:
    """Read a whole file: its schema, and the fields of a record."""
    found = root.list_arguments(record, also=("schema",)).get("schema")
    if found is None:
        root.fail("the key `schema` is missing")
    if found.raw_text() != schema:
        found.fail(f"expected {schema}, found {found.raw_text()!r}{remedy}")
    return root.call(record, without=("schema",))


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
