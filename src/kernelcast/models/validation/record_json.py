"""From JSON back to records: what `dataclasses.asdict` and `json.dumps` made of them."""

import json
from functools import cache
from typing import Any, TypeVar

from kernelcast.records.errors import InputError

_Record = TypeVar("_Record")


def read_document(kind: type[_Record], text: str, expected: int, *, what: str) -> _Record:
    """Read a record from JSON that names its format beside the fields; messages call it `what`."""
    from cattrs.errors import ForbiddenExtraKeysError

    try:
        content = json.loads(text)
        found = content.pop("format")
        if found == expected:
            return _converter().structure(content, kind)  # type: ignore[no-any-return]  # of `kind`
    except (
        ValueError, TypeError, KeyError, AttributeError, RecursionError, ForbiddenExtraKeysError
    ) as error:  # fmt: skip
        msg = f"{what}: cannot be read ({error!r}); is it the JSON of a {what}?"
        raise InputError(msg) from error
    msg = f"{what}: format {found}, this program reads {expected}; make it anew"
    raise InputError(msg)


@cache
def _converter() -> Any:  # noqa: ANN401 - of a library that is read when a document is
    from cattrs import Converter

    return Converter(forbid_extra_keys=True, detailed_validation=False)
