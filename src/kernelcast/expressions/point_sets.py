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

_MOST_PIECES = 4
"""Of which bounds are taken piece by piece; of more, they are those of the hull."""
_MOST_BASIC_SETS = 32
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
    """Points that conditions leave.

    Parameters
    ----------
    symbols : sequence of Symbol
        The coordinates, in the order by which the first point is found.
    conditions : iterable of Condition
        Over them.
    context : islpy.Context
        Of `make_context`.
    approximates : bool
        Whether more points will do: conditions that are not quasi-affine count as met.

    Raises
    ------
    NotKnownError
        By the constructor and every method, if conditions or expressions are not quasi-affine or
        isl needs more steps than the context allows.

    Examples
    --------
    >>> from kernelcast.expressions import SymbolKind, less, less_equal
    >>> from kernelcast.expressions.isl import make_context
    >>> x, y = (Symbol(SymbolKind.SCALAR, name) for name in "xy")
    >>> triangle = [less_equal(0, x), less(x, y), less(y, 10)]
    >>> points = PointSet([x, y], triangle, make_context())
    >>> found = points.find_first(less(20, Expr.symbol(x) + 2 * Expr.symbol(y)))
    >>> found[x], found[y]
    (3, 9)
    >>> bounds = points.bound(3 * Expr.symbol(y), {x})
    >>> print(bounds.low, "to", bounds.high, "where", bounds.exists)
    3*x + 3 to 27 where x >= 0 and x < 9
    """

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
                    points = self._cut(points, part, approximates=approximates)
                except TooHardError:
                    if not approximates:
                        raise
        self._points = self._hull = points
        if approximates and points.n_basic_set() > _MOST_PIECES:
            with answering(context):
                self._hull = islpy.Set.from_basic_set(points.simple_hull())

    def _cut(self, points: islpy.Set, condition: Condition, *, approximates: bool) -> islpy.Set:
        """Keep the points for which a condition holds; too hard if they fall into many pieces."""
        with answering(self.context):
            met = self._space.to_isl_set(condition, approximates=approximates)
            left = points.intersect(met).coalesce()
        if left.n_basic_set() > _MOST_BASIC_SETS:
            raise TooHardError
        return left

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

        Parameters
        ----------
        kept : collection of Symbol
            Symbols of which the bounds are expressions.
        """
        with answering(self.context):
            values = self._relate(expr, kept, self._hull)
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
        """Write an expression as isl does: quotients and remainders that add up are put together.

        Examples
        --------
        >>> from kernelcast.expressions import SymbolKind, floor_div, floor_mod
        >>> from kernelcast.expressions.isl import make_context
        >>> x = Symbol(SymbolKind.SCALAR, "x")
        >>> points = PointSet([x], [], make_context())
        >>> print(points.simplify(8 * floor_div(x, 4) + 2 * floor_mod(x, 4)))
        2*x
        """
        with answering(self.context):
            return self._space.from_isl(self._space.to_isl(expr))

    def map_to(self, expr: Expr, kept: Collection[Symbol]) -> islpy.Map:
        """Relate values of some symbols to those that an expression takes."""
        return self._relate(expr, kept, self._points)

    def _relate(self, expr: Expr, kept: Collection[Symbol], points: islpy.Set) -> islpy.Map:
        values = self._space.to_isl(expr).as_map().intersect_domain(points)
        for place, symbol in reversed(list(enumerate(self._space.symbols))):
            if symbol not in kept:
                values = values.project_out(_IN, place, 1)
        return values


def relate_bytes(points: PointSet, offset: Expr, count: int, owner: Symbol) -> islpy.Map:
    """Relate the values of a symbol to the bytes that points touch.

    Parameters
    ----------
    points : PointSet
        Who touches them.
    offset : Expr
        The first byte that a point touches.
    count : int
        How many bytes it touches.
    owner : Symbol
        Of the points.
    """
    with answering(points.context):
        first = points.map_to(offset, {owner})
        text = f"{{ [first] -> [byte] : first <= byte < first + {count} }}"
        return first.apply_range(islpy.Map.read_from_str(points.context, text))


def are_apart(some: Sequence[islpy.Map], others: Sequence[islpy.Map]) -> bool:
    """Tell whether no byte is related to one value here, and to another value there.

    Parameters
    ----------
    some, others : sequence of islpy.Map
        Of `relate_bytes`, all with one context.

    Raises
    ------
    NotKnownError
        If isl needs more steps than the context allows.
    """
    if not some or not others:
        return True
    with answering(some[0].get_ctx()):
        one, other = (reduce(islpy.Map.union, parts).coalesce() for parts in (some, others))
        both = one.apply_range(other.reverse())
        return bool(both.is_subset(islpy.Map.identity(both.get_space())))


def split_into_boxes(
    condition: Condition, limits: Mapping[Symbol, range], most: int
) -> list[Condition] | None:
    """Divide the points for which a condition holds into disjoint boxes.

    Parameters
    ----------
    limits : mapping of Symbol to range
        Values of its symbols; boxes do not repeat them.
    most : int
        How many boxes there may be.

    Returns
    -------
    list of Condition or None
        One per box, which bounds symbols; None if there are no such boxes.

    Examples
    --------
    >>> from kernelcast.expressions import SymbolKind, equal, disjunction
    >>> x, y = (Symbol(SymbolKind.SCALAR, name) for name in "xy")
    >>> border = disjunction(equal(x, 0), equal(y, 9))
    >>> for one in split_into_boxes(border, {x: range(10), y: range(10)}, 8) or []:
    ...     print(one)
    x == 0 and y < 9
    y == 9
    """
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
    is_box = len(found) <= most and all(map(_bounds_symbols, found))
    return sorted(found, key=str) if is_box else None


def _bounds_symbols(condition: Condition) -> bool:
    """Tell whether a condition bounds symbols, each by a number."""
    parts = condition.parts if isinstance(condition, And) else (condition,)
    return all(
        one == TRUE
        or (isinstance(one, Comparison) and (linear := one.expr.as_linear()) is not None
            and len(linear[0]) == 1)
        for one in parts
    )  # fmt: skip
