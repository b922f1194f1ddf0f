"""What makes a configuration dear on a CPU."""

from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.arguments import Argument, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.tuning.cpu_cost import Cost, cost_launch

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


def cost(problem: Problem, device: CpuDevice) -> Cost:
    """Say what a problem costs."""
    return cost_launch(model_kernel(problem), problem.ndrange, device)


def test_work_items_share_vectors_where_the_local_size_allows(device: CpuDevice) -> None:
    """A local size below the width of a vector leaves its lanes empty."""
    problem = make(PRODUCT, (SIZE, SIZE), (64, 1), "-DROWS=1")
    narrow = make(PRODUCT, (SIZE, SIZE), (2, 32), "-DROWS=1")
    assert cost(problem, device).width == device.width > 1
    assert cost(narrow, device).width == 1
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
    assert long.parts["DRAM"] > 2 * short.parts["DRAM"]


def test_runtimes_that_leave_vectors_to_compilers_need_straight_code(device: CpuDevice) -> None:
    """A loop in the kernel keeps the loop over work-items from being vectorised."""
    plain = replace(device, width=1)
    assert cost(make(SCALE, (SIZE * SIZE,), (64,)), plain).width == plain.lanes
    assert cost(make(SCALE, (SIZE * SIZE,), (4,)), plain).width == 1
    assert cost(make(PRODUCT, (SIZE, SIZE), (64, 1), "-DROWS=1"), plain).width == 1


def test_work_groups_that_fill_no_last_round_leave_cores_idle(device: CpuDevice) -> None:
    """One work-group more than there are cores takes another round."""
    cores = device.cores
    full = cost(make(PRODUCT, (SIZE, cores), (SIZE, 1), "-DROWS=1"), device)
    more = cost(make(PRODUCT, (SIZE, cores + 1), (SIZE, 1), "-DROWS=1"), device)
    assert more.parts["arithmetic"] > full.parts["arithmetic"] * (cores + 1) / cores


def test_doubling_the_work_takes_longer(device: CpuDevice) -> None:
    """Twice the work-items are about twice the time."""
    one = cost(make(PRODUCT, (SIZE, 256), (64, 1), "-DROWS=1"), device).seconds
    two = cost(make(PRODUCT, (SIZE, 512), (64, 1), "-DROWS=1"), device).seconds
    assert 1.5 < two / one < 2.5


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
    assert near.width == far.width == 1
    assert near.parts["L1"] < far.parts["L1"]
