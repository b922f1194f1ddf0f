"""Records as plain values for JSON: one rule for units, names, sets and moments."""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from kernelcast.records.explanation import LinearFacts

# Its keys were printed before there was the rule for units.
_KEEP_THEIR_KEYS: Final = frozenset({LinearFacts})
CONVERTER: Final = cattrs.Converter(unstruct_collection_overrides={tuple: list, frozenset: sorted})
METHODS: Final = (
    "linear", "two_point", "pooled_rate", "analytic", "learned", "hybrid", "sizes", "history",
)  # fmt: skip
"""Keys of an estimate's methods that are always there; None where one has not answered."""


def to_plain(record: Any, *, omit: Collection[str] = ()) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Convert a record to plain values: ``_s`` to ``_seconds``, sets to sorted lists."""
    if not omit:
        content: dict[str, Any] = CONVERTER.unstructure(record)
        return content
    kind: Any = type(record)
    return {
        key: CONVERTER.unstructure(getattr(record, name))
        for name, key in list_keys(kind).items()
        if name not in omit
    }


def pick(record: object, *names: str, **paths: str) -> dict[str, Any]:
    """Take values of a record by their names or paths; beyond a None all is None."""
    found = {}
    for name, path in {**{name: name for name in names}, **paths}.items():
        value: Any = record
        for part in path.split("."):
            value = None if value is None else getattr(value, part)
        found[name] = value
    return found


@cache
def list_keys(kind: Any) -> dict[str, str]:  # noqa: ANN401 - the class of a record
    """Name a record's fields as they are in JSON."""
    names = [field.name for field in fields(kind)]
    if kind in _KEEP_THEIR_KEYS:
        return dict(zip(names, names, strict=True))
    return {
        name: f"{name.removesuffix('_s')}_seconds" if name.endswith("_s") else name
        for name in names
    }


@CONVERTER.register_unstructure_hook_factory(is_dataclass)
def _write_record(kind: Any) -> Any:  # noqa: ANN401 - as the library has them
    keys = list_keys(kind)
    renamed = {name: override(rename=key) for name, key in keys.items() if name != key}
    make: Any = make_dict_unstructure_fn  # its own options stand beside the fields
    return make(kind, CONVERTER, **renamed)


CONVERTER.register_unstructure_hook(datetime, datetime.isoformat)


def list_methods(estimates_s: Mapping[str, float]) -> dict[str, float | None]:
    """List every method's seconds; None for one that has not answered with a finite number."""
    return dict.fromkeys(METHODS) | keep_finite(estimates_s)


def keep_finite(times_s: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in times_s.items() if math.isfinite(seconds)}
