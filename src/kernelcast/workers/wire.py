"""Records to JSON and back: by the types that are expected and nothing else.

What comes from a child process may come from a stranger's kernel: nothing is looked up by a name
that the text brings, every value has exactly the type that its field declares, numbers are finite,
and each record checks itself as when it is made here.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn, Union, get_args, get_origin

if TYPE_CHECKING:
    import cattrs


class NotDecodableError(ValueError):
    """Is raised when a text is not what was expected; says what is wrong with it."""


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
    if hasattr(value, "item"):  # NumPy's numbers
        return value.item()
    if is_dataclass(value):
        return {one.name: _make_plain(getattr(value, one.name)) for one in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be sent: {value!r:.100}")


def decode(text: bytes | str, expected: Any) -> Any:  # noqa: ANN401 - any type
    """Read a value of an expected type from what `encode` wrote; refuse anything else."""
    try:
        return structure(json.loads(text), expected)
    except (ValueError, RecursionError) as error:
        raise NotDecodableError(f"{error!s:.300}") from None


def structure(plain: object, expected: Any) -> Any:  # noqa: ANN401 - any type
    """Make a value of an expected type from what JSON holds; refuse anything else."""
    try:
        return _converter().structure(plain, expected)
    except NotDecodableError:
        raise
    except Exception as error:  # noqa: BLE001 - records and cattrs raise all kinds at foreign values
        raise NotDecodableError(f"{type(error).__name__}: {error!s:.300}") from None


def prepare(*expected: Any) -> None:  # noqa: ANN401 - types
    """Get ready to read values of types: up to 0.1 s, better spent while a child starts."""
    for one in expected:
        _converter().get_structure_hook(one)


def _refuse(wanted: str, value: object) -> NoReturn:
    raise NotDecodableError(f"{wanted} was expected, not {value!r:.100}")


def _take_number(value: object) -> float:
    if type(value) not in {int, float}:
        _refuse("a number", value)
    number = float(value)  # type: ignore[arg-type]  # checked above
    if not math.isfinite(number):
        _refuse("a finite number", value)
    return number


@cache
def _converter() -> "cattrs.Converter":
    # Half as slow to import as a child is to start: it is imported while one does.
    import cattrs
    from cattrs.strategies import configure_union_passthrough

    made = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
    plain = {int: "a whole number", str: "a text", bool: "a truth value", NoneType: "nothing"}
    for kind in plain:
        made.register_structure_hook(
            kind, lambda value, kind: value if type(value) is kind else _refuse(plain[kind], value)
        )
    # A subclass of str: without its own hook it would come as plain text.
    made.register_structure_hook(StrEnum, lambda value, kind: kind(value))
    made.register_structure_hook(float, lambda value, _: _take_number(value))
    made.register_structure_hook(
        datetime,
        lambda value, _: (
            datetime.fromisoformat(value) if type(value) is str else _refuse("a moment", value)
        ),
    )
    configure_union_passthrough(Union[int, float, str, bool, None], made)  # noqa: UP007 - as asked

    def take_mapping(value: Any, kind: Any) -> Any:  # noqa: ANN401 - any type
        if type(value) is dict:  # as files have it
            value = [[*pair] for pair in value.items()]
        if type(value) is not list:
            _refuse("a list of pairs", value)
        pair: Any = tuple.__class_getitem__(get_args(kind))
        return dict(made.structure(one, pair) for one in value)

    def is_mapping(kind: Any) -> bool:  # noqa: ANN401 - any type
        origin = get_origin(kind) or kind
        return isinstance(origin, type) and issubclass(origin, Mapping)

    made.register_structure_hook_func(is_mapping, take_mapping)
    return made
