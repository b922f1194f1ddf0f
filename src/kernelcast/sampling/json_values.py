"""Checks what a JSON file holds before records are made of it."""

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

_PLAIN_TYPES = (bool, int, float, str, int | None, str | None)


def check_fields(record: type[Any], content: Mapping[str, object]) -> None:
    """Check that the plain fields of a dataclass have values of their types.

    Parameters
    ----------
    content : mapping of str to object
        What the file holds for it; fields may be missing, types other than numbers and texts are
        not looked at.

    Raises
    ------
    ValueError
        If a value is of another type, or no finite number.

    Examples
    --------
    >>> from kernelcast.records.device import SaturationPoint
    >>> check_fields(SaturationPoint, {"concurrency": 4, "limiter": None})
    >>> check_fields(SaturationPoint, {"concurrency": "many"})
    Traceback (most recent call last):
    ValueError: concurrency is 'many', expected int
    """
    for field in fields(record):
        if field.name not in content or field.type not in _PLAIN_TYPES:
            continue
        value = content[field.name]
        if field.type is float:
            take_number(value, field.name)
        elif not _is_of(value, field.type):
            expected = getattr(field.type, "__name__", str(field.type))
            msg = f"{field.name} is {value!r}, expected {expected}"
            raise ValueError(msg)


def take_number(value: object, what: str) -> float:
    """Take a finite number of at least 0, for instance a time in seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        msg = f"{what} is {value!r}, expected a number"
        raise ValueError(msg)  # noqa: TRY004 - the file is wrong, not a caller's type
    if not 0 <= value <= sys.float_info.max:  # whole numbers may be larger than any float
        msg = f"{what} is {value}, expected a finite number of at least 0"
        raise ValueError(msg)
    return value


def take_integers(value: object, what: str) -> tuple[int, ...]:
    """Take a list of whole numbers."""
    if not isinstance(value, list) or not all(_is_of(number, int) for number in value):
        msg = f"{what} is {value!r}, expected a list of whole numbers"
        raise ValueError(msg)
    return tuple(value)


def take_texts(value: object, what: str) -> tuple[str, ...]:
    """Take a list of texts."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        msg = f"{what} is {value!r}, expected a list of texts"
        raise ValueError(msg)
    return tuple(value)


def _is_of(value: object, kind: Any) -> bool:  # noqa: ANN401 - a type or a union of types
    # Python counts True as an int; a file that holds it for a number is wrong.
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
