"""Records as plain values for JSON: one rule for units, names, sets and moments."""

from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from kernelcast.records.explanation import LinearFacts

# Its keys were printed before there was the rule for units.
_KEEP_THEIR_KEYS: Final = frozenset({LinearFacts})
CONVERTER: Final = cattrs.Converter(unstruct_collection_overrides={tuple: list, frozenset: sorted})


def to_plain(record: object, *, omit: tuple[str, ...] = ()) -> dict[str, Any]:
    """Turn a record into strings, numbers, lists, dictionaries and None.

    A field is a key of its name; one that ends in ``_s`` is a key that ends in ``_seconds``.
    Moments are ISO 8601, sets sorted lists.
    """
    content: dict[str, Any] = CONVERTER.unstructure(record)
    return {key: value for key, value in content.items() if key not in omit}


def _write_record(kind: Any) -> Any:  # noqa: ANN401 - as the library has them
    names = (
        {} if kind in _KEEP_THEIR_KEYS else {one.name: _name_key(one.name) for one in fields(kind)}
    )
    renamed = {name: override(rename=key) for name, key in names.items() if name != key}
    make: Any = make_dict_unstructure_fn  # its own options stand beside the fields
    return make(kind, CONVERTER, **renamed)


def _name_key(name: str) -> str:
    return f"{name.removesuffix('_s')}_seconds" if name.endswith("_s") else name


CONVERTER.register_unstructure_hook_factory(is_dataclass, _write_record)
CONVERTER.register_unstructure_hook(datetime, datetime.isoformat)
