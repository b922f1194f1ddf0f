"""Records to JSON: what a child process sends. It needs no schema: the reader has one."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np


def encode(value: object) -> bytes:
    """Write a value of records, containers and plain values as JSON."""
    return json.dumps(_make_plain(value)).encode()


def _make_plain(value: object) -> Any:  # noqa: ANN401 - what JSON holds
    match value:
        case Enum():
            return value.value
        case None | str() | int() | float():
            return value
        case Mapping():  # keys may be records: pairs serve them all
            return [[_make_plain(key), _make_plain(one)] for key, one in value.items()]
        case tuple() | list() | frozenset():
            return [_make_plain(one) for one in value]
        case datetime():
            return value.isoformat()
        case np.generic():
            return value.item()
    if is_dataclass(value):
        return {one.name: _make_plain(getattr(value, one.name)) for one in fields(value)}
    msg = f"{type(value).__name__} cannot be sent: {value!r:.100}"
    raise TypeError(msg)
