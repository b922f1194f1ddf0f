"""Instructions of launches by their source."""

import pytest

from kernelcast.launches.source_work import count_work
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

SOURCE = """
kernel void loop(global float *a, int n)
{
    float x = a[get_global_id(0)];
    for (int k = 0; k < n; ++k)
        x = x * 0.5f + 1.0f;
    a[get_global_id(0)] = x;
}
kernel void triangle(global float *a, int n)
{
    float x = 0.0f;
    for (int k = 0; k < get_global_id(0); ++k)
        x += a[k];
    a[get_global_id(0)] = x;
}
kernel void guarded(global float *a, int n)
{
    if (get_global_id(0) < n)
        for (int k = 0; k < 9; ++k)
            a[get_global_id(0)] += 1.0f;
}
kernel void switched(global float *a, int n)
{
    if (n > 3)
        for (int k = 0; k < 1000; ++k)
            a[get_global_id(0)] += 1.0f;
}
"""


def _count(name: str, items: int, n: int) -> float:
    ndrange = NDRange(global_size=(items,), local_size=(64,))
    problem = Problem(
        name=name,
        kernel=Kernel(source=SOURCE, name=name),
        ndrange=ndrange,
        arguments=(
            BufferArgument(element=ElementType.parse("float32"), count=items),
            ScalarArgument(element=ElementType.parse("int32"), values=(n,)),
        ),
    )
    found = count_work(problem, ndrange)
    assert found is not None
    return found


def test_scalars_that_end_loops_count() -> None:
    """A loop that runs four times as often executes nearly four times as much."""
    assert _count("loop", 4096, 400) / _count("loop", 4096, 100) == pytest.approx(4.0, rel=0.05)
    assert _count("loop", 8192, 100) / _count("loop", 4096, 100) == pytest.approx(2.0)


def test_sizes_that_end_loops_count() -> None:
    """Work-items that walk all before them do twice as much in twice as many."""
    assert _count("triangle", 8192, 0) / _count("triangle", 4096, 0) == pytest.approx(4.0, rel=0.1)


def test_guards_at_borders_do_not() -> None:
    """Where nothing depends on sizes but a border, work-items are the measure."""
    assert _count("guarded", 4096, 4000) == 4096


def test_branches_by_scalars_count() -> None:
    """A setting that switches a loop on is more work."""
    assert _count("switched", 4096, 4) > 100 * _count("switched", 4096, 1)


def test_what_cannot_be_read_is_not_known() -> None:
    """A source that does not compile has no count, and no error here."""
    kernel = Kernel(source="kernel void broken(", name="broken")
    ndrange = NDRange(global_size=(64,), local_size=(64,))
    problem = Problem(name="broken", kernel=kernel, ndrange=ndrange, arguments=())
    assert count_work(problem, ndrange) is None
