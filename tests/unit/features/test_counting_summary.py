"""What counters say about work-items and warps."""

import numpy as np
import numpy.typing as npt
import pytest

from kernelcast.expressions.kernel_facts import ONCE, BlockFacts, KernelFacts
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import (
    count_instructions,
    count_unjumped,
    doubt_counts,
    summarise,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
    OwnElement,
)
from kernelcast.records.software_counters import CounterSample, SoftwareCounters
from support.kernel_facts import facts_of

ADD = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32)
BRANCH = Operation(kind=OperationKind.BRANCH)
LAUNCH = NDRange(global_size=(64,), local_size=(64,))


def make_block(
    number: int, kind: str, parent: int | None, counter: int,
    operations: dict[Operation, float] | None = None,
) -> BlockFacts:  # fmt: skip
    """Make a block."""
    return BlockFacts(
        id=number, function="k", kind=kind, line=number + 1, parent=parent,
        counter=counter, operations=OperationCounts(operations=operations or {}, memory={}),
    )  # fmt: skip


def make_facts(*blocks: BlockFacts) -> KernelFacts:
    """Make the facts of a kernel that is nothing but blocks."""
    return KernelFacts(
        kernel="k", line=1, parameters=(), local_arrays=(), blocks=blocks,
        reaches=(), accesses=(), loops=(), gaps=(),
    )  # fmt: skip


def make_sample(counts: npt.ArrayLike) -> CounterSample:
    """Make a sample from one list of counters per work-item of one work-group."""
    values = np.asarray(counts, dtype=np.float64)[None]
    return CounterSample(
        work_groups=(0,), counts=values, is_exact=(True,) * values.shape[2],
        work_items=(values.shape[1],),
    )  # fmt: skip


def summarise_source(
    source: str, ndrange: NDRange, scalars: dict[str, int] | None = None
) -> SoftwareCounters:
    """Count a kernel named k statically in all its work-groups."""
    facts = facts_of(source)
    sample = count_statically(facts, ndrange, scalars or {}, range(ndrange.work_group_count))
    return summarise(facts, sample)


def branching(then: float, otherwise: float) -> KernelFacts:
    """Make a kernel with one branch; what its sides execute is given."""
    return make_facts(
        make_block(0, "entry", None, ONCE, {BRANCH: 1}),
        make_block(1, "then", 0, 0, {ADD: then}),
        make_block(2, "else", 0, 1, {ADD: otherwise}),
    )


LOOP = make_facts(
    make_block(0, "entry", None, ONCE),
    make_block(1, "loop body", 0, 0, {ADD: 1}),
    make_block(2, "loop condition", 0, 1, {BRANCH: 1}),
)


def test_even_and_odd_lanes_on_two_sides_use_half_the_lanes() -> None:
    """Where sides cost the same and much, every pass serves half the warp."""
    facts = branching(1e9, 1e9)
    found = summarise(
        facts, make_sample([[lane % 2, 1 - lane % 2] for lane in range(64)]), warp_widths=(32,)
    )
    [warp] = found.warps
    assert warp.lane_efficiency == pytest.approx(0.5)
    assert (warp.branches, warp.divergent_branches) == (1, 1)


def test_a_warp_loops_as_long_as_its_longest_work_item() -> None:
    """Trip counts 1 to 32: the longest decides, and lanes leave at 31 places before it."""
    sample = make_sample([[lane + 1, lane + 2] for lane in range(32)])
    [warp] = summarise(LOOP, sample, warp_widths=(32,)).warps
    assert warp.issued == 32 + 33
    assert warp.executed == 32 * 33 / 2 + sum(range(2, 34))
    assert (warp.branches, warp.divergent_branches) == (33, 31)


@pytest.mark.parametrize(
    ("size", "local", "efficiencies"),
    [(96, 48, [1, 0.75, 0.75]), (40, 32, [40 / 48, 40 / 64, 40 / 128])],
)
def test_lanes_without_work_items_do_nothing(
    size: int, local: int, efficiencies: list[float]
) -> None:
    """48 work-items fill one and a half warps of 32; a work-group of a remainder has fewer."""
    source = "kernel void k(global float *x) { x[get_global_id(0)] += 1; }"
    found = summarise_source(source, NDRange(global_size=(size,), local_size=(local,)))
    assert (found.work_items, found.block_counts[0]) == (size, 1)
    assert [warp.lane_efficiency for warp in found.warps] == efficiencies


def test_trips_of_a_triangular_loop_range_over_the_index_space() -> None:
    """Work-item g makes g + 1 iterations."""
    source = (
        "kernel void k(global float *x) { int g = get_global_id(0);"
        " for (int i = 0; i <= g; i++) x[i] += 1; }"
    )
    found = summarise_source(source, NDRange(global_size=(128,), local_size=(64,)))
    [loop] = found.loops
    assert (loop.least, loop.median, loop.mean, loop.most) == (1, 64.5, 64.5, 128)
    assert found.executed.count_memory(MemorySpace.GLOBAL, is_store=True) == 64.5
    assert found.is_exact


def test_a_loop_that_nobody_enters_makes_no_iterations() -> None:
    """There is nothing to divide by, and no error."""
    facts = make_facts(make_block(0, "then", None, 0), make_block(1, "loop body", 0, 0))
    [loop] = summarise(facts, make_sample([[0], [0]])).loops
    assert (loop.mean, loop.most) == (0, 0)


def test_vectors_count_by_lane_and_wide_accesses_by_sixteen_bytes() -> None:
    """Compilers remove jumps, addresses, widened ids and private memory."""
    operations = {
        Operation(kind=OperationKind.MULTIPLY, number=NumberClass.FLOAT, bits=64, lanes=8): 2.0,
        Operation(kind=OperationKind.CONVERT, number=NumberClass.INTEGER, bits=64): 3.0,
        Operation(kind=OperationKind.CONVERT, number=NumberClass.FLOAT, bits=32): 1.0,
        Operation(kind=OperationKind.ADDRESS): 9.0,
        Operation(kind=OperationKind.JUMP): 9.0,
        Operation(kind=OperationKind.BARRIER): 1.0,
    }
    memory = {
        MemoryOperation(space=MemorySpace.GLOBAL, is_store=False, bytes=64): 2.0,
        MemoryOperation(space=MemorySpace.LOCAL, is_store=True, bytes=4): 1.0,
        MemoryOperation(space=MemorySpace.PRIVATE, is_store=True, bytes=4): 7.0,
    }
    counts = OperationCounts(operations=operations, memory=memory)
    assert count_instructions(counts) == 16 + 1 + 1 + 8 + 1


STORE = MemoryOperation(space=MemorySpace.GLOBAL, is_store=True, bytes=4)
LOAD = MemoryOperation(space=MemorySpace.GLOBAL, is_store=False, bytes=4)


@pytest.mark.parametrize(
    ("body", "executed", "unjumped"),
    [
        ("a[i] = sin(x);", 1, 1),
        ("if (i < 16) a[i] = sin(x); else a[i] = x;", 0.25, 1),
        ("if (i < 16) a[i] = sin(x); else a[i] = sin(x + 1);", 1, 2),
        ("if (i >= 16) return; a[i] = sin(x);", 0.25, 1),
        ("for (int k = 0; k < 5; ++k) a[k] = sin(x);", 5, 5),
        ("for (int k = 0; k < n; ++k) a[k] = sin(x);", 0, 1),
        ("if (i < 16) for (int k = 0; k < 5; ++k) a[k] = sin(x);", 1.25, 2),
        ("if (i < 16) a[i] = f(x);", 0.25, 1),
        ("if (i >= 16) return; a[i] = f(x);", 0.25, 1),
    ],
)
def test_both_sides_of_conditions_are_gone_through(
    body: str, executed: float, unjumped: float
) -> None:
    """Counts what no work-item executes, and loops once where one has to wait at them."""
    source = (
        "float f(float x) { return sin(x); }"
        f"kernel void k(global float *a, int n, float x) {{ int i = get_global_id(0); {body} }}"
    )
    facts = facts_of(source)
    counters = summarise(facts, count_statically(facts, LAUNCH, {"n": 0}, [0]))
    assert counters.executed.count(OperationKind.SPECIAL) == pytest.approx(executed)
    found = count_unjumped(facts, counters)
    assert found.count(OperationKind.SPECIAL) == pytest.approx(unjumped)


def test_masked_lanes_load_and_do_not_store() -> None:
    """Counts loads as arithmetic, but stores and atomics as they are executed."""
    source = (
        "kernel void k(global int *a) { int i = get_global_id(0);"
        " if (i < 16) { a[i] = a[i + 1]; atomic_inc(a); } }"
    )
    facts = facts_of(source)
    counters = summarise(facts, count_statically(facts, LAUNCH, {}, [0]))
    found = count_unjumped(facts, counters)
    assert found.memory[LOAD] == pytest.approx(1)
    assert found.memory[STORE] == pytest.approx(0.25)
    assert found.count(OperationKind.ATOMIC) == pytest.approx(0.25)


_PARAMETERS = "global float *a, global int *b, int n, float x"


def find_own(body: str) -> set[str]:
    """Give the names of the addresses that a kernel computes."""
    source = f"kernel void k({_PARAMETERS}) {{ {body} }}"
    return {
        operation.name
        for block in facts_of(source).blocks
        for operation in block.operations.operations
        if operation.kind is OperationKind.ADDRESS and operation.name
    }


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("int h[8]; h[b[0] & 7]++; b[1] = h[0];", {OwnElement.UPDATE}),
        ("int h[8]; h[get_local_id(0) & 7] += 2; b[1] = h[0];", {OwnElement.UPDATE}),
        ("int s[8]; int d = 0; while (b[d] > 0) { s[d] = b[d]; ++d; } b[1] = s[0];",
         {OwnElement.STORE}),
        ("int h[2][4]; int j = b[0]; b[1] = h[1][j];", {OwnElement.LOAD}),
        ("int h[8]; for (int k = 0; k < 8; ++k) h[k] = k; b[1] = h[3];", set()),
        ("int h[8]; for (int k = 0; k < 4; ++k) { const int j = 2 * k; h[j + 1] = k; }", set()),
        ("b[b[0]] = 1;", set()),
    ],
)  # fmt: skip
def test_elements_are_in_memory_where_data_choose_them(body: str, uses: set[OwnElement]) -> None:
    """Tells data, ids and variables that go up and down from counters of loops."""
    assert find_own(body) == {one.value for one in uses}


@pytest.mark.parametrize(
    ("body", "least", "most", "note"),
    [
        ("for (int k = 0; k < 100; ++k) a[k] = sin(x);", 0.0, 0.0, ""),
        ("float v = x; while (v > 1.0f) v = sin(v) * a[0]; a[1] = v;", 3.0, 7.0, "any number"),
        ("float v = a[0]; for (int k = 0; k < 100; ++k) { v = sin(v); if (v > 1.0f) break; }"
         " a[1] = v;", 1.0, 3.0, "may end much earlier"),
    ],
)  # fmt: skip
def test_loops_that_data_end_leave_answers_in_doubt(
    body: str, least: float, most: float, note: str
) -> None:
    """Doubts counts by factors, names line and cause, and nothing where the source tells all."""
    source = f"kernel void k({_PARAMETERS}) {{ {body} }}"
    facts = facts_of(source)
    counters = summarise(facts, count_statically(facts, LAUNCH, {"n": 4}, [0]))
    half_width, notes = doubt_counts(facts, counters)
    assert least <= half_width <= most
    assert bool(notes) == bool(note)
    assert all("line 1: loop ends depend on data" in one and note in one for one in notes)
