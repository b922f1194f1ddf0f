"""What makes a configuration dear on a CPU, and which lines nested loops touch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.arguments import Argument, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.tuning.cpu_cost import Axis, CacheFootprint, Walk, cost_launch

SIZE = 1024
SCALE = "kernel void k(global float *a) { a[get_global_id(0)] *= 2.0f; }"
PRODUCT = """
kernel void k(global const float *a, global const float *b, global float *c, int n) {
    int x = get_global_id(0), top = get_global_id(1) * ROWS;
    float sum[ROWS];
    for (int r = 0; r < ROWS; r++) sum[r] = 0.0f;
    for (int i = 0; i < n; i++)
        for (int r = 0; r < ROWS; r++)
            sum[r] += a[(top + r) * n + i] * b[i * n + x];
    for (int r = 0; r < ROWS; r++) c[(top + r) * n + x] = sum[r];
}
"""
COLUMN = """
kernel void k(global const float *a, global float *c, int n) {
    float sum = 0.0f;
    for (int i = 0; i < ROWS; i++) sum += a[(get_global_id(1) * ROWS + i) * n + get_global_id(0)];
    c[get_global_id(1) * n + get_global_id(0)] = sum;
}
"""


@pytest.fixture(scope="module")
def device(machine: MachineDescription) -> CpuDevice:
    """Give a runtime that vectorises over work-items."""
    return read_device(machine)


def buffer(count: int) -> BufferArgument:
    """Give a buffer of floats."""
    return BufferArgument(element=ElementType("float32"), count=count)


def make(
    source: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *options: str
) -> Problem:
    """Make a problem whose buffers are square matrices."""
    given: list[Argument] = [buffer(SIZE * SIZE) for _ in range(source.count("global"))]
    given = given[: source.partition(")")[0].count("global")]
    if "int n)" in source:
        given.append(ScalarArgument(element=ElementType("int32"), values=(SIZE,)))
    return Problem(
        name="k",
        kernel=Kernel(name="k", source=source, build_options=options),
        ndrange=NDRange(global_size=global_size, local_size=local_size),
        arguments=tuple(given),
    )


def width_of(found: AnalyticEstimate) -> float:
    """Say how many work-items share a vector."""
    return found.quantities["vector_work_items_count"]


def cost(problem: Problem, device: CpuDevice) -> AnalyticEstimate:
    """Say what a problem costs."""
    return cost_launch(model_kernel(problem), problem.ndrange, device)


def test_work_items_share_vectors_where_the_local_size_allows(device: CpuDevice) -> None:
    """A local size below the width of a vector leaves its lanes empty."""
    problem = make(PRODUCT, (SIZE, SIZE), (64, 1), "-DROWS=1")
    narrow = make(PRODUCT, (SIZE, SIZE), (2, 32), "-DROWS=1")
    assert width_of(cost(problem, device)) == device.width > 1
    assert width_of(cost(narrow, device)) == 1
    assert cost(narrow, device).seconds > 2 * cost(problem, device).seconds


def test_small_work_groups_cost_their_dispatch(device: CpuDevice) -> None:
    """The same work in more work-groups takes longer."""
    seconds = [
        cost(make(SCALE, (SIZE * SIZE,), (local,)), device).seconds for local in (1024, 64, 16)
    ]
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]


def test_long_columns_wait_for_memory(device: CpuDevice) -> None:
    """A walk down a column jumps a page each step, more than prefetchers follow."""
    short = cost(make(COLUMN, (SIZE, SIZE // 8), (16, 1), "-DROWS=8"), device)
    long = cost(make(COLUMN, (SIZE, 1), (16, 1), "-DROWS=1024"), device)
    assert long.limiters["DRAM"] > 2 * short.limiters["DRAM"]


def test_runtimes_that_leave_vectors_to_compilers_need_straight_code(device: CpuDevice) -> None:
    """A loop in the kernel keeps the loop over work-items from being vectorised."""
    plain = replace(device, width=1)
    assert width_of(cost(make(SCALE, (SIZE * SIZE,), (64,)), plain)) == plain.lanes
    assert width_of(cost(make(SCALE, (SIZE * SIZE,), (4,)), plain)) == 1
    assert width_of(cost(make(PRODUCT, (SIZE, SIZE), (64, 1), "-DROWS=1"), plain)) == 1


def test_work_groups_that_fill_no_last_round_leave_cores_idle(device: CpuDevice) -> None:
    """One work-group more than there are cores takes another round."""
    cores = device.cores
    full = cost(make(PRODUCT, (SIZE, cores), (SIZE, 1), "-DROWS=1"), device)
    more = cost(make(PRODUCT, (SIZE, cores + 1), (SIZE, 1), "-DROWS=1"), device)
    assert more.limiters["arithmetic"] > full.limiters["arithmetic"] * (cores + 1) / cores


def test_neighbours_of_one_work_item_share_vectors_where_work_items_do_not(
    device: CpuDevice,
) -> None:
    """Without vectors over work-items, elements side by side are joined, far ones are not."""
    copy = """
    kernel void k(global const float *a, global float *c) {
        for (int i = 0; i < 8; i++)
            c[get_global_id(0) * FIRST + i * STEP] = 3.0f * a[get_global_id(0) * FIRST + i * STEP];
    }
    """
    plain = replace(device, width=1)
    near = cost(make(copy, (4096,), (64,), "-DFIRST=8", "-DSTEP=1"), plain)
    far = cost(make(copy, (4096,), (64,), "-DFIRST=1", "-DSTEP=4096"), plain)
    assert width_of(near) == width_of(far) == 1
    assert near.limiters["L1"] < far.limiters["L1"]


LINE = 64
L1 = (32768, 8)


def walk(*steps: int, inside: tuple[bool, ...] | None = None) -> Walk:
    """Make a walk through floats that all axes are around."""
    return Walk("", 4, steps, (True,) * len(steps) if inside is None else inside)


def count_loaded(walks: Sequence[Walk], extents: Sequence[int], cache: tuple[int, int]) -> float:
    """Count the lines that a cache loads for walks that store nothing."""
    axes = [Axis(one) for one in extents]
    return CacheFootprint(dict.fromkeys(walks, False), axes, LINE).count_moved(*cache)[0]


def test_conflicts_cost_what_capacity_would_not() -> None:
    """A column read row by row is reused where its rows fall into different sets only."""
    extents = 64, 16  # 64 rows, then the next of 16 floats in each
    assert count_loaded([walk(4096 + 64, 4)], extents, L1) == pytest.approx(64, rel=0.02)
    assert count_loaded([walk(4096, 4)], extents, L1) == pytest.approx(64 * 16)


def test_axes_that_are_not_around_do_not_repeat() -> None:
    """What stands behind a loop is not executed by its iterations."""
    walks = [walk(0, 64, inside=(False, True)), walk(64, 640_000)]
    assert count_loaded(walks, (10_000, 10_000), L1) == pytest.approx(1e8, rel=1e-3)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0, 4, 8, 64, 256, 4096])),
             min_size=1, max_size=4)
)  # fmt: skip
def test_lines_are_bounded_by_enumeration(dims: list[tuple[int, int]]) -> None:
    """At least half and at most twice the lines that really differ, and never above executions."""
    extents, steps = zip(*dims, strict=True)
    counted = walk(*steps).list_shapes([Axis(one) for one in extents], LINE)[-1].lines
    places = product(*(range(extent) for extent in extents))
    real = {sum(at * step for at, step in zip(place, steps, strict=True)) // LINE
            for place in places}  # fmt: skip
    assert counted <= prod(extents) + 1e-9
    assert len(real) / 2 <= counted <= 2 * len(real) + 1


@settings(max_examples=40)
@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([4, 64, 1024, 4160]))
def test_a_larger_cache_never_moves_more(rows: int, columns: int, step: int) -> None:
    """Whatever the loops, more room and more ways hold at least as much."""
    walks = [walk(step, 4), walk(4, 0)]
    small, large = (
        count_loaded(walks, (rows, columns), cache) for cache in ((4096, 4), (65536, 16))
    )
    assert large <= small * (1 + 1e-9)
