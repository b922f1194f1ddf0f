"""Counters derived from made-up guards and loops, against an interpreter that runs them."""

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    floor_div,
    floor_mod,
    geometric,
    less,
    maximum,
    minimum,
    not_equal,
)  # fmt: skip  # fmt: skip
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.kernel_facts import CounterReach, KernelFacts
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.features.counting.static import count_statically
from kernelcast.records.ndrange import NDRange
from support.strategies import ndranges

Symbols = tuple[Symbol, ...]
Nest = tuple[tuple[LoopFacts, ...], Condition]

G0, L0 = Symbol(SymbolKind.GLOBAL_ID), Symbol(SymbolKind.LOCAL_ID)
GROUP0, L1 = Symbol(SymbolKind.GROUP_ID), Symbol(SymbolKind.LOCAL_ID, axis=1)
N = Symbol(SymbolKind.SCALAR, "n")
K, J = Symbol(SymbolKind.LOOP, "k"), Symbol(SymbolKind.LOOP, "j")


def make_loop(symbol: Symbol, condition: Condition, count: Expr | None = None) -> LoopFacts:
    """Make a loop of which all is known."""
    return LoopFacts(name=symbol.name, line=1, condition=condition, trip_count=count, is_exact=True)


def count_one(
    guard: Condition, loops: tuple[LoopFacts, ...], ndrange: NDRange, n: int
) -> tuple[npt.NDArray[np.float64], bool]:
    """Count how often all work-items reach a place with these loops and this guard."""
    facts = KernelFacts(
        kernel="k", line=1, parameters=(), local_arrays=(), blocks=(), counter_count=1,
        reaches=(CounterReach(counter=0, guard=guard, loops=loops),), accesses=(), loops=loops,
        gaps=(),
    )  # fmt: skip
    sample = count_statically(facts, ndrange, {"n": n}, range(ndrange.work_group_count))
    return sample.counts[..., 0].reshape(-1), sample.is_exact[0]


def affine(symbols: Symbols) -> st.SearchStrategy[Expr]:
    """Draw sums of some symbols."""
    numbers = st.sampled_from([0, 0, 0, 1, -1, 2, -3])
    return st.builds(
        lambda factors, constant: sum(
            (factor * Expr.symbol(one) for factor, one in zip(factors, symbols, strict=True)),
            Expr.constant(constant),
        ),
        st.tuples(*[numbers for _ in symbols]),
        st.integers(-6, 12),
    )


def expressions(symbols: Symbols) -> st.SearchStrategy[Expr]:
    """Draw expressions with divisions and extremes."""
    simple = affine(symbols)
    return st.one_of(
        simple,
        st.builds(minimum, simple, simple),
        st.builds(maximum, simple, simple),
        st.builds(floor_mod, simple, st.integers(2, 4)),
        st.builds(floor_div, simple, st.integers(2, 4)),
    )


def guards(symbols: Symbols) -> st.SearchStrategy[Condition]:
    """Draw conditions."""
    one = st.one_of(
        st.builds(less, expressions(symbols), expressions(symbols)),
        st.builds(equal, affine(symbols), affine(symbols)),
        st.builds(not_equal, affine(symbols), affine(symbols)),
    )
    joined = st.lists(one, max_size=3)
    return st.one_of(
        joined.map(lambda parts: conjunction(*parts)),
        joined.filter(bool).map(lambda parts: disjunction(*parts)),
    )


@st.composite
def loops(draw: st.DrawFn, symbol: Symbol, around: Symbols) -> LoopFacts:
    """Draw a loop that ends: counted by a formula, run, or with a geometric stride."""
    bound = minimum(draw(affine(around)), 12)
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
    return tuple(found), draw(guards(tuple(known)))


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
    counts, is_exact = count_one(guard, found, ndrange, n)
    items = bind_ids(ndrange, range(ndrange.work_group_count))
    for place, (count, is_present) in enumerate(
        zip(counts, items.is_present.reshape(-1), strict=True)
    ):
        if not is_present:
            assert np.isnan(count)
            continue
        own = {
            symbol: int(value.reshape(-1)[place]) if isinstance(value, np.ndarray) else value
            for symbol, value in items.bindings.items()
        }
        assert count == interpret(guard, found, {**own, N: n})
    assert is_exact
