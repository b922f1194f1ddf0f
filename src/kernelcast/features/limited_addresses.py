"""Bounds of addresses by what guards and loops say.

A guard ``i < n`` says that ``n - 1 - i`` is at least 0 where an access is executed. An address plus
multiples of such limits is no less than the address: with ``4 * n - 4`` for ``4 * i`` nothing is
left of the id, and intervals (`kernelcast.expressions.intervals`) bound it as tightly as may be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.choices import Maximum
from kernelcast.expressions.comparisons import Comparison, Relation
from kernelcast.expressions.conditions import Condition
from kernelcast.expressions.divisions import FloorDiv, take_out
from kernelcast.expressions.intervals import Interval, bound_values
from kernelcast.expressions.junctions import And

_ONE = Expr.constant(1)


@dataclass(frozen=True, slots=True)
class _Bound:
    """An expression that is no less than another one, as long as its conditions hold."""

    expr: Expr
    factors: tuple[Expr, ...]
    """Of limits: at least 0."""
    divisors: tuple[Expr, ...]
    """Of loop ends: at least 1."""

    def give_most(self, ranges: Mapping[Symbol, Interval]) -> float:
        """Give its greatest value; infinite where its conditions may not hold."""
        is_sound = all(bound_values(one, ranges)[0] >= 0 for one in self.factors) and all(
            bound_values(one, ranges)[0] > 0 for one in self.divisors
        )
        return bound_values(self.expr, ranges)[1] if is_sound else float("inf")


class LimitedOffset:
    """Bounds of an access's offset by its guard and its loops."""

    def __init__(self, offset: Expr, access: MemoryAccess) -> None:
        limits = [*_list_limits(access)]
        self._high, self._negated_low = _tighten(offset, limits), _tighten(-offset, limits)

    def bound(self, ranges: Mapping[Symbol, Interval]) -> tuple[float, float]:
        """Give the least and the greatest offset; infinite where nothing is known.

        Raises
        ------
        EvaluationError
            If a symbol has no range.
        """
        return -self._negated_low.give_most(ranges), self._high.give_most(ranges)


def _tighten(expr: Expr, limits: list[tuple[Expr, Expr]]) -> _Bound:
    """Add multiples of limits that leave nothing of some product with ids."""
    factors, divisors = [], []
    for limit, divisor in limits:
        factor = _find_factor(expr, limit)
        if factor is not None:
            expr += factor * limit
            factors.append(factor)
            divisors.append(divisor)
    return _Bound(expr, tuple(factors), tuple(one for one in divisors if one is not _ONE))


def _find_factor(expr: Expr, limit: Expr) -> Expr | None:
    for monomial, coefficient in limit.products:
        if all(atom.is_parameter for atom in monomial):
            continue
        for product, amount in expr.products:
            times, rest = divmod(-amount, coefficient)
            left = None if times <= 0 or rest else take_out(product, monomial)
            if left is not None:
                return Expr({left: times})
    return None


def _list_limits(access: MemoryAccess) -> Iterator[tuple[Expr, Expr]]:
    """Give what is at least 0 where an access is executed, if the expression beside it is above."""
    for part in _list_parts(access.guard):
        if isinstance(part, Comparison) and part.relation is Relation.NOT_NEGATIVE:
            yield part.expr, _ONE
    for loop in access.loops:
        if loop.trip_count is not None:
            yield _limit_loop(loop, loop.trip_count)


def _list_parts(guard: Condition) -> tuple[Condition, ...]:
    return guard.parts if isinstance(guard, And) else (guard,)


def _limit_loop(loop: LoopFacts, trips: Expr) -> tuple[Expr, Expr]:
    """Limit an iteration's number; of trips that are a quotient its multiple, without rounding."""
    number = Expr.symbol(Symbol(SymbolKind.LOOP, loop.name))
    choice = trips.sole_atom
    if isinstance(choice, Maximum) and (choice.left.is_zero or choice.right.is_zero):
        # Where there are iterations, there are more than 0.
        trips = choice.left if choice.right.is_zero else choice.right
    last = trips - 1
    quotient = last.sole_atom
    if isinstance(quotient, FloorDiv):
        return quotient.numerator - quotient.denominator * number, quotient.denominator
    return last - number, _ONE
