"""Points with whole-number coordinates: the first of them, bounds of a value, shared places."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy

from kernelcast.expressions.conditions import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Condition,
    conjunction,
    less,
    less_equal,
)
from kernelcast.expressions.isl import (
    IslSpace,
    NotKnownError,
    TooHardError,
    answering,
    make_context,
)
from kernelcast.expressions.polynomials import Expr
from kernelcast.expressions.symbols import Symbol

_IN, _SET = islpy.dim_type.in_, islpy.dim_type.set


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between which values an expression lies, as expressions over some symbols."""

    low: Expr
    high: Expr
    """Least and greatest value, both taken."""
    exists: Condition
    """Holds where there is a value at all."""


class PointSet:
    """Points that conditions leave; isl raises `NotKnownError` beyond its number of steps."""

    def __init__(
        self,
        symbols: Sequence[Symbol],
        conditions: Iterable[Condition],
        context: islpy.Context,
        *,
        approximates: bool = False,
    ) -> None:
        self.context = context
        with answering(context):
            self._space = IslSpace(symbols, context)
            points = self._space.to_isl_set(TRUE)
        for one in conditions:
            for part in one.parts if isinstance(one, And) else (one,):
                try:
                    with answering(self.context):
                        met = self._space.to_isl_set(part, approximates=approximates)
                        left = points.intersect(met).coalesce()
                    if left.n_basic_set() > 32:
                        raise TooHardError
                    points = left
                except TooHardError:
                    if not approximates:
                        raise
        self._points = self._hull = points
        # Bounds of few pieces are taken piece by piece; of more, they are those of the hull.
        if approximates and points.n_basic_set() > 4:
            with answering(context):
                self._hull = islpy.Set.from_basic_set(points.simple_hull())

    def find_first(self, condition: Condition) -> dict[Symbol, int] | None:
        """Find the first point for which a condition holds as well; None if there is none."""
        with answering(self.context):
            points = self._points.intersect(self._space.to_isl_set(condition))
            if points.is_empty():
                return None
            point = points.lexmin().sample_point()
            return {
                symbol: point.get_coordinate_val(_SET, place).to_python()
                for place, symbol in enumerate(self._space.symbols)
            }

    def bound(self, expr: Expr, kept: Collection[Symbol]) -> Bounds:
        """Find between which values an expression lies.

        Where more points will do, bounds are wider if points lie apart.
        """
        with answering(self.context):
            values = self.map_to(expr, kept, self._hull)
            space = IslSpace([one for one in self._space.symbols if one in kept], self.context)
            domain = values.domain()
            low, high = (
                space.from_isl(one.get_pw_aff(0))
                for one in (values.lexmin_pw_multi_aff(), values.lexmax_pw_multi_aff())
            )
            return Bounds(low=low, high=high, exists=space.from_isl_set(domain))

    def list_values(self, symbol: Symbol) -> range:
        """Give the values from the least to the greatest that a coordinate takes."""
        found = self.bound(Expr.symbol(symbol), ())
        low, high = found.low.constant_value, found.high.constant_value
        if low is None or high is None or found.exists == FALSE:
            return range(0)
        return range(low, high + 1)

    def takes(self, expr: Expr) -> bool:
        """Tell whether an expression is quasi-affine over the coordinates."""
        try:
            with answering(self.context):
                self._space.to_isl(expr)
        except NotKnownError:
            return False
        return True

    def simplify(self, expr: Expr) -> Expr:
        """Write an expression as isl does: quotients and remainders that add up are one."""
        with answering(self.context):
            return self._space.from_isl(self._space.to_isl(expr))

    def map_to(
        self, expr: Expr, kept: Collection[Symbol], points: islpy.Set | None = None
    ) -> islpy.Map:
        """Relate values of some symbols to those that an expression takes."""
        values = (
            self._space.to_isl(expr)
            .as_map()
            .intersect_domain(self._points if points is None else points)
        )
        for place, symbol in reversed(list(enumerate(self._space.symbols))):
            if symbol not in kept:
                values = values.project_out(_IN, place, 1)
        return values


def relate_bytes(points: PointSet, offset: Expr, count: int, owner: Symbol) -> islpy.Map:
    """Relate the values of a symbol to the bytes that points touch."""
    with answering(points.context):
        first = points.map_to(offset, {owner})
        text = f"{{ [first] -> [byte] : first <= byte < first + {count} }}"
        return first.apply_range(islpy.Map.read_from_str(points.context, text))


def are_apart(some: Sequence[islpy.Map], others: Sequence[islpy.Map]) -> bool:
    """Tell whether no byte is related to one value here, and to another value there."""
    if not some or not others:
        return True
    with answering(some[0].get_ctx()):
        one, other = (reduce(islpy.Map.union, parts).coalesce() for parts in (some, others))
        both = one.apply_range(other.reverse())
        return bool(both.is_subset(islpy.Map.identity(both.get_space())))


def split_into_boxes(
    condition: Condition, limits: Mapping[Symbol, range], most: int
) -> list[Condition] | None:
    """Split into boxes, each a condition that bounds symbols; None for more than `most`."""
    space = IslSpace(tuple(limits), context := make_context())
    try:
        with answering(context):
            domain = space.to_isl_set(conjunction(*(
                part for symbol, values in limits.items()
                for part in (less_equal(values.start, symbol), less(symbol, values.stop))
            )))  # fmt: skip
            points = domain.intersect(space.to_isl_set(condition)).coalesce().make_disjoint()
            pieces = points.get_basic_sets()
            found = [space.from_isl_set(one.to_set().gist(domain)) for one in pieces]
    except NotKnownError:
        return None
    # Each part of a box bounds one symbol.
    is_box = len(found) <= most and all(
        part == TRUE
        or (isinstance(part, Comparison) and (linear := part.expr.as_linear()) is not None
            and len(linear[0]) == 1)
        for one in found for part in (one.parts if isinstance(one, And) else (one,))
    )  # fmt: skip
    return sorted(found, key=str) if is_box else None
