"""Quasi-affine expressions and conditions, the records made of them, and sets of whole numbers.

Expressions over ids, sizes, loop iterations and scalar arguments describe which addresses a kernel
touches, conditions under which it does; see `Expr` and `Condition`.
"""

from kernelcast.expressions.composites import Division as Division
from kernelcast.expressions.composites import Extremum as Extremum
from kernelcast.expressions.composites import Geometric as Geometric
from kernelcast.expressions.composites import Select as Select
from kernelcast.expressions.composites import bitwise as bitwise
from kernelcast.expressions.composites import floor_div as floor_div
from kernelcast.expressions.composites import floor_mod as floor_mod
from kernelcast.expressions.composites import geometric as geometric
from kernelcast.expressions.composites import maximum as maximum
from kernelcast.expressions.composites import minimum as minimum
from kernelcast.expressions.composites import select as select
from kernelcast.expressions.composites import trunc_div as trunc_div
from kernelcast.expressions.composites import trunc_mod as trunc_mod
from kernelcast.expressions.conditions import FALSE as FALSE
from kernelcast.expressions.conditions import TRUE as TRUE
from kernelcast.expressions.conditions import UNKNOWN as UNKNOWN
from kernelcast.expressions.conditions import And as And
from kernelcast.expressions.conditions import Comparison as Comparison
from kernelcast.expressions.conditions import Condition as Condition
from kernelcast.expressions.conditions import Or as Or
from kernelcast.expressions.conditions import Relation as Relation
from kernelcast.expressions.conditions import Unknown as Unknown
from kernelcast.expressions.conditions import compare as compare
from kernelcast.expressions.conditions import conjunction as conjunction
from kernelcast.expressions.conditions import disjunction as disjunction
from kernelcast.expressions.conditions import equal as equal
from kernelcast.expressions.conditions import less as less
from kernelcast.expressions.conditions import less_equal as less_equal
from kernelcast.expressions.conditions import not_equal as not_equal
from kernelcast.expressions.polynomials import Expr as Expr
from kernelcast.expressions.symbols import EvaluationError as EvaluationError
from kernelcast.expressions.symbols import Symbol as Symbol
from kernelcast.expressions.symbols import SymbolKind as SymbolKind
from kernelcast.expressions.symbols import Value as Value
