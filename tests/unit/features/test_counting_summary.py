"""What counters say about work-items and warps, sectors and bank conflicts by paper and pencil."""

import numpy as np
import pytest

from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import (
    compute_requests,
    count_instructions,
    count_unjumped,
    doubt_counts,
    measure_requests,
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
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters
from support.accesses import record
from support.kernel_facts import facts_of

WARP = NDRange(global_size=(32,), local_size=(32,))
LINE = NDRange(global_size=(256,), local_size=(64,))
LONG = "v = v * v + 1.5f; " * 1000


def summarise_body(
    body: str, ndrange: NDRange, scalars: dict[str, int] | None = None
) -> SoftwareCounters:
    """Count a kernel statically in all its work-groups."""
    source = (
        "kernel void k(global float *x, int n) {"
        f" int g = get_global_id(0); float v = x[g]; {body} x[g] = v; }}"
    )
    facts = facts_of(source)
    sample = count_statically(facts, ndrange, scalars or {}, range(ndrange.work_group_count))
    return summarise(facts, sample)


@pytest.mark.parametrize(
    ("body", "branches", "efficiency"),
    [
        (f"if (g % 2) {{ {LONG} }} else {{ {LONG} }}", (1, 1), 0.5),
        (f"for (int i = 0; i <= g; i++) {{ {LONG} }}", (33, 31), (32 * 33 / 2) / 32**2),
    ],
)
def test_a_warp_goes_where_one_of_its_lanes_goes(
    body: str, branches: tuple[int, int], efficiency: float
) -> None:
    """On both sides of a branch; of trip counts 1 to 32 the longest decides."""
    _, warp, _ = summarise_body(body, WARP).warps
    assert (warp.width, warp.branches, warp.divergent_branches) == (32, *branches)
    assert warp.lane_efficiency == pytest.approx(efficiency, rel=0.01)


@pytest.mark.parametrize(
    ("size", "local", "efficiencies"),
    [(96, 48, [1, 0.75, 0.75]), (40, 32, [40 / 48, 40 / 64, 40 / 128])],
)
def test_lanes_without_work_items_do_nothing(
    size: int, local: int, efficiencies: list[float]
) -> None:
    """48 work-items fill one and a half warps of 32; a work-group of a remainder has fewer."""
    found = summarise_body("", NDRange(global_size=(size,), local_size=(local,)))
    assert (found.work_items, found.block_counts[0]) == (size, 1)
    assert [warp.lane_efficiency for warp in found.warps] == efficiencies


def test_trips_of_a_triangular_loop_range_over_the_index_space() -> None:
    """Work-item g makes g + 1 iterations; of a loop that nobody enters there are none."""
    found = summarise_body(
        "for (int i = 0; i <= g; i++) x[i] += 1;", NDRange(global_size=(128,), local_size=(64,))
    )
    [loop] = found.loops
    assert (loop.least, loop.median, loop.mean, loop.most) == (1, 64.5, 64.5, 128)
    assert found.executed.count_memory(MemorySpace.GLOBAL, is_store=True) == 64.5 + 1
    assert found.is_exact
    body = "if (g < 0) for (int i = 0; i < n; i++) v += 1;"
    [loop] = summarise_body(body, LINE, {"n": 5}).loops
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
    facts = facts_of(
        "float f(float x) { return sin(x); }"
        f"kernel void k(global float *a, int n, float x) {{ int i = get_global_id(0); {body} }}"
    )
    counters = summarise(facts, count_statically(facts, LINE, {"n": 0}, [0]))
    assert counters.executed.count(OperationKind.SPECIAL) == pytest.approx(executed)
    found = count_unjumped(facts, counters)
    assert found.count(OperationKind.SPECIAL) == pytest.approx(unjumped)


def test_masked_lanes_load_and_do_not_store() -> None:
    """Counts loads as arithmetic, but stores and atomics as they are executed."""
    facts = facts_of(
        "kernel void k(global int *a) { int i = get_global_id(0);"
        " if (i < 16) { a[i] = a[i + 1]; atomic_inc(a); } }"
    )
    found = count_unjumped(facts, summarise(facts, count_statically(facts, LINE, {}, [0])))
    loads, stores = (
        found.count_memory(MemorySpace.GLOBAL, is_store=is_store) for is_store in (False, True)
    )
    assert [loads, stores, found.count(OperationKind.ATOMIC)] == pytest.approx([1, 0.25, 0.25])


_PARAMETERS = "global float *a, global int *b, int n, float x"


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
    found = {
        operation.name
        for block in facts_of(f"kernel void k({_PARAMETERS}) {{ {body} }}").blocks
        for operation in block.operations.operations
        if operation.kind is OperationKind.ADDRESS and operation.name
    }
    assert found == {one.value for one in uses}


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
    facts = facts_of(f"kernel void k({_PARAMETERS}) {{ {body} }}")
    counters = summarise(facts, count_statically(facts, LINE, {"n": 4}, [0]))
    half_width, notes = doubt_counts(facts, counters)
    assert least <= half_width <= most
    assert bool(notes) == bool(note)
    assert all("line 1: loop ends depend on data" in one and note in one for one in notes)


def compute(source: str, **scalars: int) -> tuple[RequestPattern, ...]:
    return compute_requests(facts_of(source).accesses, LINE, scalars)


@pytest.mark.parametrize(
    ("element", "index", "sectors", "ideal"),
    [
        ("float", "g", 4, 4),
        ("float", "2 * g", 8, 4),
        ("float", "1024 * g", 32, 4),
        ("float", "7", 1, 4),
        ("float", "g + 1", 5, 4),
        ("float", "-g", 5, 4),
        ("float4", "g", 16, 16),
        ("double", "g", 8, 8),
        ("double8", "g", 64, 64),
        ("uchar", "g", 1, 1),
        ("float", "g / 32", 1, 4),
    ],
)
def test_sectors_of_a_warp_follow_the_stride(
    element: str, index: str, sectors: float, ideal: float
) -> None:
    [pattern] = compute(
        f"kernel void k(global {element} *x) {{ int g = get_global_id(0); x[{index}] = 1; }}"
    )
    assert pattern.sectors_per_request == sectors
    assert pattern.ideal_sectors_per_request == ideal
    assert (pattern.requests, pattern.is_store, pattern.is_measured) == (1, True, False)


def test_long_loops_are_sampled_without_losing_requests() -> None:
    source = (
        "kernel void k(global float *x, int n) { int l = get_local_id(0);"
        " for (int i = 0; i < n; i++) x[l + i] = 1; }"
    )
    [pattern] = compute(source, n=1_000_000)
    assert pattern.requests == pytest.approx(1_000_000)
    assert pattern.sectors_per_request == pytest.approx(4 + 7 / 8, rel=0.01)


def test_addresses_that_need_what_is_not_given_are_left_out() -> None:
    source = (
        "kernel void k(global int *x, int n) { int g = get_global_id(0);"
        " x[n * g] = 1; x[x[g]] = 2; }"
    )
    assert [one.line for one in compute(source)] == [1]
    assert len(compute(source, n=3)) == 2


def test_recorded_addresses_tell_what_expressions_cannot() -> None:
    """An indirect access over scattered places touches a sector per lane."""
    facts = facts_of("kernel void k(global int *x, global int *p) { x[p[get_global_id(0)]] = 1; }")
    [site] = [one.site for one in facts.accesses if one.offset_bytes is None]
    scattered = 100 * np.random.default_rng(1).permutation(128).reshape(2, 64)
    [pattern] = measure_requests(
        facts.accesses, record(4 * scattered.T.ravel(), (0,), size=64, site=site)
    )
    assert (pattern.sectors_per_request, pattern.ideal_sectors_per_request) == (32, 4)
    assert (pattern.requests, pattern.buffer, pattern.is_measured) == (2, "x", True)
    assert not pattern.is_coalesced


def test_recorded_and_computed_requests_agree() -> None:
    facts = facts_of(
        "kernel void k(global float *x) { int l = get_local_id(0);"
        " for (int i = 0; i < 3; i++) x[3 * l + 100 * i] = 1; }"
    )
    [computed] = compute_requests(facts.accesses, LINE, {}, work_groups=[0])
    offsets = 3 * np.arange(64)[None, :] + 100 * np.arange(3)[:, None]
    recorded = record(4 * offsets.T.ravel(), (0,), size=64, site=computed.site)
    [measured] = measure_requests(facts.accesses, recorded)
    for name in ("requests", "sectors_per_request", "ideal_sectors_per_request"):
        assert getattr(measured, name) == getattr(computed, name)


@pytest.mark.parametrize(
    ("element", "index", "conflicts"),
    [
        ("float", "l", 0), ("float", "7", 0), ("float", "2 * l", 1), ("float", "32 * l", 31),
        ("float", "33 * l", 0), ("float4", "l", 0), ("float2", "32 * l", 30), ("uchar", "l / 5", 0),
    ],
)  # fmt: skip
def test_lanes_of_a_bank_wait_for_each_other(element: str, index: str, conflicts: int) -> None:
    """Each word of a bank but the first takes a pass of its own; wide ones are taken in parts."""
    [pattern] = compute(
        f"kernel void k(local {element} *t) {{ int l = get_local_id(0); t[{index}] = 1; }}"
    )
    assert pattern.bank_conflicts_per_request == conflicts
