"""Records that hold expressions and conditions as plain values for JSON: as texts."""

from kernelcast.expressions import Expr
from kernelcast.expressions.conditions import Condition
from kernelcast.records.plain import CONVERTER, to_plain

__all__ = ["to_plain"]
CONVERTER.register_unstructure_hook(Expr, str)
CONVERTER.register_unstructure_hook(Condition, str)
