"""Accesses that provably leave their buffer, each with the first work-item that does it."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import (
    EvaluationError,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    less,
)
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.choices import Maximum
from kernelcast.expressions.conditions import And, Comparison, Condition, Relation
from kernelcast.expressions.divisions import FloorDiv, take_out
from kernelcast.expressions.intervals import Interval, bound_values
from kernelcast.expressions.isl import NotKnownError, TooHardError, make_context
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.launch_points import LaunchPoints, PlacedAccesses
from kernelcast.features.touched_ranges import bind_launch, bind_loops
from kernelcast.records.ndrange import NDRange

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
        """Give the least and the greatest offset; infinite where nothing is known."""
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


_MOST_VALUES = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """An access outside of its buffer."""

    access: MemoryAccess
    work_item: tuple[int, ...]
    """Global id of one that does it."""
    offset_bytes: int
    """Where, from the start of the buffer."""
    size_bytes: int
    """What the buffer has."""

    def __str__(self) -> str:
        one = self.access
        item = ", ".join(f"{number:,}" for number in self.work_item)
        return (
            f"line {one.line}: {one.text} leaves the buffer {one.buffer}: work-item ({item}) is "
            f"at byte {self.offset_bytes:,}, and the buffer has {self.size_bytes:,}"
        )


class _Family:
    """Accesses to a buffer under one guard, in the same loops, that are constants apart."""

    def __init__(self, members: Sequence[tuple[MemoryAccess, Expr]]) -> None:
        self.members = tuple(access for access, _ in members)
        first, self._offset = members[0]
        constant = self._offset.constant_term
        begins = [offset.constant_term - constant for _, offset in members]
        self._before = -min(begins)
        self._behind = max(
            begin + one.bytes for begin, one in zip(begins, self.members, strict=True)
        )
        self._limited = LimitedOffset(self._offset, first)

    def stays_inside(self, size: int, ranges: Mapping[Symbol, Interval]) -> bool:
        """Tell quickly of most that none leaves a buffer of so many bytes."""
        try:
            known = bind_loops(self.members[0], ranges)
            return (
                known is None
                or self._fits(size, bound_values(self._offset, known))
                or self._fits(size, self._limited.bound(known))
            )
        except EvaluationError:
            return False

    def _fits(self, size: int, offset: tuple[float, float]) -> bool:
        return offset[0] >= self._before and offset[1] + self._behind <= size


class OverrunCheck:
    """Finds accesses of a kernel's launches that leave their buffers."""

    def __init__(self, facts: KernelFacts) -> None:
        families: dict[Hashable, list[tuple[MemoryAccess, Expr]]] = {}
        for one in facts.accesses:
            if one.is_exact and one.buffer is not None and (offset := one.offset_bytes) is not None:
                key = one.buffer, one.guard, one.loops, offset - offset.constant_term
                families.setdefault(key, []).append((one, offset))
        self._families = [_Family(one) for one in families.values()]

    def find(
        self, ndrange: NDRange, sizes: Mapping[str, int], scalars: Mapping[str, int]
    ) -> list[Overrun]:
        """Find accesses with exactly known addresses that leave their buffers, one per place."""
        ranges = bind_launch(ndrange, scalars)
        judged = [
            access
            for one in self._families
            if (size := sizes.get(one.members[0].buffer or "")) is not None
            and not one.stays_inside(size, ranges)
            for access in one.members
        ]
        return _look_closer(judged, ndrange, sizes, scalars) if judged else []


def _look_closer(
    judged: Sequence[MemoryAccess],
    ndrange: NDRange,
    sizes: Mapping[str, int],
    scalars: Mapping[str, int],
) -> list[Overrun]:
    """Find the first work-item of each access that leaves its buffer."""
    launch = LaunchPoints(ndrange=ndrange, scalars=scalars)
    found: dict[int, Overrun] = {}
    for placed in launch.place(judged, make_context(), is_exact=True):
        try:
            for access, point, offset in _list_outside(placed, sizes):
                found.setdefault(access.site, Overrun(
                    access=access,
                    work_item=launch.find_global_id(point),
                    offset_bytes=offset,
                    size_bytes=sizes[access.buffer or ""],
                ))  # fmt: skip
        except TooHardError:
            break
        except (NotKnownError, EvaluationError):
            continue
    return list(found.values())


def _list_outside(
    placed: PlacedAccesses, sizes: Mapping[str, int]
) -> Iterator[tuple[MemoryAccess, Mapping[Symbol, int], int]]:
    """Give the accesses that leave their buffers, where they do it first, and the offset there."""
    # Room before and behind each access; the least of them answers for all, mostly with "none".
    rooms = [(shift, sizes[one.buffer or ""] - shift - one.bytes) for shift, one in placed.members]
    if _find_outside(placed, *map(min, zip(*rooms, strict=True))) is None:
        return
    for (shift, access), room in zip(placed.members, rooms, strict=True):
        point = _find_outside(placed, *room)
        if point is not None:
            offset = (placed.offset_bytes + placed.curved_bytes).evaluate(point)
            assert isinstance(offset, int)
            yield access, point, offset + shift


def _find_outside(placed: PlacedAccesses, before: int, behind: int) -> dict[Symbol, int] | None:
    """Find the first point that has less room than it needs."""
    offset = placed.offset_bytes
    values = _find_curve(placed, before, behind)
    if values is None:
        return None
    curve = placed.curved_bytes.evaluate(values)
    assert isinstance(curve, int)
    outside = disjunction(less(offset, -before - curve), less(behind - curve, offset))
    fixed = (equal(symbol, value) for symbol, value in values.items())
    return placed.points.find_first(conjunction(*fixed, outside))


def _find_curve(placed: PlacedAccesses, before: int, behind: int) -> dict[Symbol, int] | None:
    """Choose values for what makes an offset more than affine, so that some point is outside."""
    symbols = [one for one in placed.symbols if one in placed.curved_bytes.symbols()]
    if not symbols:
        return {}
    ranges = [placed.points.list_values(one) for one in symbols]
    if math.prod(map(len, ranges)) > _MOST_VALUES:
        raise NotKnownError
    values = [np.arange(one.start, one.stop, dtype=np.int64) for one in ranges]
    bounds = placed.points.bound(placed.offset_bytes, symbols)
    grid = dict(zip(symbols, np.meshgrid(*values, indexing="ij"), strict=True))
    curve = placed.curved_bytes.evaluate(grid)
    is_outside = bounds.exists.evaluate(grid) & (
        (bounds.low.evaluate(grid) + curve < -before)
        | (bounds.high.evaluate(grid) + curve > behind)
    )
    places = np.argwhere(is_outside)
    if not places.size:
        return None
    return {symbol: int(one[tuple(places[0])]) for symbol, one in grid.items()}
