"""What warps execute of PTX, by kernels whose counts are known."""

from collections.abc import Callable

import pytest

from kernelcast.analytic.gpu.code import read_work
from kernelcast.compiling import Compiled, Target, compile_kernel
from kernelcast.compiling.execution import count_executed
from kernelcast.records.ndrange import NDRange

SOURCE = """
kernel void product(global const float *a, global const float *b, global float *c, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n) return;
    float s = 0;
    for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
kernel void sum(global float *a, local float *t)
{
    int l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
        if (l < s) t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) a[get_group_id(0)] = t[0];
}
kernel void triangle(global float *a, int n)
{
    int i = get_global_id(0);
    float s = 0;
    for (int j = 0; j <= i; j++) s += a[j * n + i];
    a[i] = s;
}
kernel void walk(global const int *next, global int *steps)
{
    int i = get_global_id(0), n = 0;
    while (i != 0) { i = next[i]; n++; }
    steps[get_global_id(0)] = n;
}
kernel void choose(global float *a)
{
    float e[16];
    for (int i = 0; i < 16; i++) e[i] = a[i];
    for (int k = 0; k < 64; k++) {
        #pragma unroll 1
        for (int i = 0; i < 16; i++) e[i] = e[i] * e[i] + a[k];
    }
    for (int i = 0; i < 16; i++) a[i + get_global_id(0)] = e[i];
}
kernel void high(global float *a, int n, ulong seed)
{
    int steps = n * 5 / 7 + (mul_hi(seed * 0x9e3779b97f4a7c15, get_global_id(0) + (ulong)n) < seed);
    float s = 0;
    #pragma unroll 1
    for (int j = 0; j < steps / 10 * 10; j++) s = s * s + a[j];
    a[get_global_id(0)] = s;
}
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_kernel(SOURCE, (), Target.parse("sm_80"))


def make_shape(local: tuple[int, ...], groups: tuple[int, ...]) -> NDRange:
    items = tuple(n * by for n, by in zip(local, groups, strict=True))
    return NDRange(global_size=items, local_size=local)


def count(
    compiled: Compiled, kernel: str, shape: NDRange, *arguments: int | None
) -> Callable[..., float]:
    executed = count_executed(compiled, kernel, shape, arguments)
    assert executed is not None
    return lambda name, part="": sum(
        visits * sum(one.name == name and (not part or part in one.parts) for one in block)
        for visits, block in executed
    )


@pytest.mark.parametrize("n", [48, 4096])
def test_a_loop_runs_as_often_as_its_argument_says(compiled: Compiled, n: int) -> None:
    """Loops that the compiler unrolls execute every turn, those left over included."""
    shape = make_shape((16, 16), (-(-n // 16),) * 2)
    found = count(compiled, "product", shape, None, None, None, n)
    assert found("fma") == pytest.approx(n)
    assert found("ld", "global") == pytest.approx(2 * n)


def test_upper_halves_of_products_are_known(compiled: Compiled) -> None:
    """Divisions of an argument by a constant, and products of 64 bits, end in a number of turns."""
    found = count(compiled, "high", make_shape((64,), (16,)), None, 70, (1 << 64) - 1)
    assert found("fma") == pytest.approx(50)


def test_warps_that_take_no_part_do_not_count(compiled: Compiled) -> None:
    """In a reduction of 256 work-items the half that adds needs fewer warps each time; waits for
    memory and local memory's wavefronts are those of a warp."""
    shape = make_shape((256,), (99,))
    found = count(compiled, "sum", shape, None, None)
    # 128 work-items need 4 of 8 warps, then 2, then 1 for all smaller halves.
    assert found("add", "f32") == pytest.approx((4 + 2 + 6) / 8)
    assert found("bar") == pytest.approx(1 + 8)
    work = read_work(compiled, "sum", shape, [None, None])
    assert work is not None
    # A store each, two loads and a store for each addition, a load at the end.
    assert work.local_wavefronts == pytest.approx(1 + 3 * 12 / 8 + 1 / 8)
    assert work.load_rounds == pytest.approx(1.0)


def test_a_warp_runs_as_long_as_its_last_work_item(compiled: Compiled) -> None:
    """Places of the launch are averaged; the longest lane of a warp decides."""
    found = count(compiled, "triangle", make_shape((32,), (600,)), None, 19200)
    lasts = [32 * (group + 1) for group in (100, 300, 500)]
    assert found("add", "f32") == pytest.approx(sum(lasts) / 3, rel=0.01)


def test_loops_that_data_end_have_no_answer(compiled: Compiled) -> None:
    """What follows a list runs until the list ends."""
    assert read_work(compiled, "walk", make_shape((32,), (10,)), [None, None]) is None


def test_arrays_by_an_index_that_varies_cost_selections(compiled: Compiled) -> None:
    """An element of a private array is no register where its index is a loop's counter."""
    found = read_work(compiled, "choose", make_shape((32,), (10,)), [None])
    assert found is not None
    assert found.fp32 == pytest.approx(64 * 16, rel=0.1)
    assert found.issued > 3 * found.fp32
