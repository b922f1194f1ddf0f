"""Conditions joined by "and" and "or"."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelcast.expressions.comparisons import Comparison
from kernelcast.expressions.conditions import FALSE, TRUE, Condition
from kernelcast.expressions.evaluation import Bindings, Truth, evaluate_where
from kernelcast.expressions.polynomials import Replacements
from kernelcast.expressions.symbols import Symbol


@dataclass(frozen=True, slots=True, eq=False)
class _Joined(Condition):
    """Conditions joined by one word; their order is the program's and does not distinguish."""

    parts: tuple[Condition, ...]

    decides: ClassVar[bool]
    """What a part must be to settle it."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Joined) or type(other) is not type(self):
            return NotImplemented
        return self.parts == other.parts or set(self.parts) == set(other.parts)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.parts)))

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data."""
        return all(part.is_exact for part in self.parts)

    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols in it."""
        return frozenset().union(*(part.symbols() for part in self.parts))

    def is_quasi_affine(self) -> bool:
        """Tell whether all expressions that it compares are quasi-affine."""
        return all(part.is_quasi_affine() for part in self.parts)

    def evaluate(self, bindings: Bindings) -> Truth:
        """Evaluate part after part until one, element by element, settles it."""
        decides = self.decides
        result: Truth = not decides
        for part in self.parts:
            value: Truth
            if isinstance(result, np.ndarray):
                is_open = ~result if decides else result
                value = np.asarray(evaluate_where(part, is_open, bindings), dtype=np.bool_)
            else:
                value = part.evaluate(bindings)
            result = (result | value) if decides else (result & value)
            if result is decides:
                break
        return result

    def substitute(self, replacements: Replacements) -> Condition:
        """Put expressions or numbers in the place of symbols, and simplify."""
        make = disjunction if self.decides else conjunction
        return make(*(part.substitute(replacements) for part in self.parts))

    def negated(self) -> Condition:
        """Give what holds where this does not: each part negated, joined by the other word."""
        make = conjunction if self.decides else disjunction
        return make(*(part.negated() for part in self.parts))

    def __str__(self) -> str:
        word = " or " if self.decides else " and "
        return word.join(f"({one})" if isinstance(one, _Joined) else str(one) for one in self.parts)


class And(_Joined):
    """Conditions that hold together."""

    __slots__ = ()
    decides = False


class Or(_Joined):
    """Conditions of which at least one holds."""

    __slots__ = ()
    decides = True


def conjunction(*parts: Condition) -> Condition:
    """Join conditions that hold together; none of them makes `TRUE`."""
    kept = _join(parts, And, neutral=TRUE, deciding=FALSE)
    return kept[0] if len(kept) == 1 else And(kept)


def disjunction(*parts: Condition) -> Condition:
    """Join conditions of which one holds; none of them makes `FALSE`."""
    kept = _join(parts, Or, neutral=FALSE, deciding=TRUE)
    return kept[0] if len(kept) == 1 else Or(kept)


def negation(part: Condition) -> Condition:
    """Negate a condition; what is unknown stays unknown.

    Examples
    --------
    >>> from kernelcast.expressions import Symbol, SymbolKind
    >>> from kernelcast.expressions import Unknown, equal, less
    >>> x = Symbol(SymbolKind.SCALAR, "x")
    >>> print(negation(conjunction(less(0, x), equal(x, 2), Unknown(("mask",)))))
    x < 1 or x != 2 or unknown(mask)
    """
    return part.negated()


def _join(
    parts: Iterable[Condition], kind: type[_Joined], *, neutral: Condition, deciding: Condition
) -> tuple[Condition, ...]:
    """Flatten, drop repetitions and what does not matter; a contradiction decides."""
    kept: dict[Condition, None] = {}
    for part in parts:
        for one in part.parts if isinstance(part, kind) else (part,):
            if one == deciding or (isinstance(one, Comparison) and one.negated() in kept):
                return (deciding,)
            if one != neutral:
                kept[one] = None
    return tuple(kept) or (neutral,)
