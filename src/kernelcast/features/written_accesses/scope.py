"""What names mean in the text of an access."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kernelcast.expressions import Expr, Symbol, SymbolKind

_AXES = "xyz"
_COORDINATES = {
    "": SymbolKind.GLOBAL_ID,
    "local_": SymbolKind.LOCAL_ID,
    "group_": SymbolKind.GROUP_ID,
}
FUNCTIONS = {
    "get_global_id": SymbolKind.GLOBAL_ID,
    "get_local_id": SymbolKind.LOCAL_ID,
    "get_group_id": SymbolKind.GROUP_ID,
    "get_local_size": SymbolKind.LOCAL_SIZE,
    "get_global_size": SymbolKind.GLOBAL_SIZE,
    "get_num_groups": SymbolKind.GROUP_COUNT,
    "get_global_offset": SymbolKind.GLOBAL_OFFSET,
}
"""Functions of OpenCL C that take a dimension."""
COORDINATES = {
    f"{prefix}{letter}": Symbol(kind, axis=axis)
    for prefix, kind in _COORDINATES.items()
    for axis, letter in enumerate(_AXES)
}
"""``x``, ``local_y``, ``group_z`` and so on."""
KEYWORDS = frozenset({"for", "in", "if", "and", "or", "not", "range", "min", "max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Names that expressions may use."""

    scalars: Collection[str] = ()
    """Names of scalar arguments."""
    arrays: Collection[str] = ()
    """Names of arrays, which no expression may use: their content is not known."""
    loops: Mapping[str, Expr] = field(default_factory=dict)
    """Values of loop variables."""

    def find(self, name: str) -> Expr | None:
        """Give what a name stands for; None if it stands for no number."""
        if name in self.loops:
            return self.loops[name]
        if name in self.scalars:
            return Expr.symbol(Symbol(SymbolKind.SCALAR, name))
        symbol = COORDINATES.get(name)
        return None if symbol is None else Expr.symbol(symbol)

    def explain(self, name: str) -> str:
        """Say why a name cannot be used, and which ones can."""
        if name in self.arrays:
            return (
                f"an address that depends on the content of {name!r} is not affine; model the "
                "kernel from its source, with `--device` to record the addresses"
            )
        known = [*self.loops, *self.scalars, *COORDINATES, *FUNCTIONS]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f", did you mean {close[0]!r}?" if close else ""
        scalars = ", ".join(self.scalars) or "none"
        return (
            f"{name!r} is not known{hint}; there are x, y, z (global ids), local_x, group_x and so "
            f"on, OpenCL's functions of ids and sizes, variables of loops, and scalars ({scalars})"
        )
