from dataclasses import replace

import pytest

from kernelcast.analytic.gpu.limiters.assess import count_slots
from kernelcast.analytic.gpu.limiters.demands import (
    count_atomics,
    count_local_ways,
    count_rounds,
)
from kernelcast.expressions import TRUE, Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationCounts
from kernelcast.records.operations import OperationKind as Kind

X, Y = (Expr.symbol(Symbol(SymbolKind.LOCAL_ID, axis=axis)) for axis in range(2))
LOOP = LoopFacts(name="k", line=1, condition=TRUE, trip_count=None, is_exact=True)


def make_load(
    offset: Expr | None,
    *,
    buffer: str = "a",
    space: MemorySpace = MemorySpace.GLOBAL,
    size: int = 4,
    loops: tuple[LoopFacts, ...] = (),
    sources: tuple[str, ...] = (),
) -> MemoryAccess:
    """Make a load."""
    pattern = AddressPattern.INDIRECT if sources else AddressPattern.QUASI_AFFINE
    return MemoryAccess(
        site=0, block=0, line=1, text="a[i]", kind=AccessKind.LOAD, space=space, buffer=buffer,
        bytes=size, offset_bytes=offset, pattern=pattern, loops=loops, sources=sources,
    )  # fmt: skip


def count_ways(offset: Expr | None, size: int = 4) -> float:
    """Count the ways of one access to local memory by a 32 x 8 work-group."""
    launch = ModelledLaunch(
        kernel="k",
        ndrange=NDRange(global_size=(64, 64), local_size=(32, 8)),
        accesses=(make_load(offset, space=MemorySpace.LOCAL, size=size),),
    )
    return count_local_ways(launch, 32)


@pytest.mark.parametrize(
    ("offset", "ways"),
    [
        (4 * X, 1), (8 * X, 2), (128 * X, 32), (132 * X, 1), (Expr.constant(0), 1), (4 * Y, 1),
        (None, 1),
    ],
)  # fmt: skip
def test_local_memory_has_32_banks_of_4_bytes(offset: Expr | None, ways: float) -> None:
    """Counts different words in one bank; the same word is broadcast, padding removes conflicts."""
    assert count_ways(offset) == ways


def test_loads_of_straight_line_code_are_one_round() -> None:
    """Waits once for all loads, once more for those whose address was loaded."""
    first, second = make_load(4 * X), make_load(None, buffer="b", sources=("a",))
    third = make_load(None, buffer="c", sources=("b",))
    assert count_rounds((), 0) == 1
    assert count_rounds((first,), 1) == 1
    assert count_rounds((first, second), 2) == 2
    assert count_rounds((first, second, third), 3) == 3


def test_widths_and_kinds_are_told_apart() -> None:
    """Weighs vectors by lanes, quotients and roots by what they cost."""

    def make(
        kind: Kind, number: NumberClass, bits: int, lanes: int = 1, name: str = ""
    ) -> Operation:
        return Operation(kind=kind, number=number, bits=bits, lanes=lanes, name=name)

    counts = OperationCounts(
        operations={
            make(Kind.ADD, NumberClass.FLOAT, 32, lanes=4): 3.0,
            make(Kind.SPECIAL, NumberClass.FLOAT, 64, name="sqrt"): 1.0,
            make(Kind.DIVIDE, NumberClass.FLOAT, 64): 2.0,
            make(Kind.ADD, NumberClass.INTEGER, 32): 5.0,
            make(Kind.ADD, NumberClass.INTEGER, 64): 5.0,
            make(Kind.SPECIAL_NATIVE, NumberClass.FLOAT, 32, name="native_sin"): 7.0,
            make(Kind.ADDRESS, NumberClass.NONE, 0): 100.0,
        },
        memory={},
    )
    slots = count_slots(counts)
    assert slots["fp32"] == 12
    assert slots["fp64"] == pytest.approx(9.6 + 2 * 7.5)
    assert slots["int"] == 15
    assert slots["special"] == 7


def test_atomics_are_told_apart_by_their_place() -> None:
    """Sorts a histogram's atomics: many on local memory, few on global memory."""

    def make(text: str, space: MemorySpace, offset: Expr | None) -> MemoryAccess:
        return replace(
            make_load(offset, space=space), kind=AccessKind.ATOMIC, text=text, buffer="bins"
        )

    sites = (
        make("atomic_inc(&bins[v])", MemorySpace.LOCAL, None),
        make("atomic_add(&counts[i], n)", MemorySpace.GLOBAL, 4 * X),
        make("atomic_add(&total[0], n)", MemorySpace.GLOBAL, Expr.constant(0)),
    )
    counts = OperationCounts(
        operations={
            Operation(kind=Kind.ATOMIC, name="atomic_inc"): 100.0,
            Operation(kind=Kind.ATOMIC, name="atomic_add"): 4.0,
            Operation(kind=Kind.ADD, number=NumberClass.INTEGER, bits=32): 7.0,
        },
        memory={},
    )
    assert count_atomics(sites, counts) == {
        "global_same": 2.0, "global_distinct": 2.0, "local_distinct": 100.0,
    }  # fmt: skip
    assert count_atomics((), counts) == {"global_distinct": 104.0}


def test_loop_counters_are_shared_by_unrolled_iterations() -> None:
    """Leaves one step and one comparison of four, and integer work that is no loop's."""
    kinds = {Kind.ADD: 100.0, Kind.COMPARE: 90.0, Kind.LOGIC: 7.0}
    counts = {
        Operation(kind=kind, number=NumberClass.INTEGER, bits=32): times
        for kind, times in kinds.items()
    }
    branch = Operation(kind=Kind.BRANCH, number=NumberClass.NONE, bits=0)
    plain = count_slots(OperationCounts(operations=counts, memory={}))
    looped = count_slots(OperationCounts(operations={**counts, branch: 80.0}, memory={}))
    assert plain["int"] == 197
    assert looped["int"] == 197 - 2 * 60


def test_a_chain_of_loads_waits_for_each() -> None:
    """Counts every iteration where a load gives the next one's address, also by another load."""
    one = make_load(None, buffer="next", loops=(LOOP,), sources=("next",))
    assert count_rounds([one], 220.0) == 220
    to, back = (
        make_load(None, buffer=buffer, loops=(LOOP,), sources=(source,))
        for buffer, source in (("a", "b"), ("b", "a"))
    )
    assert count_rounds([to, back], 200.0) == 200
    gather = make_load(None, buffer="x", loops=(LOOP,), sources=("column",))
    column = make_load(X, buffer="column", loops=(LOOP,))
    assert count_rounds([gather, column], 200.0) == 50
