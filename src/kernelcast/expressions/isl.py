"""Expressions and conditions in islpy's terms, and back.

islpy's sets and piecewise quasi-affine expressions answer what sums of products cannot: whether
conditions have a solution, which is the first, between which bounds a value lies.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_, or_

import islpy

from kernelcast.expressions.composites import (
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Select,
    TruncDiv,
    TruncMod,
    floor_div,
    select,
)
from kernelcast.expressions.conditions import (
    Always,
    And,
    Comparison,
    Condition,
    Or,
    Relation,
    compare,
    conjunction,
    disjunction,
)
from kernelcast.expressions.polynomials import Atom, Expr
from kernelcast.expressions.symbols import Symbol

_IN, _DIV = islpy.dim_type.in_, islpy.dim_type.div
_LARGEST = 2**62


class NotKnownError(Exception):
    """A question has no answer, for what it asks of is not quasi-affine.

    It never leaves the package: who asks knows what to do without an answer.
    """


class TooHardError(NotKnownError):
    """A question took too many steps: more of that kind would cost more than the answers say."""


def make_context(most_operations: int = 10_000) -> islpy.Context:
    """Make what sets that meet have in common, and what bounds the work for a question.

    The solver's usual steps take 2 ms, or 0.15 s where numbers grow large.
    """
    context = islpy.Context()
    context.set_max_operations(most_operations)
    return context


@contextmanager
def answering(context: islpy.Context) -> Iterator[None]:
    """Begin a question; say in the package's words that isl gave up."""
    context.reset_operations()
    try:
        yield
    except islpy.Error as error:
        raise TooHardError from error


class IslSpace:
    """Points with a whole number for each of some symbols."""

    def __init__(self, symbols: Sequence[Symbol], context: islpy.Context) -> None:
        self.symbols = tuple(symbols)
        space = islpy.Space.set_alloc(context, 0, len(self.symbols))
        self._places = {symbol: place for place, symbol in enumerate(self.symbols)}
        self._zero = islpy.Aff.zero_on_domain(islpy.LocalSpace.from_space(space))
        self._space = space

    def to_isl(self, expr: Expr) -> islpy.PwAff:
        """Give the piecewise quasi-affine expression."""
        affine = self._zero
        others: list[islpy.PwAff] = []
        for monomial, coefficient in expr.products:
            if abs(coefficient) > _LARGEST:
                raise NotKnownError
            if not monomial:
                affine = affine.add_constant_val(coefficient)
            elif len(monomial) == 1 and isinstance(monomial[0], Symbol):
                if monomial[0] not in self._places:
                    raise NotKnownError
                affine = affine.set_coefficient_val(_IN, self._places[monomial[0]], coefficient)
            else:
                others.append(self._multiply(monomial).scale_val(coefficient))
        return reduce(islpy.PwAff.add, others, islpy.PwAff.from_aff(affine))

    def to_isl_set(self, condition: Condition, *, approximates: bool = False) -> islpy.Set:
        """Give the points for which a condition holds."""
        if isinstance(condition, And | Or):
            parts = (self.to_isl_set(one, approximates=approximates) for one in condition.parts)
            return reduce(and_ if isinstance(condition, And) else or_, parts)
        if isinstance(condition, Always):
            make = islpy.Set.universe if condition.holds else islpy.Set.empty
            return make(self._space)
        try:
            return self._compare(condition)
        except NotKnownError:
            if not approximates:
                raise
            return islpy.Set.universe(self._space)

    def from_isl(self, value: islpy.PwAff) -> Expr:
        """Give the expression; where it has no value, that of the first piece."""
        result: Expr | None = None
        for domain, piece in value.coalesce().get_pieces():
            one = self._read(piece)
            result = one if result is None else select(self.from_isl_set(domain), one, result)
        return result or Expr.constant(0)

    def from_isl_set(self, points: islpy.Set) -> Condition:
        """Give the condition that holds for these points and no others."""
        return disjunction(*(
            conjunction(*(
                compare(self._read(one.get_aff()),
                        Relation.ZERO if one.is_equality() else Relation.NOT_NEGATIVE)
                for one in part.get_constraints() if not one.is_div_constraint()
            ))
            for part in points.coalesce().compute_divs().get_basic_sets()
        ))  # fmt: skip

    def _compare(self, condition: Condition) -> islpy.Set:
        if not isinstance(condition, Comparison):
            raise NotKnownError
        value = self.to_isl(condition.expr)
        if condition.relation is Relation.NOT_NEGATIVE:
            return value.nonneg_set()
        return value.zero_set() if condition.relation is Relation.ZERO else value.non_zero_set()

    def _multiply(self, atoms: Iterable[Atom]) -> islpy.PwAff:
        """Multiply factors of which at most one is no number."""
        result: islpy.PwAff | None = None
        for atom in atoms:
            value = self.to_isl(Expr.symbol(atom)) if isinstance(atom, Symbol) else self._make(atom)
            if result is not None and not (result.is_cst() or value.is_cst()):
                raise NotKnownError
            result = value if result is None else result.mul(value)
        assert result is not None
        return result

    def _make(self, atom: Atom) -> islpy.PwAff:
        if isinstance(atom, Minimum | Maximum):
            left, right = self.to_isl(atom.left), self.to_isl(atom.right)
            return left.min(right) if isinstance(atom, Minimum) else left.max(right)
        if isinstance(atom, Select):
            holds = self.to_isl_set(atom.condition).indicator_function()
            return holds.cond(self.to_isl(atom.then), self.to_isl(atom.otherwise))
        divide = _DIVISIONS.get(type(atom))
        if divide is None:
            raise NotKnownError
        assert isinstance(atom, FloorDiv | FloorMod | TruncDiv | TruncMod)
        divisor = atom.denominator.constant_value
        if divisor is None or not 0 < divisor < _LARGEST:
            raise NotKnownError
        return divide(self.to_isl(atom.numerator), divisor)

    def _read(self, affine: islpy.Aff) -> Expr:
        """Give the expression that an affine one with divisions is, rounded down."""
        divisor = affine.get_denominator_val().to_python()
        total = Expr.constant(_number(affine.get_constant_val(), divisor))
        for place, symbol in enumerate(self.symbols):
            factor = _number(affine.get_coefficient_val(_IN, place), divisor)
            if factor:
                total = total + factor * Expr.symbol(symbol)
        for place in range(affine.dim(_DIV)):
            factor = _number(affine.get_coefficient_val(_DIV, place), divisor)
            if factor:
                total = total + factor * self._read(affine.get_div(place))
        return floor_div(total, divisor)


def _number(value: islpy.Val, divisor: int) -> int:
    """Give the numerator of a number over a divisor."""
    whole: int = value.mul(divisor).to_python()
    return whole


def _constant_like(value: islpy.PwAff, number: int) -> islpy.PwAff:
    space = islpy.LocalSpace.from_space(value.get_domain_space())
    return islpy.PwAff.from_aff(islpy.Aff.zero_on_domain(space).add_constant_val(number))


_DIVISIONS: Mapping[type, Callable[[islpy.PwAff, int], islpy.PwAff]] = {
    FloorDiv: lambda value, divisor: value.scale_down_val(divisor).floor(),
    FloorMod: lambda value, divisor: value.mod_val(divisor),
    TruncDiv: lambda value, divisor: value.tdiv_q(_constant_like(value, divisor)),
    TruncMod: lambda value, divisor: value.tdiv_r(_constant_like(value, divisor)),
}
