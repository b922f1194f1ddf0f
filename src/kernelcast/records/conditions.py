"""Conditions under which a kernel reaches a place; see `Condition`.

Expressions hold conditions and conditions hold expressions, so both live in
`kernelcast.records.quasi_affine`; this is the conditions' front door.
"""

from kernelcast.records.quasi_affine.comparisons import (
    Comparison,
    Relation,
    compare,
    equal,
    less,
    less_equal,
    not_equal,
)
from kernelcast.records.quasi_affine.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Always,
    Condition,
    Unknown,
)
from kernelcast.records.quasi_affine.json_form import condition_from_json, condition_to_json
from kernelcast.records.quasi_affine.junctions import And, Or, conjunction, disjunction, negation

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "Always",
    "And",
    "Comparison",
    "Condition",
    "Or",
    "Relation",
    "Unknown",
    "compare",
    "condition_from_json",
    "condition_to_json",
    "conjunction",
    "disjunction",
    "equal",
    "less",
    "less_equal",
    "negation",
    "not_equal",
]
