"""Machine descriptions as plain dictionaries, for YAML and JSON; the keys are the fields."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from kernelcast.records.machine import (
    SCHEMA,
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait

NAMED_BY: Mapping[type, str] = {
    InstructionFacts: "name",
    CacheFacts: "name",
    MemoryFacts: "space",
    Curve: "name",
}
"""The field that is the key of such a record in its section."""

_LAST = ("not_obtained", "curves")


def machine_to_plain(machine: MachineDescription) -> dict[str, Any]:
    """Turn a description into dictionaries, lists, texts and numbers; leaves out what is empty.

    Returns
    -------
    dict
        What `kernelcast calibrate --json` prints, and what files hold.
    """
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
    """Turn numbers into a list, records into a mapping by their names."""
    key = NAMED_BY.get(type(values[0])) if values else None
    if key is None:
        return list(values)
    return {getattr(one, key): _plain_fields(one, without=key) for one in values}
