"""What address expressions are made of: ids, sizes, loop iterations and scalar arguments."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS


class SymbolKind(StrEnum):
    """What a symbol stands for."""

    LOCAL_ID = "local_id"
    GROUP_ID = "group_id"
    GLOBAL_ID = "global_id"
    LOOP = "iteration"
    """Number of a loop's iteration, from 0; the name is the loop's id."""
    SCALAR = "scalar"
    """Value of a scalar kernel argument, by its name."""
    LOCAL_SIZE = "local_size"
    GLOBAL_SIZE = "global_size"
    GROUP_COUNT = "group_count"
    GLOBAL_OFFSET = "global_offset"
    CONTENT = "content"
    """Number that a buffer holds at a place, by a name that says which; see `ContentRead`."""


ID_FUNCTIONS: Final[Mapping[str, SymbolKind]] = {
    "get_global_id": SymbolKind.GLOBAL_ID,
    "get_local_id": SymbolKind.LOCAL_ID,
    "get_group_id": SymbolKind.GROUP_ID,
    "get_local_size": SymbolKind.LOCAL_SIZE,
    "get_global_size": SymbolKind.GLOBAL_SIZE,
    "get_num_groups": SymbolKind.GROUP_COUNT,
    "get_global_offset": SymbolKind.GLOBAL_OFFSET,
}
"""OpenCL C's functions of a dimension, and what they give."""
_RANKS = {kind: rank for rank, kind in enumerate(SymbolKind)}
_NAMED = frozenset({SymbolKind.LOOP, SymbolKind.SCALAR, SymbolKind.CONTENT})
_VARIABLES = frozenset(
    {
        SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID, SymbolKind.GLOBAL_ID, SymbolKind.LOOP,
        SymbolKind.CONTENT,
    }
)  # fmt: skip
_INTERNED: dict[tuple[SymbolKind, str, int], "Symbol"] = {}


class Symbol:
    """A whole number that a kernel knows at run time."""

    __slots__ = ("axis", "is_parameter", "kind", "name", "sort_key")

    kind: SymbolKind
    name: str
    axis: int
    is_parameter: bool
    """Whether it is fixed for a launch: a size, an offset or a scalar argument."""
    sort_key: str
    """Places it among the factors of a product: parameters first."""
    text_needs_parentheses = False
    """Whether its text falls apart beside an operator."""

    def __new__(cls, kind: SymbolKind, name: str = "", axis: int = 0) -> "Symbol":
        """Give the one object for this symbol."""
        found = _INTERNED.get((kind, name, axis))
        if found is not None:
            return found
        _check(kind, name, axis)
        symbol = object.__new__(cls)
        is_parameter = kind not in _VARIABLES
        rank = _RANKS[kind]
        for field, value in (
            ("kind", kind), ("name", name), ("axis", axis), ("is_parameter", is_parameter),
            ("sort_key", f"{0 if is_parameter else 1}{rank}{axis}{name}"),
        ):  # fmt: skip
            object.__setattr__(symbol, field, value)
        return _INTERNED.setdefault((kind, name, axis), symbol)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a symbol cannot be changed: {name}")

    def __reduce__(self) -> tuple[type["Symbol"], tuple[SymbolKind, str, int]]:
        return Symbol, (self.kind, self.name, self.axis)

    def __repr__(self) -> str:
        return f"Symbol({self.kind!s}, name={self.name!r}, axis={self.axis})"

    def __str__(self) -> str:
        if self.kind is SymbolKind.SCALAR:
            return self.name
        return f"{self.kind}({self.name or self.axis})"


def _check(kind: SymbolKind, name: str, axis: int) -> None:
    if kind in _NAMED:
        if not name or axis:
            msg = f"{kind} with name {name!r} and axis {axis} is no symbol; give a name and no axis"
            raise InputError(msg)
    elif name or not 0 <= axis < MAX_DIMENSIONS:
        raise InputError(
            f"{kind} with name {name!r} and axis {axis} is no symbol; "
            f"give no name and an axis from 0 to {MAX_DIMENSIONS - 1}"
        )
