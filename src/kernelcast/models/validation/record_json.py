"""From JSON back to records: what `dataclasses.asdict` and `json.dumps` made of them."""

import json
from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from kernelcast.records.errors import InputError

_Record = TypeVar("_Record")


def read_document(kind: type[_Record], text: str, expected: int, *, what: str) -> _Record:
    """Read a record from JSON that names its format beside the fields."""
    try:
        content = json.loads(text)
        found = content.pop("format")
        if found == expected:
            return read_record(kind, content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"{what}: cannot be read ({error!r}); is it the JSON of a {what}?"
        raise InputError(msg) from error
    msg = f"{what}: format {found}, this program reads {expected}; make it anew"
    raise InputError(msg)


def read_record(kind: type[_Record], content: Mapping[str, Any]) -> _Record:
    """Make a record of a dictionary, nested records and tuples too.

    Parameters
    ----------
    kind : type
        A dataclass; its fields are plain values, records, tuples of one kind, or None.
    content : mapping of str to Any
        A value per field.
    """
    hints = get_type_hints(kind)
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # kinds are dataclasses
    if names != {*content}:
        msg = f"{kind.__name__} has {sorted(names)}, found {sorted(content)}"
        raise KeyError(msg)
    return kind(**{name: _convert(hints[name], value) for name, value in content.items()})


def _convert(hint: Any, value: Any) -> Any:  # noqa: ANN401  # types and JSON may be anything
    if isinstance(hint, UnionType):
        inner = next(one for one in get_args(hint) if one is not type(None))
        return None if value is None else _convert(inner, value)
    if get_origin(hint) is tuple:
        return tuple(_convert(get_args(hint)[0], one) for one in value)
    if isinstance(value, Mapping) and hasattr(hint, "__dataclass_fields__"):
        return read_record(hint, value)
    return value
