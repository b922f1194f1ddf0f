"""Comparisons of expressions, kept as one expression's relation to zero."""

from dataclasses import dataclass
from enum import StrEnum
from math import gcd
from typing import cast

from kernelcast.expressions.conditions import FALSE, TRUE, Condition
from kernelcast.expressions.evaluation import Bindings, Truth
from kernelcast.expressions.polynomials import Expr, Monomial, Operand, Replacements
from kernelcast.expressions.symbols import Symbol


class Relation(StrEnum):
    """How a comparison's expression relates to zero."""

    NOT_NEGATIVE = ">="
    ZERO = "=="
    NOT_ZERO = "!="


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """An expression's relation to zero."""

    expr: Expr
    """What is compared with zero; `compare` brings it into its simplest form."""
    relation: Relation
    """At least zero, zero, or not zero."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data: so it is."""
        return True

    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols in it."""
        return self.expr.symbols()

    def is_quasi_affine(self) -> bool:
        """Tell whether the expression is quasi-affine."""
        return self.expr.is_quasi_affine()

    def evaluate(self, bindings: Bindings) -> Truth:
        """Tell whether it holds for these values of its symbols."""
        value = self.expr.evaluate(bindings)
        if self.relation is Relation.NOT_NEGATIVE:
            return value >= 0
        return cast("Truth", value == 0 if self.relation is Relation.ZERO else value != 0)

    def substitute(self, replacements: Replacements) -> Condition:
        """Put expressions or numbers in the place of symbols, and simplify."""
        return compare(self.expr.substitute(replacements), self.relation)

    def negated(self) -> Condition:
        """Give the comparison that holds where this one does not."""
        if self.relation is Relation.NOT_NEGATIVE:
            return compare(-self.expr - 1, Relation.NOT_NEGATIVE)
        is_equality = self.relation is Relation.ZERO
        return Comparison(self.expr, Relation.NOT_ZERO if is_equality else Relation.ZERO)

    def __str__(self) -> str:
        added, taken = _split_by_sign(self.expr)
        constant = self.expr.constant_term
        if self.relation is not Relation.NOT_NEGATIVE:
            return f"{added} {self.relation} {taken - constant}"
        if taken.is_zero or (taken.is_parameter and not added.is_parameter):
            if constant == -1 and not taken.is_zero:
                return f"{added} > {taken}"
            return f"{added} >= {taken - constant}"
        # Kernels say `x < 10`, not `x <= 9`; but `x <= n`, not `x < n + 1`.
        if constant < 0 or added.is_zero:
            return f"{taken} < {added + constant + 1}"
        return f"{taken} <= {added + constant}"


def compare(expr: Operand, relation: Relation) -> Condition:
    """Compare an expression with zero, in the simplest form that whole numbers allow.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> n = Symbol(SymbolKind.SCALAR, "n")
    >>> print(compare(4 * Expr.symbol(n) - 5, Relation.NOT_NEGATIVE))
    n >= 2
    """
    expr = Expr.of(expr)
    value = expr.constant_value
    if value is not None:
        return TRUE if Comparison(expr, relation).evaluate({}) else FALSE
    constant = expr.constant_term
    content = gcd(*(coefficient for monomial, coefficient in expr.products if monomial))
    if relation is not Relation.NOT_NEGATIVE:
        if constant % content:
            return FALSE if relation is Relation.ZERO else TRUE
        if expr.terms[0][1] < 0:
            content = -content
    if content != 1:
        expr = _divide(expr, content)
    return Comparison(expr, relation)


def less(left: Operand, right: Operand) -> Condition:
    """Compare: left < right.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> from kernelcast.expressions import negation
    >>> x, n = Symbol(SymbolKind.GLOBAL_ID, axis=0), Symbol(SymbolKind.SCALAR, "n")
    >>> print(less(x, n), "--", negation(less(x, n)))
    global_id(0) < n -- global_id(0) >= n
    """
    return compare(Expr.of(right) - left - 1, Relation.NOT_NEGATIVE)


def less_equal(left: Operand, right: Operand) -> Condition:
    """Compare: left <= right."""
    return compare(Expr.of(right) - left, Relation.NOT_NEGATIVE)


def equal(left: Operand, right: Operand) -> Condition:
    """Compare: left == right."""
    return compare(Expr.of(left) - right, Relation.ZERO)


def not_equal(left: Operand, right: Operand) -> Condition:
    """Compare: left != right."""
    return compare(Expr.of(left) - right, Relation.NOT_ZERO)


def _divide(expr: Expr, divisor: int) -> Expr:
    """Divide all coefficients, the constant rounded down."""
    return Expr(
        {
            monomial: quotient
            for monomial, coefficient in expr.products
            if (quotient := coefficient // divisor)
        }
    )


def _split_by_sign(expr: Expr) -> tuple[Expr, Expr]:
    """Give the terms that are added and those that are taken away, without the constant."""
    added: dict[Monomial, int] = {}
    taken: dict[Monomial, int] = {}
    for monomial, coefficient in expr.products:
        if monomial:
            (added if coefficient > 0 else taken)[monomial] = abs(coefficient)
    return Expr(added), Expr(taken)
