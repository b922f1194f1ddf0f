"""Conditions under which a kernel reaches a place: what they have in common, and the simplest.

Conditions are kept without negations: a comparison's negation is a comparison, and the negation of
what is unknown is unknown.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import gcd
from typing import ClassVar, Final, cast

import numpy as np

from kernelcast.expressions.polynomials import Compound, Expr, Operand
from kernelcast.expressions.symbols import Bindings, Truth


class Condition(Compound["Condition"]):
    """What holds or does not hold at a place of the kernel.

    Make one with `less`, `less_equal`, `equal`, `not_equal`, `conjunction` and `disjunction`.
    """

    __slots__ = ()

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data."""
        return True

    def evaluate(self, bindings: Bindings) -> Truth:
        """Tell whether it holds for these values of its symbols; what is unknown counts as met.

        The work-items for which the result is True include all for which the condition holds. As
        in C, what follows the deciding part of a conjunction need have no value.
        """
        raise NotImplementedError

    def negated(self) -> "Condition":
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Unknown(Condition):
    """A condition on data, which nobody knows before the kernel runs."""

    sources: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        return False

    @staticmethod
    def make(sources: tuple[str, ...]) -> "Unknown":
        return Unknown(sources)

    def evaluate(self, bindings: Bindings) -> Truth:
        return True

    def negated(self) -> Condition:
        return self

    def __str__(self) -> str:
        return f"unknown({', '.join(self.sources)})"


UNKNOWN = Unknown()


class Relation(StrEnum):
    NOT_NEGATIVE = ">="
    ZERO = "=="
    NOT_ZERO = "!="


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    expr: Expr
    """What is compared with zero; `compare` brings it into its simplest form."""
    relation: Relation

    @staticmethod
    def make(expr: Operand, relation: Relation) -> Condition:
        """Compare an expression with zero, in the simplest form that whole numbers allow."""
        expr = Expr.of(expr)
        if expr.constant_value is not None:
            return TRUE if Comparison(expr, relation).evaluate({}) else FALSE
        constant = expr.constant_term
        content = gcd(*(coefficient for monomial, coefficient in expr.products if monomial))
        if relation is not Relation.NOT_NEGATIVE:
            if constant % content:
                return FALSE if relation is Relation.ZERO else TRUE
            if expr.terms[0][1] < 0:
                content = -content
        return Comparison(expr.divide_terms(content), relation)

    def evaluate(self, bindings: Bindings) -> Truth:
        value = self.expr.evaluate(bindings)
        if self.relation is Relation.NOT_NEGATIVE:
            return value >= 0
        return cast("Truth", value == 0 if self.relation is Relation.ZERO else value != 0)

    @lru_cache(maxsize=1 << 14)  # noqa: B019 - joining conditions asks again and again
    def negated(self) -> Condition:
        if self.relation is Relation.NOT_NEGATIVE:
            return compare(-self.expr - 1, Relation.NOT_NEGATIVE)
        is_equality = self.relation is Relation.ZERO
        return Comparison(self.expr, Relation.NOT_ZERO if is_equality else Relation.ZERO)

    def __str__(self) -> str:
        terms = [(monomial, factor) for monomial, factor in self.expr.products if monomial]
        added = Expr({monomial: factor for monomial, factor in terms if factor > 0})
        taken = Expr({monomial: -factor for monomial, factor in terms if factor < 0})
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


compare = Comparison.make


def less(left: Operand, right: Operand) -> Condition:
    return compare(Expr.of(right) - left - 1, Relation.NOT_NEGATIVE)


def less_equal(left: Operand, right: Operand) -> Condition:
    return compare(Expr.of(right) - left, Relation.NOT_NEGATIVE)


def equal(left: Operand, right: Operand) -> Condition:
    return compare(Expr.of(left) - right, Relation.ZERO)


def not_equal(left: Operand, right: Operand) -> Condition:
    return compare(Expr.of(left) - right, Relation.NOT_ZERO)


@dataclass(frozen=True, slots=True, eq=False)
class _Joined(Condition):
    """Conditions joined by one word; their order is the program's and does not distinguish."""

    parts: tuple[Condition, ...]

    decides: ClassVar[bool]
    """What a part must be to settle it."""

    @property
    def arguments(self) -> tuple[Condition, ...]:
        return self.parts

    @classmethod
    def make(cls, *parts: Condition) -> Condition:
        """Flatten, drop repetitions and what does not matter; a contradiction decides."""
        settled = TRUE if cls.decides else FALSE
        kept: dict[Condition, None] = {}
        for part in parts:
            for one in part.parts if isinstance(part, cls) else (part,):
                if one == settled or (isinstance(one, Comparison) and one.negated() in kept):
                    return settled
                kept[one] = None
        return next(iter(kept)) if len(kept) == 1 else cls(tuple(kept))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Joined) or type(other) is not type(self):
            return NotImplemented
        return self.parts == other.parts or set(self.parts) == set(other.parts)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.parts)))

    @property
    def is_exact(self) -> bool:
        return all(part.is_exact for part in self.parts)

    def evaluate(self, bindings: Bindings) -> Truth:
        decides = self.decides
        result: Truth = not decides
        for part in self.parts:
            value: Truth
            if isinstance(result, np.ndarray):
                is_open = ~result if decides else result
                value = np.asarray(part.evaluate_where(is_open, bindings), dtype=np.bool_)
            else:
                value = part.evaluate(bindings)
            result = (result | value) if decides else (result & value)
            if result is decides:
                break
        return result

    def negated(self) -> Condition:
        make = conjunction if self.decides else disjunction
        return make(*(part.negated() for part in self.parts))

    def __str__(self) -> str:
        word = " or " if self.decides else " and "
        texts = (f"({one})" if isinstance(one, _Joined) else str(one) for one in self.parts)
        return word.join(texts) or str(not self.decides).lower()


class And(_Joined):
    """Conditions that hold together; of none, what always holds."""

    __slots__ = ()
    decides = False


class Or(_Joined):
    """Conditions of which at least one holds; of none, what never holds."""

    __slots__ = ()
    decides = True


TRUE: Final[Condition] = And(())
FALSE: Final[Condition] = Or(())

conjunction = And.make
disjunction = Or.make
