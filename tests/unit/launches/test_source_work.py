"""Instructions of launches by their source."""

import pytest

from kernelcast.launches.source_check import count_work
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


@pytest.mark.parametrize(
    ("name", "launch", "other", "ratio"),
    [
        ("loop", (4096, 400), (4096, 100), 4.0),
        ("loop", (8192, 100), (4096, 100), 2.0),
        ("triangle", (8192, 0), (4096, 0), 4.0),
        ("switched", (4096, 5), (4096, 4), 1.0),
    ],
)
def test_sizes_that_end_loops_count(
    name: str, launch: tuple[int, int], other: tuple[int, int], ratio: float
) -> None:
    """Counts what scalars, and places in the index space, let work-items execute."""
    assert _count(name, *launch) / _count(name, *other) == pytest.approx(ratio, rel=0.1)


def test_branches_by_scalars_count() -> None:
    """A setting that switches a loop on is more work; a border of the launch is not."""
    assert _count("switched", 4096, 4) > 100 * _count("switched", 4096, 1)
    assert _count("guarded", 4096, 4000) == 4096


def test_what_cannot_be_read_is_not_known() -> None:
    """A source that does not compile has no count, and no error here."""
    kernel = Kernel(source="kernel void broken(", name="broken")
    ndrange = NDRange(global_size=(64,), local_size=(64,))
    problem = Problem(name="broken", kernel=kernel, ndrange=ndrange, arguments=())
    assert count_work(problem, ndrange) is None
