"""Minimum, maximum, and the value that depends on a condition."""

from dataclasses import dataclass

import numpy as np

from kernelcast.expressions.conditions import FALSE, TRUE, Comparison, Condition, Relation
from kernelcast.expressions.evaluation import (
    Bindings,
    EvaluationError,
    Value,
    evaluate_where,
)
from kernelcast.expressions.polynomials import (
    Composite,
    Expr,
    Operand,
)


@dataclass(frozen=True, slots=True)
class _Extremum(Composite):
    """One of two expressions, by their size."""

    left: Expr
    right: Expr

    def list_parts(self) -> tuple[Expr, Expr]:
        return self.left, self.right

    def rebuild(self, left: Expr, right: Expr) -> Expr:
        return _choose(type(self), left, right)

    def evaluate(self, bindings: Bindings) -> Value:
        left, right = self.left.evaluate(bindings), self.right.evaluate(bindings)
        is_least = isinstance(self, Minimum)
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right) if is_least else max(left, right)
        return np.minimum(left, right) if is_least else np.maximum(left, right)

    def __str__(self) -> str:
        return f"{'min' if isinstance(self, Minimum) else 'max'}({self.left}, {self.right})"


class Minimum(_Extremum):
    """The lesser of two expressions."""

    __slots__ = ()


class Maximum(_Extremum):
    """The greater of two expressions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Select(Composite):
    """One of two expressions, by a condition: C's ``condition ? then : otherwise``."""

    condition: Condition
    """What decides. Where it depends on data, the value cannot be evaluated."""
    then: Expr
    otherwise: Expr
    """The value where it holds, and where not."""

    def list_parts(self) -> tuple[Condition, Expr, Expr]:
        return self.condition, self.then, self.otherwise

    def rebuild(self, condition: Condition, then: Expr, otherwise: Expr) -> Expr:
        return select(condition, then, otherwise)

    @property
    def is_parameter(self) -> bool:
        return self.condition.is_exact and all(one.is_parameter for one in self.symbols())

    def is_quasi_affine(self) -> bool:
        return self.condition.is_exact and all(one.is_quasi_affine() for one in self.list_parts())

    def evaluate(self, bindings: Bindings) -> Value:
        if not self.condition.is_exact:
            msg = f"{self} depends on data; no values of symbols decide it"
            raise EvaluationError(msg)
        chosen = self.condition.evaluate(bindings)
        if not isinstance(chosen, np.ndarray):
            return (self.then if chosen else self.otherwise).evaluate(bindings)
        return np.where(
            chosen,
            evaluate_where(self.then, chosen, bindings),
            evaluate_where(self.otherwise, ~chosen, bindings),
        )

    def __str__(self) -> str:
        return f"({self.then} if {self.condition} else {self.otherwise})"


def minimum(left: Operand, right: Operand) -> Expr:
    """Give the lesser of two expressions."""
    return _choose(Minimum, left, right)


def maximum(left: Operand, right: Operand) -> Expr:
    """Give the greater of two expressions."""
    return _choose(Maximum, left, right)


def select(condition: Condition, then: Operand, otherwise: Operand) -> Expr:
    """Give one expression where a condition holds, another one where not."""
    one, other = Expr.of(then), Expr.of(otherwise)
    if condition == TRUE or one == other:
        return one
    if isinstance(condition, Comparison) and condition.relation is Relation.NOT_NEGATIVE:
        # ``a < b ? a : b`` and its like; which of two equal ones is taken does not matter.
        if (condition.expr - (other - one)).constant_value in (0, -1):
            return minimum(one, other)
        if (condition.expr - (one - other)).constant_value in (0, -1):
            return maximum(one, other)
    return other if condition == FALSE else Expr.atom(Select(condition, one, other))


def _choose(kind: type[_Extremum], left: Operand, right: Operand) -> Expr:
    # One order, numbers last, so that min(a, b) is min(b, a).
    one, other = sorted(
        (Expr.of(left), Expr.of(right)),
        key=lambda each: (each.constant_value is not None, str(each)),
    )
    gap = (one - other).constant_value
    if gap is None:
        return Expr.atom(kind(one, other))
    return one if gap == 0 or (gap < 0) == (kind is Minimum) else other
