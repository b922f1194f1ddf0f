"""Sets of points, intervals of values and shares of iterations, against enumeration."""

import itertools
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import (
    TRUE,
    Condition,
    EvaluationError,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    less,
    less_equal,
    maximum,
)
from kernelcast.expressions.accesses import AccessKind, LoopFacts, MemoryAccess
from kernelcast.expressions.axes import bind_ids
from kernelcast.expressions.intervals import bound_pieces, bound_values
from kernelcast.expressions.loop_nest import IterationSpace, NestLoop
from kernelcast.expressions.point_sets import (
    SLAB,
    IslSpace,
    LaunchPoints,
    NotKnownError,
    PointSet,
    TooHardError,
    are_apart,
    make_context,
    relate_bytes,
    split_into_boxes,
)
from kernelcast.records.balance import SlabSpace
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from support.accesses import make_access
from support.expression_strategies import conditions, expressions
from support.loop_nests import count_loops
from support.strategies import ndranges

X, Y = (Symbol(SymbolKind.SCALAR, name) for name in "xy")
SIDE = range(-6, 7)
POINTS = [{X: x, Y: y} for x, y in itertools.product(SIDE, SIDE)]
BOX = [one for symbol in (X, Y) for one in (less_equal(-6, symbol), less(symbol, 7))]
MANY = 10_000_000


EXPRS = expressions((X, Y))
CONDITIONS = conditions((X, Y))


@given(guard=CONDITIONS, wanted=CONDITIONS)
def test_the_first_point_is_found(guard: Condition, wanted: Condition) -> None:
    found = PointSet([X, Y], [*BOX, guard], make_context(MANY)).find_first(wanted)
    both = conjunction(guard, wanted)
    assert found == next((one for one in POINTS if both.evaluate(one)), None)


@given(guard=CONDITIONS, expr=EXPRS)
def test_bounds_hold_every_value(guard: Condition, expr: Expr) -> None:
    """Bounds over one coordinate are those of the points, or wider where points lie apart."""
    low, high, exists = PointSet([X, Y], [*BOX, guard], make_context(MANY)).bound(expr, {X})
    for x, points in itertools.groupby(POINTS, key=lambda one: one[X]):
        values = [expr.evaluate(one) for one in points if guard.evaluate(one)]
        if values:
            assert exists.evaluate({X: x})
            assert low.evaluate({X: x}) <= min(values)
            assert high.evaluate({X: x}) >= max(values)


@given(some=EXPRS, other=EXPRS, guard=CONDITIONS, size=st.integers(1, 3))
def test_shared_bytes_are_seen(some: Expr, other: Expr, guard: Condition, size: int) -> None:
    """Points of two values of x that touch one byte are told from points that never do."""
    points = PointSet([X, Y], [*BOX, guard], make_context(MANY))
    parts = [relate_bytes(points, one, size, X) for one in (some, other)]
    owners: list[set[tuple[int, int]]] = [
        {
            (start + byte, one[X])
            for one in POINTS
            if guard.evaluate(one)
            for start in [int(expr.evaluate(one))]
            for byte in range(size)
        }
        for expr in (some, other)
    ]
    shared = any(a == b and x != z for a, x in owners[0] for b, z in owners[1])
    assert are_apart(parts[:1], parts[1:]) == (not shared)


@given(condition=CONDITIONS)
def test_boxes_divide_what_a_condition_leaves(condition: Condition) -> None:
    boxes = split_into_boxes(condition, {X: SIDE, Y: SIDE}, 8)
    if boxes is not None:
        for one in POINTS:
            assert sum(bool(box.evaluate(one)) for box in boxes) == bool(condition.evaluate(one))


@pytest.mark.parametrize(
    "expr",
    [
        Expr.symbol(X) * Y,
        Expr.symbol(Symbol(SymbolKind.SCALAR, "z")),
        floor_div(X, Y),
        Expr.symbol(X) * 2**70 + Y,
    ],
)
def test_other_expressions_are_not_known(expr: Expr) -> None:
    """Products of coordinates, other symbols and numbers beyond 64 bits have no set."""
    space = IslSpace([X, Y], make_context(MANY))
    with pytest.raises(NotKnownError):
        space.to_isl(expr)
    with pytest.raises(NotKnownError):
        space.to_isl_set(less(0, expr))
    assert space.to_isl_set(less(0, expr), approximates=True).is_equal(space.to_isl_set(TRUE))


def test_hard_questions_end() -> None:
    """Where numbers grow large isl gives up within seconds, and answers the next question."""
    lane = Symbol(SymbolKind.SCALAR, "lane")
    value = floor_mod(128 * Expr.symbol(Y), 36_000_000) + lane
    start = 2198 * Expr.symbol(X)
    limits = [less_equal(0, X), less(X, 2048), less_equal(start, Y), less(Y, start + 2198),
              less_equal(0, lane), less(lane, 128)]  # fmt: skip
    points = PointSet([X, Y, lane], limits, make_context())
    begin_s = time.process_time()
    with pytest.raises(TooHardError):
        points.bound(value, {X})
    assert time.process_time() - begin_s < 3
    assert points.bound(Expr.symbol(Y), {X})[0] == start


def _enumerate(ndrange: NDRange, access: MemoryAccess) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Give offset and global id of each time that a work-item does an access."""
    assert access.offset_bytes is not None
    bound, is_present = bind_ids(ndrange, range(ndrange.work_group_count))
    shape = is_present.shape
    for place in zip(*np.nonzero(is_present), strict=True):
        point = {
            symbol: int(np.broadcast_to(np.asarray(value), shape)[place])
            for symbol, value in bound.items()
        }
        trips = [one.trip_count.evaluate(point) for one in access.loops if one.trip_count]
        for number in range(int(trips[0])) if trips else [0]:
            point[Symbol(SymbolKind.LOOP, "k")] = number
            if access.guard.evaluate(point):
                ids = tuple(point[Symbol(SymbolKind.GLOBAL_ID, axis=axis)]
                            for axis in range(ndrange.dimensions))  # fmt: skip
                yield int(access.offset_bytes.evaluate(point)), ids


IDS = [Expr.symbol(Symbol(kind, axis=axis)) for axis in (0, 1)
       for kind in (SymbolKind.GLOBAL_ID, SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID,
                    SymbolKind.LOCAL_SIZE, SymbolKind.GLOBAL_SIZE)]  # fmt: skip


@given(
    ndrange=ndranges(max_groups=4, max_local=3),
    factors=st.lists(st.integers(-2, 3), min_size=10, max_size=10),
    guard=st.sampled_from(
        [TRUE, less(IDS[0], 5), equal(IDS[1], 0), less_equal(IDS[1], IDS[2]), less(IDS[5], IDS[0])]
    ),
    trips=st.sampled_from([None, Expr.constant(2), maximum(3 - IDS[2], 0)]),
    thickness=st.integers(1, 2),
)
def test_points_are_those_of_the_launch(
    ndrange: NDRange, factors: list[int], guard: Condition, trips: Expr | None, thickness: int
) -> None:
    """Bounds of each slab and the first work-item outside are those of an enumeration."""
    loop = LoopFacts(name="k", line=1, condition=TRUE, trip_count=trips, is_exact=True)
    loops = () if trips is None else (loop,)
    offset = sum((a * b for a, b in zip(factors, IDS, strict=True)), Expr.constant(0))
    offset = offset if trips is None else offset + 5 * Expr.symbol(Symbol(SymbolKind.LOOP, "k"))
    access = make_access("a", 4 * offset, AccessKind.STORE, guard=guard, loops=loops)
    touched = sorted(_enumerate(ndrange, access))
    space = SlabSpace(ndrange=ndrange, axis=ndrange.dimensions - 1, thickness=thickness)
    launch = LaunchPoints(ndrange=ndrange, scalars={}, slabs=space)
    [placed] = launch.place([access], make_context(MANY), is_exact=True)
    [(shift, _)] = placed.members
    low, high, exists = placed.points.bound(placed.offset_bytes + shift, {SLAB})
    local, first = ndrange.known_local_size[space.axis], ndrange.global_offset[space.axis]
    for slab in range(space.count):
        own = [at for at, ids in touched
               if (ids[space.axis] - first) // local // thickness == slab]  # fmt: skip
        assert bool(exists.evaluate({SLAB: slab})) == bool(own)
        if own:
            assert low.evaluate({SLAB: slab}) == own[0]
            assert high.evaluate({SLAB: slab}) == own[-1]
    whole = LaunchPoints(ndrange=ndrange, scalars={})
    for one in whole.place([access], make_context(MANY), is_exact=True):
        point = one.points.find_first(less(one.offset_bytes + shift, 8))
        outside = [ids for at, ids in touched if at < 8]
        assert (point is None) == (not outside)
        assert point is None or whole.find_global_id(point) in outside


EXPRESSIONS = expressions((X, Y), has_products=True, max_leaves=6)
RANGES = st.tuples(st.integers(-6, 6), st.integers(0, 4)).map(lambda one: (one[0], sum(one)))


@given(expression=EXPRESSIONS, x=RANGES, y=RANGES)
def test_intervals_hold_all_values(
    expression: Expr, x: tuple[int, int], y: tuple[int, int]
) -> None:
    low, high = bound_values(expression, {X: x, Y: y})
    for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
        value = expression.evaluate({X: a, Y: b})
        assert low <= int(value) <= high


def test_what_is_not_known_is_said() -> None:
    """Symbols without a range, and divisors that may be 0."""
    with pytest.raises(EvaluationError, match="nothing is known"):
        bound_values(Expr.symbol(X), {})
    with pytest.raises(EvaluationError, match="nothing is known"):
        bound_values(floor_div(5 * Expr.symbol(X), Expr.symbol(Y)), {X: (0, 1), Y: (-1, 2)})


NAMES = [Symbol(SymbolKind.SCALAR, one) for one in "wxyz"]
A, B, C, D = map(Expr.symbol, NAMES)


@given(
    factors=st.tuples(*[st.integers(-300, 300)] * 4),
    firsts=st.tuples(*[st.integers(-5, 5)] * 4),
    counts=st.tuples(*[st.integers(1, 4)] * 4),
    least_gap=st.integers(0, 40),
    most=st.integers(1, 40),
)
def test_pieces_hold_all_values(
    factors: tuple[int, ...],
    firsts: tuple[int, ...],
    counts: tuple[int, ...],
    least_gap: int,
    most: int,
) -> None:
    """Of sums, products of several symbols and divisions; they are no more than were allowed."""
    a, b, c, d = factors
    expr = a * B + b * A * C + c * floor_div(D, 3) + d * B * D + 7
    ranges = {
        name: (first, first + count - 1)
        for name, first, count in zip(NAMES, firsts, counts, strict=True)
    }
    ranges[NAMES[0]] = (firsts[0], firsts[0])
    pieces = bound_pieces(expr, ranges, least_gap=least_gap, most=most)
    assert len(pieces) <= most
    spans = [range(low, high + 1) for low, high in ranges.values()]
    for values in itertools.product(*spans):
        value = expr.evaluate(dict(zip(ranges, values, strict=True)))
        assert any(low <= value <= high for low, high in pieces)


def test_rows_far_apart_are_pieces() -> None:
    """A box of rows has a piece for each of them, layer by layer, no wider than a row."""
    offset = 4 * B + 1000 * C + 100_000 * D
    ranges = {NAMES[1]: (5, 14), NAMES[2]: (2, 3), NAMES[3]: (0, 1)}
    starts = [20 + 1000 * y + 100_000 * z for z in (0, 1) for y in (2, 3)]
    assert bound_pieces(offset, ranges, least_gap=100, most=100) == [
        (start, start + 36) for start in starts
    ]


J, I = (Symbol(SymbolKind.LOOP, name) for name in "ji")  # noqa: E741 - the loops' own names
N = Symbol(SymbolKind.SCALAR, "N")
DATA = Symbol(SymbolKind.CONTENT, "a[i] > 0")


def make_loops(
    start: int, step: int, *, is_triangle: bool
) -> tuple[tuple[NestLoop, ...], dict[Symbol, Expr]]:
    stop = Expr.symbol(J) + 1 if is_triangle else Expr.symbol(N)
    outer = ("j", Expr.constant(0), Expr.symbol(N), 1)
    return count_loops([outer, ("i", Expr.constant(start), stop, step)])


SQUARE, _ = make_loops(0, 1, is_triangle=False)
SHARED = st.builds(
    lambda a, b, c, kind: {
        "less": less(a * Expr.symbol(I) + b * Expr.symbol(J), c),
        "strided": equal(floor_mod(Expr.symbol(I) + b, 3), 0),
        "both": conjunction(less_equal(1, I), less(Expr.symbol(J), Expr.symbol(N) - 2)),
        "either": disjunction(less(I, c), less(J, Expr.symbol(I) + a).negated()),
        "row": less(J, c),
    }[kind],
    st.integers(-2, 3), st.integers(0, 3), st.integers(1, 20),
    st.sampled_from(("less", "strided", "both", "either", "row")),
)  # fmt: skip


@given(
    SHARED, st.integers(3, 20), st.integers(0, 2), st.integers(1, 3), st.booleans(),
    st.sampled_from((8, 24, 64, 80)),
)  # fmt: skip
def test_counts_what_enumeration_counts(
    condition: Condition, size: int, start: int, step: int, is_triangle: bool, stride: int
) -> None:
    ends = [j + 1 if is_triangle else size for j in range(size)]
    points = [(j, i) for j, end in enumerate(ends) for i in range(start, end, step)]
    met = [(j, i) for j, i in points if condition.evaluate({J: j, I: i, N: size})]
    loops, values = make_loops(start, step, is_triangle=is_triangle)
    space, condition = IterationSpace(loops, {N: size}), condition.substitute(values)
    assert space.share(condition) == pytest.approx(len(met) / len(points))
    rows = {j for j, _ in points}
    assert space.share_of_rows(condition) == pytest.approx(len({j for j, _ in met}) / len(rows))

    def count_lines(some: list[tuple[int, int]]) -> int:
        lines = {(j, (i - start) // step * stride // 64) for j, i in some}
        return len(lines if stride < 64 else some)

    found = space.share_of_lines(condition, stride, 64)
    assert found == pytest.approx(count_lines(met) / count_lines(points))


def test_decisions_hold_in_the_share_that_is_stated() -> None:
    """Random decisions of a share touch a line if one of its elements is touched."""
    decided = equal(DATA, 1)
    space = IterationSpace(SQUARE, {N: 64}, 0.25)
    assert space.share(decided) == 0.25
    assert space.share(conjunction(decided, less(I, 16))) == pytest.approx(0.25 * 0.25)
    assert space.share(disjunction(decided, decided.negated())) == 1
    assert space.share_of_lines(decided, 8, 64) == pytest.approx(1 - 0.75**8)
    assert space.share_of_lines(decided, 64, 64) == pytest.approx(0.25)
    masked = IterationSpace(SQUARE, {N: 64})
    assert masked.share(conjunction(decided, less(I, 16))) == pytest.approx(0.25)
    assert masked.share(TRUE) == 1


def test_what_is_not_affine_is_refused() -> None:
    space = IterationSpace(SQUARE, {N: 64})
    with pytest.raises(InputError, match="cannot be counted; expected comparisons of sums"):
        space.share(less(Expr.symbol(I) * Expr.symbol(J), 5))
