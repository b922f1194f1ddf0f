"""Quasi-affine expressions and conditions, the records made of them, and sets of whole numbers.

Expressions over ids, sizes, loop iterations and scalar arguments describe which addresses a kernel
touches, conditions under which it does; see `Expr` and `Condition`.
"""

from kernelcast.expressions.choices import (
    Maximum,
    Minimum,
    Select,
    maximum,
    minimum,
    select,
)
from kernelcast.expressions.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Always,
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
    negation,
    not_equal,
)
from kernelcast.expressions.divisions import (
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    floor_div,
    floor_mod,
    trunc_div,
    trunc_mod,
)
from kernelcast.expressions.evaluation import (
    Bindings,
    EvaluationError,
    Value,
)
from kernelcast.expressions.geometric import Geometric, geometric
from kernelcast.expressions.polynomials import Atom, Composite, Expr, Monomial, Operand
from kernelcast.expressions.symbols import Symbol, SymbolKind

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "Always",
    "And",
    "Atom",
    "Bindings",
    "Comparison",
    "Composite",
    "Condition",
    "EvaluationError",
    "Expr",
    "FloorDiv",
    "FloorMod",
    "Geometric",
    "Maximum",
    "Minimum",
    "Monomial",
    "Operand",
    "Or",
    "Relation",
    "Select",
    "Symbol",
    "SymbolKind",
    "TruncDiv",
    "TruncMod",
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
    "negation",
    "not_equal",
    "select",
    "trunc_div",
    "trunc_mod",
]
