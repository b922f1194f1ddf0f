"""Polynomials with integer coefficients: the expressions themselves.

What is more than a sum of products (a division, a minimum, a choice) is a `Composite`: one factor
of a product, with expressions of its own inside.
"""

from collections.abc import Callable, ItemsView, Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from kernelcast.expressions.symbols import (
    Bindings,
    BoolArray,
    EvaluationError,
    Symbol,
    Truth,
    Value,
)

Operand: TypeAlias = "Expr | Symbol | int"
Replacements: TypeAlias = "Mapping[Symbol, Operand]"


Made = TypeVar("Made")


class Compound(Generic[Made]):
    __slots__ = ("__dict__",)  # of what is remembered
    __match_args__: tuple[str, ...]

    make: ClassVar[Callable[..., Any]]
    """Makes one of what `arguments` lists, and simplifies."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def list_parts(self) -> list[Any]:
        """List the symbols, expressions and conditions that it is made of."""
        return [one for one in self.arguments if isinstance(one, Compound)]

    def symbols(self) -> frozenset[Symbol]:
        return self._symbols

    @cached_property
    def _symbols(self) -> frozenset[Symbol]:
        return frozenset().union(*(one.symbols() for one in self.list_parts()))

    @property
    def is_parameter(self) -> bool:
        return all(symbol.is_parameter for symbol in self._symbols)

    def is_quasi_affine(self) -> bool:
        """Tell whether it is made of quasi-affine expressions and divides by parameters only."""
        return all(one.is_quasi_affine() for one in self.list_parts())

    @cached_property
    def extent(self) -> tuple[int, int]:
        """How many symbols and operators it is written with, and how deep they are nested."""
        sizes, depths = zip((0, 0), *(one.extent for one in self.list_parts()), strict=True)
        return 1 + sum(sizes), 1 + max(depths)

    def substitute(self, replacements: Replacements) -> Made:
        """Put expressions or numbers in the place of symbols, all at once, and simplify."""
        made: Made = self.make(*(
            one.substitute(replacements) if isinstance(one, Compound) else one
            for one in self.arguments
        ))  # fmt: skip
        return made

    def evaluate(self, bindings: Bindings) -> Value | Truth:
        raise NotImplementedError

    def evaluate_where(self, mask: BoolArray, bindings: Bindings) -> Value | Truth:
        """Evaluate where a mask is True; elsewhere, as an arm not taken, it need have no value."""
        try:
            return self.evaluate(bindings)
        except EvaluationError:
            values = {symbol: symbol.evaluate(bindings) for symbol in self.symbols()}
        arrays = {one: value for one, value in values.items() if isinstance(value, np.ndarray)}
        shape = np.broadcast_shapes(mask.shape, *(value.shape for value in arrays.values()))
        where = np.broadcast_to(mask, shape)
        filled = np.zeros(shape, dtype=np.int64)
        if where.any():
            some = {one: np.broadcast_to(value, shape)[where] for one, value in arrays.items()}
            filled[where] = self.evaluate({**values, **some})
        return filled


class Composite(Compound["Expr"]):
    """A factor that is no symbol: a division, a remainder, a minimum, a choice, a power."""

    __slots__ = ()

    text_needs_parentheses: ClassVar[bool] = False
    """Whether its text falls apart beside an operator."""

    def evaluate(self, bindings: Bindings) -> Value:
        raise NotImplementedError

    @cached_property
    def sort_key(self) -> str:
        """Places it among the factors of a product: parameters first, symbols before others."""
        return f"{0 if self.is_parameter else 1}~{self}"


Atom: TypeAlias = Symbol | Composite
Monomial: TypeAlias = tuple[Atom, ...]

_key_of = attrgetter("sort_key")


class Expr(Compound["Expr"]):
    """A whole number that depends on symbols: a sum of products.

    Make one from `Expr.constant` and `Expr.symbol` with ``+``, ``-``, ``*`` and the functions
    `floor_div`, `minimum`, `select` and so on. Expressions with the same terms are equal.
    """

    # NumPy's numbers would take an expression for an object array; so they raise TypeError.
    __array_ufunc__ = None

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self._terms = terms

    @staticmethod
    def constant(value: int) -> "Expr":
        return Expr({(): value} if value else {})

    @staticmethod
    def symbol(symbol: Symbol) -> "Expr":
        return Expr({(symbol,): 1})

    @staticmethod
    def of(operand: Operand) -> "Expr":
        """Make an expression of a number or a symbol; an expression stays itself."""
        if isinstance(operand, Expr):
            return operand
        if isinstance(operand, Symbol):
            return Expr.symbol(operand)
        if isinstance(operand, int):
            return Expr.constant(operand)
        raise TypeError(f"{operand!r} is no expression; give a whole number or a symbol")

    @cached_property
    def terms(self) -> tuple[tuple[Monomial, int], ...]:
        """Products and their coefficients, sorted: with variables, of parameters, the constant."""
        return tuple(sorted(self._terms.items(), key=_rank_term))

    @property
    def products(self) -> ItemsView[Monomial, int]:
        """Products and their coefficients in no order: sorting them costs more than all else."""
        return self._terms.items()

    @property
    def constant_value(self) -> int | None:
        if not self._terms:
            return 0
        return self._terms.get(()) if len(self._terms) == 1 else None

    @property
    def constant_term(self) -> int:
        return self._terms.get((), 0)

    @property
    def is_zero(self) -> bool:
        return not self._terms

    def list_parts(self) -> list[Atom]:
        return [atom for monomial in self._terms for atom in monomial]

    @property
    def sole_atom(self) -> Atom | None:
        """The atom, if the expression is one atom and nothing else."""
        if len(self._terms) != 1:
            return None
        [(monomial, coefficient)] = self._terms.items()
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    def __add__(self, other: Operand) -> "Expr":
        terms = self._terms.copy()
        for monomial, coefficient in Expr.of(other)._terms.items():
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Expr(terms)

    __radd__ = __add__

    def __neg__(self) -> "Expr":
        return Expr({monomial: -coefficient for monomial, coefficient in self._terms.items()})

    def __sub__(self, other: Operand) -> "Expr":
        return self + -Expr.of(other)

    def __rsub__(self, other: Operand) -> "Expr":
        return -self + other

    def __mul__(self, other: Operand) -> "Expr":
        if isinstance(other, int):
            return Expr({monomial: other * factor for monomial, factor in self.products if other})
        terms: dict[Monomial, int] = {}
        for one, factor in self._terms.items():
            for two, coefficient in Expr.of(other)._terms.items():
                product = _multiply(one, two) if one and two else one or two
                terms[product] = terms.get(product, 0) + factor * coefficient
        return Expr({product: total for product, total in terms.items() if total})

    __rmul__ = __mul__

    def divide_terms(self, divisor: int) -> "Expr":
        if divisor == 1:
            return self
        quotients = ((monomial, factor // divisor) for monomial, factor in self._terms.items())
        return Expr({monomial: factor for monomial, factor in quotients if factor})

    def __eq__(self, other: object) -> bool:
        return self._terms == other._terms if isinstance(other, Expr) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __reduce__(self) -> tuple[type["Expr"], tuple[dict[Monomial, int]]]:
        return Expr, (self._terms,)

    def __repr__(self) -> str:
        return f"<Expr {self}>"

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        atom = self.sole_atom
        if atom is not None or not self._terms:
            return str(atom or 0)
        # A text that begins with a minus reads badly: `n - x`, not `-x + n`.
        ordered = list(self.terms)
        first = next((at for at, (_, factor) in enumerate(ordered) if factor > 0), 0)
        ordered.insert(0, ordered.pop(first))
        text = ""
        for atoms, factor in ordered:
            texts = [f"({one})" if one.text_needs_parentheses else str(one) for one in atoms]
            if abs(factor) != 1 or not texts:
                texts.insert(0, str(abs(factor)))
            body = "*".join(texts)
            if text:
                text += f" {'-' if factor < 0 else '+'} {body}"
            else:
                text = f"-{body}" if factor < 0 else body
        return text

    def operand_text(self, *, as_factor: bool = False) -> str:
        """Write it so that it can stand beside an operator."""
        text, atom = str(self), self.sole_atom
        if atom is not None:
            return f"({text})" if atom.text_needs_parentheses else text
        is_loose = len(self._terms) > 1 or (as_factor and "*" in text)
        return f"({text})" if is_loose or text.startswith("-") else text

    def evaluate(self, bindings: Bindings) -> Value:
        total: Value = 0
        try:
            for monomial, coefficient in self._terms.items():
                product: Value = coefficient
                for atom in monomial:
                    product = product * atom.evaluate(bindings)
                total = total + product
        except OverflowError:
            msg = f"{self}: a coefficient exceeds 64 bits; give integers, not arrays"
            raise EvaluationError(msg) from None
        return total

    def substitute(self, replacements: Replacements) -> "Expr":
        if self.symbols().isdisjoint(replacements):
            return self
        total = Expr({})
        for monomial, coefficient in self._terms.items():
            product = Expr.constant(coefficient)
            for atom in monomial:
                product = product * atom.substitute(replacements)
            total = total + product
        return total

    def is_quasi_affine(self) -> bool:
        """Tell whether it is affine but for choices and for divisions by parameters.

        Each product holds at most one factor that changes within a launch, and what is inside
        divisions, minima and choices is quasi-affine as well.
        """
        return all(
            sum(not atom.is_parameter for atom in monomial) <= 1
            and all(atom.is_quasi_affine() for atom in monomial)
            for monomial in self._terms
        )

    def as_linear(self) -> tuple[dict[Symbol, int], int] | None:
        """Give coefficients and constant if it is a sum of symbols times numbers."""
        coefficients: dict[Symbol, int] = {}
        for monomial, coefficient in self.terms:
            if not monomial:
                continue
            if len(monomial) > 1 or not isinstance(monomial[0], Symbol):
                return None
            coefficients[monomial[0]] = coefficient
        return coefficients, self.constant_term

    def split(self, symbol: Symbol) -> "tuple[Expr, Expr] | None":
        """Split into what does not depend on a symbol, and the symbol's factor, if it is a sum."""
        start, slope = Expr({}), Expr({})
        for monomial, factor in self._terms.items():
            holding = [atom for atom in monomial if symbol in atom.symbols()]
            if not holding:
                start = start + Expr({monomial: factor})
            elif holding == [symbol]:
                rest = tuple(atom for atom in monomial if atom is not symbol)
                slope = slope + Expr({rest: factor})
            else:
                return None
        return start, slope


# Merging two sorted products costs 0.7 us, the cache 0.1 us; kernels repeat few products.
@lru_cache(maxsize=1 << 14)
def _multiply(one: Monomial, two: Monomial) -> Monomial:
    return tuple(sorted(one + two, key=_key_of))


def _rank_term(term: tuple[Monomial, int]) -> tuple[int, list[str], int, list[str]]:
    monomial, _ = term
    variables = [atom.sort_key for atom in monomial if not atom.is_parameter]
    rank = 0 if variables else 1 if monomial else 2
    return rank, variables, len(monomial), [atom.sort_key for atom in monomial]
