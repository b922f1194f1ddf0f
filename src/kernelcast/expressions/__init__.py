"""Quasi-affine expressions and conditions, the records made of them, and sets of whole numbers.

Expressions over ids, sizes, loop iterations and scalar arguments describe which addresses a kernel
touches, conditions under which it does; see `Expr` and `Condition`.
"""

from kernelcast.expressions.composites import (
    Division,
    Extremum,
    Geometric,
    Select,
    floor_div,
    floor_mod,
    geometric,
    maximum,
    minimum,
    select,
    trunc_div,
    trunc_mod,
)
from kernelcast.expressions.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Comparison,
    Condition,
    Or,
    Relation,
    Unknown,
    compare,
    conjunction,
    disjunction,
    equal,
    less,
    less_equal,
    not_equal,
)
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.symbols import EvaluationError, Symbol, SymbolKind, Value

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "And",
    "Comparison",
    "Condition",
    "Division",
    "EvaluationError",
    "Expr",
    "Extremum",
    "Geometric",
    "Or",
    "Relation",
    "Select",
    "Symbol",
    "SymbolKind",
    "Unknown",
    "Value",
    "compare",
    "conjunction",
    "disjunction",
    "equal",
    "floor_div",
    "floor_mod",
    "geometric",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "not_equal",
    "select",
    "trunc_div",
    "trunc_mod",
]
