"""Counters derived from source, against closed forms and an interpreter."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.expressions import (
    TRUE,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    maximum,
    minimum,
    not_equal,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.axes import bind_ids
from kernelcast.expressions.kernel_facts import CounterReach, KernelFacts
from kernelcast.features.counting.static import (
    ASSUMED_TRIPS,
    BUDGET,
    bind_scalars,
    choose_work_groups,
    count_statically,
)
from kernelcast.records.arguments import ElementType, LocalArgument, ScalarArgument
from kernelcast.records.errors import NDRangeError
from kernelcast.records.ndrange import NDRange
from support.expression_strategies import conditions, expressions
from support.kernel_facts import facts_of
from support.strategies import ndranges

Nest = tuple[tuple[LoopFacts, ...], Condition]

G0, L0 = Symbol(SymbolKind.GLOBAL_ID), Symbol(SymbolKind.LOCAL_ID)
GROUP0, L1 = Symbol(SymbolKind.GROUP_ID), Symbol(SymbolKind.LOCAL_ID, axis=1)
N = Symbol(SymbolKind.SCALAR, "n")
K, J = Symbol(SymbolKind.LOOP, "k"), Symbol(SymbolKind.LOOP, "j")
LINE = NDRange(global_size=(128,), local_size=(64,))


def make_loop(symbol: Symbol, condition: Condition, count: Expr | None = None) -> LoopFacts:
    return LoopFacts(name=symbol.name, line=1, condition=condition, trip_count=count, is_exact=True)


def count_one(
    guard: Condition,
    loops: tuple[LoopFacts, ...],
    *,
    ndrange: NDRange = LINE,
    n: int = 0,
    budget: int = BUDGET,
) -> tuple[npt.NDArray[np.float64], bool]:
    facts = KernelFacts(
        kernel="k", line=1, parameters=(), local_arrays=(), blocks=(),
        reaches=(CounterReach(guard=guard, loops=loops),), accesses=(), loops=loops,
        gaps=(),
    )  # fmt: skip
    groups = range(ndrange.work_group_count)
    sample = count_statically(facts, ndrange, {"n": n}, groups, budget=budget)
    return sample.counts[..., 0].reshape(-1), sample.is_exact[0]


@pytest.mark.parametrize(
    ("body", "size", "local", "kind", "total"),
    [
        ("for (int k = 0; k <= i; k++) x[k] += 1;", (192,), (64,), "loop body", 192 * 193 / 2),
        ("if (i > 0 && j > 0 && i < w - 1 && j < h - 1) x[i + j * w] = 1;", (16, 8), (8, 4),
         "then", 14 * 6),
        ("local float t[256]; for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {"
         " if (get_local_id(0) < s) t[get_local_id(0)] += t[get_local_id(0) + s]; barrier(1); }",
         (512,), (256,), "then", 2 * 255),
    ],
)  # fmt: skip
def test_sums_have_closed_forms(
    body: str, size: tuple[int, ...], local: tuple[int, ...], kind: str, total: float
) -> None:
    """Work-items execute the area of a triangle, what a border leaves, half of a half in turn."""
    facts = facts_of(
        "kernel void k(global float *x, int w, int h) {"
        f" int i = get_global_id(0), j = get_global_id(1); {body} }}"
    )
    ndrange = NDRange(global_size=size, local_size=local)
    groups = range(ndrange.work_group_count)
    sample = count_statically(facts, ndrange, {"w": 16, "h": 8}, groups)
    last = [one.counter for one in facts.blocks if one.kind == kind][-1]
    assert sample.counts[..., last].sum() == total
    assert all(sample.is_exact)


def test_data_makes_counters_estimates_that_say_so() -> None:
    """A branch on data is taken half the time, a loop on data makes the assumed iterations."""
    facts = facts_of(
        "kernel void k(global int *x, int n) { int g = get_global_id(0); if (x[g] > 3) x[g] = 1;"
        " for (int i = 0; i < x[g]; i++) x[i] = 0; for (int i = 0; i < n; i++) x[i] = 2; }"
    )
    sample = count_statically(facts, LINE, {"n": 5}, [1])
    asked = [one.counter for one in facts.blocks if one.kind in {"then", "loop body"}]
    assert np.all(sample.counts[..., asked] == [0.5, ASSUMED_TRIPS, 5])
    assert [sample.is_exact[one] for one in asked] == [False, False, True]


def test_a_test_s_right_side_runs_once_more_than_the_body() -> None:
    """`while (i < n && i < m)` asks its second question for each iteration and for the last."""
    facts = facts_of(
        "kernel void k(global int *x, int n, int m) {"
        " int i = 0; while (i < n && i < m) { x[i] = 2; i++; } }"
    )
    sample = count_statically(facts, LINE, {"n": 9, "m": 4}, [0])
    body, *tests = (
        one.counter for kind in ("loop body", "loop condition")
        for one in facts.blocks if one.kind == kind
    )  # fmt: skip
    assert sample.counts[0, 0, [body, *tests]].tolist() == [4, 5, 5]


def test_what_a_test_on_data_reads_is_bounded_as_the_body_is() -> None:
    """A loop that data may end asks at most once more than it runs."""
    facts = facts_of(
        "kernel void k(global int *x, global int *y, int n) {"
        " for (int i = 0; i < n && x[i] > 3; i++) y[i] = 2; }"
    )
    asked, written = facts.accesses
    [[asking], [running]] = asked.loops, written.loops
    assert running.trip_count is not None
    assert asking.trip_count == running.trip_count + 1
    assert not asking.is_exact
    runs = [bool(asking.condition.evaluate({asking.symbol: at, N: 4})) for at in range(6)]
    assert runs == [True, True, True, True, True, False]


def test_nested_loops_too_long_to_enumerate_are_sampled_at_both_levels() -> None:
    inner = make_loop(J, less(J, K), maximum(Expr.symbol(K), 0))
    guard = not_equal(floor_mod(Expr.symbol(J), 2), 0)
    outer = make_loop(K, less(K, N), Expr.symbol(N))
    counts, is_exact = count_one(guard, (outer, inner), n=5000, budget=20_000)
    assert counts[0] == pytest.approx(5000**2 / 4, rel=0.05)
    assert not is_exact


def test_bounds_on_a_long_loop_are_solved_not_enumerated() -> None:
    loop = make_loop(K, less(K, N), Expr.symbol(N))
    guard = conjunction(less(G0, K), less(7 * Expr.symbol(K), 5 * Expr.symbol(N)))
    counts, is_exact = count_one(guard, (loop,), n=10**9)
    last = (5 * 10**9 - 1) // 7
    assert np.array_equal(counts, last - np.arange(128.0))
    assert is_exact


DOUBLED = geometric(1, 2, K, is_division=False)
LINEAR = make_loop(K, less(K, N), Expr.symbol(N))


@pytest.mark.parametrize(
    ("loop", "n", "least", "most"),
    [
        (make_loop(K, less(DOUBLED, Expr.symbol(N) + 1)), 2**60, 61, 61),
        (make_loop(K, less(DOUBLED, Expr.symbol(N) + 1)), 2**62 - 1, 62, 62),
        (make_loop(K, less(Expr.symbol(K) - K + G0, 1000)), 0, 0, math.inf),
        (LINEAR, 2**64 - 1, 2**61, math.inf),
    ],
)
def test_large_numbers_end_no_count(loop: LoopFacts, n: int, least: float, most: float) -> None:
    """Powers of two are tried up to where 64 bits end; what has no end has some count."""
    counts, _ = count_one(TRUE, (loop,), n=n, budget=1000)
    assert np.all(np.isfinite(counts) & (least <= counts) & (counts <= most))


def test_a_division_by_zero_is_no_error() -> None:
    """What cannot be evaluated is estimated."""
    loop = make_loop(K, less(K, N), floor_div(Expr.symbol(N), L0))
    counts, is_exact = count_one(equal(floor_mod(N, L0), 0), (loop,), n=4)
    assert np.all(counts == ASSUMED_TRIPS / 2)
    assert not is_exact


@given(ndrange=ndranges(), count=st.integers(1, 20), seed=st.integers(0, 3))
def test_sampled_work_groups_hold_the_first_and_the_last(
    ndrange: NDRange, count: int, seed: int
) -> None:
    chosen = choose_work_groups(ndrange, count, seed)
    total = ndrange.work_group_count
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == min(count, total)
    assert count == 1 or (chosen[0], chosen[-1]) == (0, total - 1)


def test_a_work_group_outside_is_refused() -> None:
    with pytest.raises(NDRangeError, match="work-group 2 is asked for; the index space has 0 to 1"):
        bind_ids(LINE, [0, 2])


def test_scalars_are_bound_by_name_and_lane() -> None:
    """Floating-point numbers and local memory are left out."""
    facts = facts_of("kernel void k(int n, float a, uint2 v, local int *t) {}")
    arguments = (
        ScalarArgument(element=ElementType("int32"), values=(-7,)),
        ScalarArgument(element=ElementType("float32"), values=(0.5,)),
        ScalarArgument(element=ElementType("uint32", 2), values=(3, 4)),
        LocalArgument(bytes=64),
    )
    assert bind_scalars(facts, arguments) == {"n": -7, "v.s0": 3, "v.s1": 4}


@st.composite
def loops(draw: st.DrawFn, symbol: Symbol, around: tuple[Symbol, ...]) -> LoopFacts:
    """Draw a loop that ends: counted by a formula, run, or with a geometric stride."""
    bound = minimum(draw(expressions(around)), 12)
    kind = draw(st.sampled_from(["formula", "simulated", "geometric"]))
    if kind == "geometric":
        value = geometric(bound, 2, symbol, is_division=True)
        return make_loop(symbol, less(0, value))
    step = draw(st.integers(1, 3))
    condition = less(step * Expr.symbol(symbol), bound)
    count = maximum(floor_div(bound - 1, step) + 1, 0) if kind == "formula" else None
    return make_loop(symbol, condition, count)


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """Draw up to two loops and a guard on what is known inside."""
    known = [G0, L0, L1, GROUP0, N]
    depth = draw(st.integers(0, 2))
    found: list[LoopFacts] = []
    for symbol in (K, J)[:depth]:
        found.append(draw(loops(symbol, tuple(known))))
        known.append(symbol)
    return tuple(found), draw(conditions(tuple(known)))


def interpret(guard: Condition, nest: tuple[LoopFacts, ...], bindings: dict[Symbol, int]) -> int:
    """Count as a computer would, one iteration after the other."""
    if not nest:
        return int(guard.evaluate(bindings))
    total, symbol = 0, Symbol(SymbolKind.LOOP, nest[0].name)
    inner = {**bindings, symbol: 0}
    while nest[0].condition.evaluate(inner):
        total += interpret(guard, nest[1:], inner)
        inner[symbol] += 1
    return total


@settings(max_examples=150)
@given(nest=nests(), ndrange=ndranges(max_groups=3, max_local=3), n=st.integers(-2, 9))
def test_counts_are_those_of_an_interpreter(nest: Nest, ndrange: NDRange, n: int) -> None:
    """Whatever the guard and the loops, each work-item counts as if it had been run."""
    found, guard = nest
    counts, is_exact = count_one(guard, found, ndrange=ndrange, n=n)
    bound, present = bind_ids(ndrange, range(ndrange.work_group_count))
    for place, (count, is_present) in enumerate(zip(counts, present.reshape(-1), strict=True)):
        if not is_present:
            assert count == 0
            continue
        own = {
            symbol: int(value.reshape(-1)[place]) if isinstance(value, np.ndarray) else value
            for symbol, value in bound.items()
        }
        assert count == interpret(guard, found, {**own, N: n})
    assert is_exact
