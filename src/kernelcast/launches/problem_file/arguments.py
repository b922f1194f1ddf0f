"""Reads one entry of a problem file's `args`."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from kernelcast.launches.problem_file.located import Located
from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    Init,
    LocalArgument,
    ScalarArgument,
)

_BUFFER_KEYS = ("buffer", "count", "init", "access", "low", "high")
_SCALAR_KEYS = ("scalar", "value")
_LOCAL_KEYS = ("local",)
_ALL_KEYS = (*_BUFFER_KEYS, *_SCALAR_KEYS, *_LOCAL_KEYS)

Choice = TypeVar("Choice", bound=StrEnum)


def read_argument(item: Located, folder: Path) -> Argument:
    """Read a buffer, a scalar or a piece of local memory.

    Raises
    ------
    ProblemFileError
        If it is none of them, or says something that cannot be used.
    """
    entries = item.mapping(_ALL_KEYS)
    kinds = [kind for kind in ("buffer", "scalar", "local") if kind in entries]
    if len(kinds) != 1:
        item.fail("give one of `buffer: TYPE`, `scalar: TYPE` or `local: BYTES`")
    match kinds[0]:
        case "buffer":
            return _read_buffer(item, item.mapping(_BUFFER_KEYS, required=("count",)), folder)
        case "scalar":
            return _read_scalar(item.mapping(_SCALAR_KEYS, required=("value",)))
        case _:
            return LocalArgument(bytes=item.mapping(_LOCAL_KEYS)["local"].integer(minimum=1))


def _read_buffer(item: Located, entries: Mapping[str, Located], folder: Path) -> BufferArgument:
    init, path = _read_init(entries.get("init"), folder)
    low, high = (entries[key].number() if key in entries else None for key in ("low", "high"))
    if (low is not None or high is not None) and init is not Init.UNIFORM:
        item.fail("`low` and `high` are the range of `init: uniform`; remove them or use it")
    buffer = BufferArgument(
        element=_read_element(entries["buffer"]),
        count=entries["count"].integer(minimum=1),
        init=init,
        low=low,
        high=high,
        access=_read_choice(entries["access"], Access) if "access" in entries else None,
        path=path,
    )
    complaint = buffer.complain_about_range()
    if complaint:
        item.fail(complaint)
    return buffer


def _read_init(located: Located | None, folder: Path) -> tuple[Init, Path | None]:
    if located is None:
        return Init.ZEROS, None
    if located.text().endswith(".npy"):
        return Init.FILE, located.file(folder)
    return _read_choice(located, Init, also="a file.npy", without=(Init.FILE,)), None


def _read_scalar(entries: Mapping[str, Located]) -> ScalarArgument:
    element = _read_element(entries["scalar"])
    value = entries["value"]
    items = value.items() if value.is_list else [value]
    if len(items) != element.lanes:
        value.fail(f"expected {element.lanes} numbers for {element}, found {len(items)}")
    numbers = tuple(item.number() for item in items)
    if element.dtype.kind in "iu":
        numbers = tuple(
            int(n) if float(n).is_integer() else value.fail(f"{n} is no whole number; {element} "
                                                            "needs one")
            for n in numbers
        )  # fmt: skip
    scalar = ScalarArgument(element=element, values=numbers)
    complaint = scalar.complain_about_range()
    if complaint:
        value.fail(complaint)
    return scalar


def _read_element(located: Located) -> ElementType:
    with located.pointing_here():
        return ElementType.parse(located.text())


def _read_choice(
    located: Located, choices: type[Choice], *, also: str = "", without: tuple[Choice, ...] = ()
) -> Choice:
    text = located.text()
    known = [choice for choice in choices if choice not in without]
    chosen = next((choice for choice in known if choice.value == text), None)
    if chosen is None:
        names = ", ".join([*(choice.value for choice in known), *([also] if also else [])])
        located.fail(f"expected one of {names}; found {text!r}")
    return chosen
