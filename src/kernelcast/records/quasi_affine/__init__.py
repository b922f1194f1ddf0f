"""Expressions over ids, sizes, loop iterations and scalar arguments, and conditions on them.

They describe which addresses a kernel touches; see `Expr`. Conditions have their own front door,
`kernelcast.records.conditions`.
"""

from kernelcast.records.quasi_affine.choices import (
    Maximum,
    Minimum,
    Select,
    maximum,
    minimum,
    select,
)
from kernelcast.records.quasi_affine.divisions import (
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    floor_div,
    floor_mod,
    trunc_div,
    trunc_mod,
)
from kernelcast.records.quasi_affine.evaluation import (
    Bindings,
    EvaluationError,
    Value,
)
from kernelcast.records.quasi_affine.expressions import Atom, Composite, Expr, Monomial, Operand
from kernelcast.records.quasi_affine.geometric import Geometric, geometric
from kernelcast.records.quasi_affine.json_form import from_json, to_json
from kernelcast.records.quasi_affine.symbols import Symbol, SymbolKind

__all__ = [
    "Atom",
    "Bindings",
    "Composite",
    "EvaluationError",
    "Expr",
    "FloorDiv",
    "FloorMod",
    "Geometric",
    "Maximum",
    "Minimum",
    "Monomial",
    "Operand",
    "Select",
    "Symbol",
    "SymbolKind",
    "TruncDiv",
    "TruncMod",
    "Value",
    "floor_div",
    "floor_mod",
    "from_json",
    "geometric",
    "maximum",
    "minimum",
    "select",
    "to_json",
    "trunc_div",
    "trunc_mod",
]
