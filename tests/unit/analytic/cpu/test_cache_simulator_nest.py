"""Loop nests through the simulator: addresses, warm-up, volumes."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu.cache_simulator.hierarchy import (
    CacheHierarchy,
    CacheLevel,
    CacheRole,
)
from kernelcast.analytic.cpu.cache_simulator.nest import Effort, NestAddresses, simulate_nest
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess, NestArray, NestLoop
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts

REFERENCE = Path(__file__).parents[4] / "../shared/reference/kerncraft/cases.json"
NOTHING = OperationCounts(operations={}, memory={})
IVY_BRIDGE = CacheHierarchy(
    levels=(
        CacheLevel(name="L1", size_bytes=32768, ways=8),
        CacheLevel(name="L2", size_bytes=262144, ways=8),
        CacheLevel(name="L3", size_bytes=26214400, ways=16),
    )
)
SKYLAKE = CacheHierarchy(
    levels=(
        CacheLevel(name="L1", size_bytes=32768, ways=8),
        CacheLevel(name="L2", size_bytes=1048576, ways=16),
        CacheLevel(name="L3", size_bytes=28835840, ways=11, role=CacheRole.VICTIM),
    )
)
MACHINES = {"IvyBridgeEP_E5-2690v2": IVY_BRIDGE, "SkylakeSP_Gold-6148": SKYLAKE}


def loop(name: str) -> Expr:
    """Give a loop variable."""
    return Expr.symbol(Symbol(SymbolKind.LOOP, name))


def size(name: str) -> Expr:
    """Give a constant."""
    return Expr.symbol(Symbol(SymbolKind.SCALAR, name))


def make_nest(
    loops: list[tuple], arrays: dict[str, tuple], accesses: list[tuple], **constants: int
) -> LoopNest:
    """Make a nest of eight-byte accesses."""
    return LoopNest(
        name="nest",
        loops=tuple(
            NestLoop(name=name, start=Expr.of(start), stop=Expr.of(stop), step=step)
            for name, start, stop, step in loops
        ),
        arrays=tuple(
            NestArray(name=name, element_bytes=8, dimensions=tuple(map(Expr.of, sizes)))
            for name, sizes in arrays.items()
        ),
        accesses=tuple(
            NestAccess(array=array, offset_bytes=Expr.of(offset), is_store=is_store, bytes=8)
            for array, offset, is_store in accesses
        ),
        executed=NOTHING,
        constants=constants,
    )


def five_point() -> LoopNest:
    """Make the 2-D 5-point stencil."""
    n, m = size("N"), size("M")
    at = 8 * (loop("j") * n + loop("i"))
    row = 8 * n
    return make_nest(
        [("j", 1, m - 1, 1), ("i", 1, n - 1, 1)],
        {"a": (m, n), "b": (m, n)},
        [("a", at - 8, False), ("a", at + 8, False), ("a", at - row, False),
         ("a", at + row, False), ("b", at, True)],
    )  # fmt: skip


def test_addresses_are_those_of_the_references_test() -> None:
    """The first iteration of the 5-point stencil on 20 x 10 elements."""
    first = NestAddresses(five_point(), {"N": 10, "M": 20}).take(1)
    assert first.tolist() == [80, 96, 8, 168, 1688]


bounds = st.tuples(st.integers(-3, 3), st.integers(-2, 2))


@settings(max_examples=100, deadline=None)
@given(
    outer=st.tuples(st.integers(0, 4), st.integers(-4, 6), st.sampled_from((-2, -1, 1, 3))),
    start=bounds, stop=bounds, step=st.sampled_from((-3, -1, 1, 2)), chunk=st.integers(1, 7),
)  # fmt: skip
def test_triangles_and_any_step_run_as_in_c(
    outer: tuple, start: tuple, stop: tuple, step: int, chunk: int
) -> None:
    """Iterations come in C's order, however they are cut into chunks."""
    expected = [
        8 * (100 + 10 * j + i)
        for j in range(*outer)
        for i in range(start[0] + start[1] * j, stop[0] + stop[1] * j, step)
    ]
    nest = make_nest(
        [
            ("j", *outer),
            ("i", start[0] + start[1] * loop("j"), stop[0] + stop[1] * loop("j"), step),
        ],
        {"a": (1000,)},
        [("a", 8 * (100 + 10 * loop("j") + loop("i")), False)],
    )
    if not expected:
        with pytest.raises(InputError, match="never run"):
            NestAddresses(nest, {})
        return
    addresses = NestAddresses(nest, {})
    assert addresses.total == len(expected)
    found: list[int] = []
    while addresses.has_more:
        found += addresses.take(chunk).tolist()
    assert found == expected


def test_victim_caches_count_as_full_once_all_ways_were_filled() -> None:
    """Lines that go back and forth leave ways empty: that does not make a warm-up endless."""
    hierarchy = CacheHierarchy(
        levels=(
            CacheLevel(name="L1", size_bytes=4096, ways=4),
            CacheLevel(name="L2", size_bytes=32768, ways=8, role=CacheRole.VICTIM),
        )
    )
    found = simulate_nest(
        five_point(), hierarchy, {"N": 300, "M": 400}, effort=Effort(window_iterations=20_000)
    )
    assert found.notes == ()
    memory = found.levels[-1]
    assert (memory.loads, memory.stores) == pytest.approx((2, 1), rel=0.03)


def test_arrays_lie_behind_one_another() -> None:
    """By name, however they are declared, at multiples of the alignment; pointers fully."""
    nest = make_nest(
        [("i", 2, 5, 1)], {"c": (3,), "p": (), "a": (9,)},
        [("c", 8 * loop("i"), False), ("p", 8 * loop("i"), False)],
    )  # fmt: skip
    assert NestAddresses(nest, {}).take(1).tolist() == [72 + 16, 72 + 24 + 16]
    aligned = NestAddresses(nest, {}, alignment_bytes=64)
    assert aligned.take(1).tolist() == [128 + 16, 192 + 16]


def test_reads_come_array_by_array_before_writes() -> None:
    """However an iteration is written; reads of one array keep their order."""
    at = 8 * loop("i")
    nest = make_nest(
        [("i", 0, 3, 1)], {"a": (8,), "b": (8,)},
        [("b", at, True), ("b", at + 16, False), ("a", at + 8, False), ("b", at, False)],
    )  # fmt: skip
    addresses = NestAddresses(nest, {})
    assert addresses.take(1).tolist() == [8, 64 + 16, 64, 64]
    assert addresses.kinds[:, 0].tolist() == [0, 0, 0, 1]


CASES = [
    case
    for case in json.loads(REFERENCE.read_text())["cases"]
    if case["kernel"] == "2d-5pt" and "SIM" in case and case["defines"]["N"] in (100, 2000, 8000)
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['machine'][:3]}-{c['defines']['N']}")
def test_volumes_are_the_reference_simulators(case: dict) -> None:
    """Traffic of the 5-point stencil is within 2 % at every boundary, in each direction."""
    found = simulate_nest(five_point(), MACHINES[case["machine"]], case["defines"])
    for at, level in enumerate(found.levels):
        for key in ("loads", "stores", "hits", "misses", "evicts"):
            assert getattr(level, key) == pytest.approx(case["SIM"][key][at], rel=0.02, abs=1e-9)


def test_a_stream_loads_each_line_once() -> None:
    """A copy longer than all caches: 2 lines in, 1 out, at each level, exactly."""
    n = size("N")
    nest = make_nest(
        [("i", 0, n, 1)], {"a": (n,), "b": (n,)},
        [("b", 8 * loop("i"), False), ("a", 8 * loop("i"), True)], N=4_000_000,
    )  # fmt: skip
    found = simulate_nest(nest, IVY_BRIDGE)
    assert found.iterations == 8
    assert [one.lines for one in found.transfers()] == [3, 3, 3]


def test_a_cold_count_says_so() -> None:
    """Where the effort ends before the caches are full, a note tells."""
    sizes = {"N": 2000, "M": 2000}
    [note] = simulate_nest(
        five_point(), IVY_BRIDGE, sizes, effort=Effort(most_warm_capacities=0.1)
    ).notes
    assert "before the caches were full" in note
    assert simulate_nest(five_point(), IVY_BRIDGE, sizes).notes == ()


def test_full_caches_end_the_warm_up() -> None:
    """Rows that the first pass has yet to reach are misses, though all rows nearly fit."""
    level = CacheLevel(name="L1", size_bytes=1 << 20, ways=16)
    n = size("N")
    nest = make_nest([("i", 0, n, 1)], {"a": (n,)}, [("a", 8 * loop("i"), False)])
    hierarchy = CacheHierarchy(levels=(level,))
    window = Effort(window_iterations=8000)
    misses = [
        simulate_nest(nest, hierarchy, {"N": (1 << 17) + more}, effort=window).levels[0].misses
        for more in (0, 20_000)
    ]
    assert misses == [0, 1]


@pytest.mark.parametrize("shift", range(8))
def test_counts_begin_with_a_line(shift: int) -> None:
    """Wherever a loop begins, whole lines are counted: one miss and one write-back for each."""
    nest = make_nest(
        [("i", shift, size("N"), 1)], {"a": (size("N"),)}, [("a", 8 * loop("i"), True)]
    )
    level = CacheLevel(name="L1", size_bytes=4096, ways=8)
    found = simulate_nest(
        nest, CacheHierarchy(levels=(level,)), {"N": 20_000},
        effort=Effort(window_iterations=8 * 500),
    )  # fmt: skip
    assert (found.levels[0].misses, found.levels[0].evicts) == (1, 1)


def test_missing_constants_and_unknown_forms_are_named() -> None:
    """What lacks a value, or cannot be a bound, is an error that names it."""
    with pytest.raises(InputError, match="no value for M; give each one"):
        simulate_nest(five_point(), IVY_BRIDGE, {"N": 100})
    with pytest.raises(InputError, match="never run for M=1, N=100"):
        simulate_nest(five_point(), IVY_BRIDGE, {"N": 100, "M": 1})
    undeclared = make_nest([("i", 0, 9, 1)], {}, [("a", 8 * loop("i"), False)])
    with pytest.raises(InputError, match="a are accessed but not declared"):
        NestAddresses(undeclared, {})
