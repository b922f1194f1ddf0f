"""Conditions under which a kernel reaches a place: what they have in common, and the simplest.

Conditions are kept without negations: a comparison's negation is a comparison, and the negation of
what is unknown is unknown.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from kernelcast.expressions.evaluation import Bindings, Truth
from kernelcast.expressions.polynomials import Replacements
from kernelcast.expressions.symbols import Symbol


class Condition(ABC):
    """What holds or does not hold at a place of the kernel.

    Make one with `less`, `less_equal`, `equal`, `not_equal`, `conjunction`, `disjunction` and
    `negation`.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data."""

    @abstractmethod
    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols in it."""

    @abstractmethod
    def is_quasi_affine(self) -> bool:
        """Tell whether all expressions that it compares are quasi-affine."""

    @abstractmethod
    def evaluate(self, bindings: Bindings) -> Truth:
        """Tell whether it holds for these values of its symbols; what is unknown counts as met.

        The work-items for which the result is True include all for which the condition holds. As
        in C, what follows the deciding part of a conjunction need have no value.

        Parameters
        ----------
        bindings : Mapping of Symbol to int or ndarray of int64
            A value per symbol; arrays broadcast.

        Returns
        -------
        bool or ndarray of bool
            A bool if no array takes part.

        Raises
        ------
        EvaluationError
            If a symbol has no value, or a denominator is zero.
        """

    @abstractmethod
    def substitute(self, replacements: Replacements) -> "Condition":
        """Put expressions or numbers in the place of symbols, and simplify."""

    @abstractmethod
    def negated(self) -> "Condition":
        """Give the condition that holds where this one does not."""


class _WithoutSymbols(Condition):
    """A condition that no value of a symbol changes."""

    __slots__ = ()

    def symbols(self) -> frozenset[Symbol]:
        """Give the symbols in it: none."""
        return frozenset()

    def is_quasi_affine(self) -> bool:
        """Tell whether all its expressions are quasi-affine: it has none."""
        return True

    def substitute(self, replacements: Replacements) -> Condition:
        """Give itself: it has no symbols."""
        return self


@dataclass(frozen=True, slots=True)
class Always(_WithoutSymbols):
    """A condition that always holds, or never."""

    holds: bool

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data: so it is."""
        return True

    def evaluate(self, bindings: Bindings) -> Truth:
        """Tell whether it holds."""
        return self.holds

    def negated(self) -> Condition:
        """Give the other one."""
        return FALSE if self.holds else TRUE

    def __str__(self) -> str:
        return "true" if self.holds else "false"


TRUE = Always(True)
FALSE = Always(False)


@dataclass(frozen=True, slots=True)
class Unknown(_WithoutSymbols):
    """A condition on data, which nobody knows before the kernel runs."""

    sources: tuple[str, ...] = ()
    """Names of the buffers on which it depends."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it depends on data: it does."""
        return False

    def evaluate(self, bindings: Bindings) -> Truth:
        """Count as met."""
        return True

    def negated(self) -> Condition:
        """Give itself: its negation is as unknown, and counts as met too."""
        return self

    def __str__(self) -> str:
        return f"unknown({', '.join(self.sources)})"


UNKNOWN = Unknown()
