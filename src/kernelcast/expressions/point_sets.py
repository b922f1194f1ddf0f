"""Points with whole-number coordinates, in islpy's terms: those at which a launch touches memory.

islpy's sets and piecewise quasi-affine expressions answer what sums of products cannot: which point
is the first, between which bounds a value lies, whether bytes are shared.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_, or_
from typing import Final, TypeAlias

import islpy
import numpy as np

from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.composites import (
    Division,
    Extremum,
    Select,
    floor_div,
    minimum,
    select,
)
from kernelcast.expressions.conditions import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Condition,
    Or,
    Relation,
    compare,
    conjunction,
    disjunction,
    less,
    less_equal,
)
from kernelcast.expressions.polynomials import Atom, Expr, Operand
from kernelcast.expressions.symbols import IntArray, Symbol, SymbolKind
from kernelcast.records.balance import SlabSpace
from kernelcast.records.ndrange import NDRange

_IN, _SET, _DIV = islpy.dim_type.in_, islpy.dim_type.set, islpy.dim_type.div
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
    def __init__(self, symbols: Sequence[Symbol], context: islpy.Context) -> None:
        self.symbols = tuple(symbols)
        space = islpy.Space.set_alloc(context, 0, len(self.symbols))
        self._places = {symbol: place for place, symbol in enumerate(self.symbols)}
        self._zero = islpy.Aff.zero_on_domain(islpy.LocalSpace.from_space(space))
        self._space = space

    def to_isl(self, expr: Expr) -> islpy.PwAff:
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
                # At most one factor may be no number.
                factors = [self._make(atom) for atom in monomial]
                if sum(not one.is_cst() for one in factors) > 1:
                    raise NotKnownError
                others.append(reduce(islpy.PwAff.mul, factors).scale_val(coefficient))
        return reduce(islpy.PwAff.add, others, islpy.PwAff.from_aff(affine))

    def to_isl_set(self, condition: Condition, *, approximates: bool = False) -> islpy.Set:
        if isinstance(condition, And | Or):
            parts = (self.to_isl_set(one, approximates=approximates) for one in condition.parts)
            if isinstance(condition, And):
                return reduce(and_, parts, islpy.Set.universe(self._space))
            return reduce(or_, parts, islpy.Set.empty(self._space))
        try:
            if not isinstance(condition, Comparison):
                raise NotKnownError
            value = self.to_isl(condition.expr)
        except NotKnownError:
            if not approximates:
                raise
            return islpy.Set.universe(self._space)
        if condition.relation is Relation.NOT_NEGATIVE:
            return value.nonneg_set()
        return value.zero_set() if condition.relation is Relation.ZERO else value.non_zero_set()

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

    def _make(self, atom: Atom) -> islpy.PwAff:
        if isinstance(atom, Symbol):
            return self.to_isl(Expr.symbol(atom))
        if isinstance(atom, Extremum):
            left, right = self.to_isl(atom.left), self.to_isl(atom.right)
            return left.min(right) if atom.is_least else left.max(right)
        if isinstance(atom, Select):
            holds = self.to_isl_set(atom.condition).indicator_function()
            return holds.cond(self.to_isl(atom.then), self.to_isl(atom.otherwise))
        divisor = atom.denominator.constant_value if isinstance(atom, Division) else None
        if not isinstance(atom, Division) or divisor is None or not 0 < divisor < _LARGEST:
            raise NotKnownError
        value = self.to_isl(atom.numerator)
        if atom.is_floor:
            return value.mod_val(divisor) if atom.is_remainder else (
                value.scale_down_val(divisor).floor())  # fmt: skip
        number = islpy.PwAff.from_aff(self._zero.add_constant_val(divisor))
        return value.tdiv_r(number) if atom.is_remainder else value.tdiv_q(number)

    def _read(self, affine: islpy.Aff) -> Expr:
        """Give the expression that an affine one with divisions is, rounded down."""
        divisor = affine.get_denominator_val().to_python()
        parts = [
            (affine.get_constant_val(), Expr.constant(1)),
            *((affine.get_coefficient_val(_IN, place), Expr.symbol(symbol))
              for place, symbol in enumerate(self.symbols)),
            *((factor, self._read(affine.get_div(place))) for place in range(affine.dim(_DIV))
              if not (factor := affine.get_coefficient_val(_DIV, place)).is_zero()),
        ]  # fmt: skip
        terms = (part * factor.mul(divisor).to_python() for factor, part in parts)
        return floor_div(sum(terms, Expr.constant(0)), divisor)


def _list_conjuncts(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, And) else (condition,)


class PointSet(IslSpace):
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
            super().__init__(symbols, context)
            points = self.to_isl_set(TRUE)
        for one in conditions:
            for part in _list_conjuncts(one):
                try:
                    with answering(self.context):
                        met = self.to_isl_set(part, approximates=approximates)
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
            points = self._points.intersect(self.to_isl_set(condition))
            if points.is_empty():
                return None
            point = points.lexmin().sample_point()
            return {
                symbol: point.get_coordinate_val(_SET, place).to_python()
                for place, symbol in enumerate(self.symbols)
            }

    def bound(self, expr: Expr, kept: Collection[Symbol]) -> tuple[Expr, Expr, Condition]:
        """Find an expression's least and greatest value, over some symbols, and where it has any;
        where more points will do, bounds are wider if points lie apart."""
        with answering(self.context):
            values = self.map_to(expr, kept, self._hull)
            space = IslSpace([one for one in self.symbols if one in kept], self.context)
            domain = values.domain()
            low, high = (
                space.from_isl(one.get_pw_aff(0))
                for one in (values.lexmin_pw_multi_aff(), values.lexmax_pw_multi_aff())
            )
            return low, high, space.from_isl_set(domain)

    def list_values(self, operand: Operand) -> range:
        """Give the values from the least to the greatest that an expression takes."""
        least, greatest, exists = self.bound(Expr.of(operand), ())
        low, high = least.constant_value, greatest.constant_value
        if low is None or high is None or exists == FALSE:
            return range(0)
        return range(low, high + 1)

    def takes(self, expr: Expr) -> bool:
        try:
            with answering(self.context):
                self.to_isl(expr)
        except NotKnownError:
            return False
        return True

    def simplify(self, expr: Expr) -> Expr:
        """Write an expression as isl does: quotients and remainders that add up are one."""
        with answering(self.context):
            return self.from_isl(self.to_isl(expr))

    def map_to(
        self, expr: Expr, kept: Collection[Symbol], points: islpy.Set | None = None
    ) -> islpy.Map:
        """Relate values of some symbols to those that an expression takes."""
        values = (
            self.to_isl(expr).as_map().intersect_domain(self._points if points is None else points)
        )
        for place, symbol in reversed(list(enumerate(self.symbols))):
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
        isinstance(part, Comparison) and (linear := part.expr.as_linear()) is not None
        and len(linear[0]) == 1
        for one in found for part in _list_conjuncts(one)
    )  # fmt: skip
    return sorted(found, key=str) if is_box else None


SLAB: Final = Symbol(SymbolKind.LOOP, "slab of the index space")
"""Stands for the number of a slab."""
_PARTS: Final = {SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.LOCAL_SIZE}
_IDS: Final = (SymbolKind.GROUP_ID, SymbolKind.LOCAL_ID, SymbolKind.GLOBAL_ID)
_Reach: TypeAlias = tuple[tuple[Condition, ...], tuple[LoopFacts, ...]]
"""By which points and within which loops an access is reached."""


@dataclass(frozen=True, slots=True)
class PlacedAccesses:
    """Accesses that differ by a number of bytes only, and the points that do them."""

    points: PointSet
    """Over `SLAB` if there are slabs, ids of the slowest dimension first, and loops."""
    offset_bytes: Expr
    """What the accesses' offsets have in common, over these symbols: the quasi-affine part."""
    curved_bytes: Expr
    """The other part, to be added: products of ids, powers."""
    members: tuple[tuple[int, MemoryAccess], ...]

    def bound_each(
        self, ranges: Mapping[Symbol, range]
    ) -> tuple[dict[Symbol, IntArray], IntArray, IntArray]:
        """Find each combination of some symbols' values that points have, and the bounds of the
        offsets there."""
        bounds = self.points.bound(self.offset_bytes, ranges)
        steps = (np.arange(one.start, one.stop, dtype=np.int64) for one in ranges.values())
        grid = dict(zip(ranges, np.meshgrid(*steps, indexing="ij"), strict=True))
        exists = np.broadcast_to(bounds[2].evaluate(grid), tuple(map(len, ranges.values())))
        some = {symbol: values[exists] for symbol, values in grid.items()}
        count = int(np.count_nonzero(exists))
        low, high = (
            np.broadcast_to(np.asarray((one + self.curved_bytes).evaluate(some)), count)
            for one in bounds[:2]
        )
        return some, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPoints:
    ndrange: NDRange
    scalars: Mapping[str, int]
    slabs: SlabSpace | None = None

    def place(
        self, accesses: Iterable[MemoryAccess], context: islpy.Context, *, is_exact: bool
    ) -> Iterator[PlacedAccesses]:
        """Place accesses: only those of known points if exact, else unknown guards count as met."""
        find_reach = cache(self._find_reach)
        # Accesses that differ by a number only are one, with these numbers.
        groups: dict[tuple[Expr, _Reach], list[tuple[int, MemoryAccess]]] = {}
        for access in accesses:
            trips = [one.trip_count for one in access.loops]
            if access.offset_bytes is None or (is_exact and None in trips):
                if is_exact:
                    continue
                raise NotKnownError
            symbols = access.offset_bytes.symbols().union(
                access.guard.symbols(), *(one.symbols() for one in trips if one is not None)
            )
            split = frozenset(one.axis for one in symbols if one.kind in _PARTS)
            replaced, conditions = find_reach(access.guard, access.loops, split)
            offset = access.offset_bytes.substitute(replaced)
            shift, reach = offset.constant_term, (conditions, access.loops)
            groups.setdefault((offset - shift, reach), []).append((shift, access))
        for (offset, (conditions, around)), members in groups.items():
            used = offset.symbols().union(*(one.symbols() for one in conditions))
            loops = {one.symbol for one in around}
            if is_exact and not all(one.kind in _IDS or one in loops for one in used):
                continue
            ids = {one for one in used if one.kind in _IDS}
            others = sorted(used - ids, key=lambda one: one.sort_key)
            for one in [one for one in ids if one.kind is not SymbolKind.GLOBAL_ID]:
                ids |= {Symbol(kind, axis=one.axis) for kind in _IDS[:2]}
            slabs = self.slabs
            if slabs is not None and not any(one.axis == slabs.axis for one in ids):
                ids.add(Symbol(SymbolKind.GLOBAL_ID, axis=slabs.axis))
            ordered = sorted(ids, key=lambda one: (-one.axis, _IDS.index(one.kind)))
            coordinates = (*([SLAB] if slabs is not None else []), *ordered, *others)
            # Last: half of what "or" and "!=" leave lies outside of the limits, dropped at once.
            limits = (*self._limit(coordinates), *conditions)
            try:
                points = PointSet(coordinates, limits, context, approximates=not is_exact)
            except NotKnownError:
                if not is_exact:
                    raise
                continue
            curved = Expr({
                monomial: factor
                for monomial, factor in offset.products
                if not (len(monomial) == 1 and isinstance(monomial[0], Symbol))
                and not points.takes(Expr({monomial: factor}))
            })  # fmt: skip
            yield PlacedAccesses(points, offset - curved, curved, tuple(members))

    def find_global_id(self, point: Mapping[Symbol, int]) -> tuple[int, ...]:
        """Give a work-item's global id, the least in dimensions that the point does not name."""
        found = []
        for axis in range(self.ndrange.dimensions):
            offset = self.ndrange.global_offset[axis]
            group, local, whole = (Symbol(kind, axis=axis) for kind in _IDS)
            start = point.get(group, 0) * self.ndrange.known_local_size[axis]
            found.append(point.get(whole, offset + start + point.get(local, 0)))
        return tuple(found)

    def find_group(self, axis: int, symbols: Collection[Symbol]) -> Expr | None:
        """Express the number of the work-group along an axis by symbols; None if none tells it."""
        group, item = (Expr.symbol(Symbol(kind, axis=axis)) for kind in (_IDS[0], _IDS[2]))
        one = list_axes(self.ndrange)[axis]
        ways = (group, floor_div(item - one.offset, one.local))
        return next((each for each in ways if each.symbols() <= {*symbols}), None)

    def _find_reach(
        self, guard: Condition, loops: tuple[LoopFacts, ...], split: frozenset[int]
    ) -> tuple[dict[Symbol, Operand], tuple[Condition, ...]]:
        """Say what stands for symbols where ids of some dimensions are split, and which points have
        a guard and loops."""
        small = {name: value for name, value in self.scalars.items() if abs(value) < 2**62}
        replaced: dict[Symbol, Operand] = {**bind_names(small)}
        for axis in list_axes(self.ndrange):
            group_id, local_id, global_id = (Symbol(kind, axis=axis.number) for kind in _IDS)
            start = Expr.symbol(group_id) * axis.local
            is_even = axis.items % axis.local == 0
            replaced |= axis.bind_sizes(
                axis.local if is_even else minimum(axis.local, axis.items - start)
            )
            if axis.number in split:
                replaced[global_id] = start + local_id + axis.offset
        conditions = [guard.substitute(replaced)]
        for loop in loops:
            conditions.append(less_equal(0, loop.symbol))
            if loop.trip_count is not None:
                conditions.append(less(loop.symbol, loop.trip_count.substitute(replaced)))
        return replaced, tuple(one for one in conditions if one != TRUE)

    def _limit(self, symbols: Sequence[Symbol]) -> Iterator[Condition]:
        axes = list_axes(self.ndrange)
        for symbol in symbols:
            if symbol.kind not in _IDS:
                continue
            axis = axes[symbol.axis]
            first, count, unit = {
                SymbolKind.GROUP_ID: (0, axis.groups, 1),
                SymbolKind.LOCAL_ID: (0, axis.local, 0),
                SymbolKind.GLOBAL_ID: (axis.offset, axis.items, axis.local),
            }[symbol.kind]
            yield from (less_equal(first, symbol), less(symbol, first + count))
            if symbol.kind is SymbolKind.GROUP_ID and axis.items % axis.local:
                local_id = Symbol(SymbolKind.LOCAL_ID, axis=symbol.axis)
                yield less(axis.local * Expr.symbol(symbol) + local_id, axis.items)
            if unit and self.slabs is not None and self.slabs.axis == symbol.axis:
                width = self.slabs.thickness * unit
                start = first + width * Expr.symbol(SLAB)
                yield from (less_equal(start, symbol), less(symbol, start + width))
        if self.slabs is not None:
            yield from (less_equal(0, SLAB), less(SLAB, self.slabs.count))
