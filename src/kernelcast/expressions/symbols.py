"""What address expressions are made of: ids, sizes, loops, scalars; their values, and C's rules."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS


class SymbolKind(StrEnum):
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
Replacement = TypeVar("Replacement")
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
    extent = (1, 1)

    def __new__(cls, kind: SymbolKind, name: str = "", axis: int = 0) -> "Symbol":
        found = _INTERNED.get((kind, name, axis))
        if found is not None:
            return found
        is_named = kind in _NAMED
        if is_named != bool(name) or not 0 <= axis < (1 if is_named else MAX_DIMENSIONS):
            wanted = "a name and no axis" if is_named else (
                f"no name and an axis from 0 to {MAX_DIMENSIONS - 1}")  # fmt: skip
            raise InputError(
                f"{kind} with name {name!r} and axis {axis} is no symbol; give {wanted}"
            )
        symbol = object.__new__(cls)
        symbol.kind, symbol.name, symbol.axis = kind, name, axis
        symbol.is_parameter = kind not in _VARIABLES
        symbol.sort_key = f"{0 if symbol.is_parameter else 1}{_RANKS[kind]}{axis}{name}"
        return _INTERNED.setdefault((kind, name, axis), symbol)

    def __reduce__(self) -> tuple[type["Symbol"], tuple[SymbolKind, str, int]]:
        return Symbol, (self.kind, self.name, self.axis)

    def symbols(self) -> frozenset["Symbol"]:
        return frozenset((self,))

    def is_quasi_affine(self) -> bool:
        return True

    def substitute(self, replacements: Mapping["Symbol", Replacement]) -> "Replacement | Symbol":
        return replacements.get(self, self)

    def evaluate(self, bindings: "Bindings") -> "Value":
        """Look its value up, as int or as array of int64."""
        value = bindings.get(self)
        if type(value) is int:
            return value
        if value is None:
            given = ", ".join(sorted(str(one) for one in bindings)) or "none"
            raise EvaluationError(f"{self} has no value; values were given for: {given}")
        array = np.asarray(value)
        if array.dtype.kind not in "iub":
            raise EvaluationError(f"{self} is {value!r}; give a whole number or an array of them")
        return array.astype(np.int64, copy=False) if array.ndim else int(array)

    def __repr__(self) -> str:
        return f"Symbol({self.kind!s}, name={self.name!r}, axis={self.axis})"

    def __str__(self) -> str:
        if self.kind is SymbolKind.SCALAR:
            return self.name
        return f"{self.kind}({self.name or self.axis})"


IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Value: TypeAlias = int | IntArray
Truth: TypeAlias = bool | BoolArray
Bindings: TypeAlias = Mapping[Symbol, Value]


class EvaluationError(InputError, ValueError):
    """Is raised when an expression has no value for the values given to its symbols."""
