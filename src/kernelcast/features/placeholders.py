"""Declarations in the place of names that a host program would define by -D.

A compiler refuses a source where a name is not declared. A placeholder closes the gap: an
enumerator for a number, so that it may be an array's size too, and a typedef for a type.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# clang's errors have no numbers, so their text must do.
_TYPE = re.compile(r"unknown type name '(\w+)'")
_VALUE = re.compile(r"use of undeclared identifier '(\w+)'")
_VECTOR = re.compile(r"vec|(?<!\d)[234]$", re.IGNORECASE)
_NUMBER = 16
"""What a number is taken as where one is needed: a size that is not small or odd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A name that a source uses and does not define."""

    name: str
    type_name: str = ""
    """What type it is taken for; empty if it is a number."""
    is_called: bool = False
    """Whether it is a function; a number stands there all the same."""

    @property
    def declaration(self) -> str:
        """A line of OpenCL C that declares it."""
        if self.type_name:
            return f"typedef {self.type_name} {self.name};"
        return f"enum {{ {self.name} = {_NUMBER} }};"

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.is_called:
            return f"the function {self.name} is not defined; add it to the source"
        taken = f", taken as {self.type_name}" if self.type_name else ""
        return f"{self.name} is not defined{taken}; give -D{self.name}=..."


def find_placeholders(
    messages: Sequence[str], known: Iterable[Placeholder], source: str
) -> list[Placeholder]:
    """Find the names of a source that errors complain about, types before all else.

    Returns
    -------
    list of Placeholder
        New ones. Where a type is not known, so is each variable of it: then there are only types.
    """
    have = {one.name for one in known}
    types = _find_names(_TYPE, messages, have)
    if types:
        return [
            Placeholder(name=name, type_name="float4" if _VECTOR.search(name) else "float")
            for name in types
        ]
    return [
        Placeholder(name=name, is_called=re.search(rf"\b{name}\s*\(", source) is not None)
        for name in _find_names(_VALUE, messages, have)
    ]


def _find_names(pattern: re.Pattern[str], messages: Sequence[str], have: set[str]) -> list[str]:
    found = (pattern.search(message) for message in messages)
    return [name for name in dict.fromkeys(one[1] for one in found if one) if name not in have]
