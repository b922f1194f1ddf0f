from dataclasses import replace

import pytest

from kernelcast.records.arguments import BufferArgument, ElementType, LocalArgument, ScalarArgument
from kernelcast.records.errors import CompileError, DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

SOURCE = """\
kernel void scale(global float *a, constant float4 *b, float factor, local float *tile)
{
    tile[get_local_id(0)] = a[get_global_id(0)] + b[0].x;
    a[get_global_id(0)] = tile[get_local_id(0)] * factor;
}
kernel void other(global int *a) { a[0] = 1; }
"""
FLOAT = ElementType("float32")
A = BufferArgument(element=FLOAT, count=1024)
B = BufferArgument(element=ElementType("float32", 4), count=4)
FACTOR = ScalarArgument(element=FLOAT, values=(2.0,))
TILE = LocalArgument(bytes=128)
GOOD = Problem(
    name="scale",
    kernel=Kernel(name="scale", source=SOURCE, source_name="scale.cl"),
    ndrange=NDRange(global_size=(1024,), local_size=(32,)),
    arguments=(A, B, FACTOR, TILE),
)


def prepare(session: DeviceSession, problem: Problem) -> tuple[int, ...]:
    """Prepare a problem and run it once; give the local size in use."""
    with prepared_problem(session, problem, seed=0) as launch:
        assert launch.time_whole() > 0
        return launch.ndrange.known_local_size


@pytest.mark.parametrize("global_size", [(1024,), (32, 32), (1021,), (8, 4, 32)])
def test_the_device_chooses_a_local_size(
    session: DeviceSession, global_size: tuple[int, ...]
) -> None:
    """Runs with a local size of the device's choice where none is given, and reports it."""
    kernel = Kernel(name="other", source=SOURCE)
    problem = replace(
        GOOD,
        kernel=kernel,
        ndrange=NDRange(global_size=global_size),
        arguments=(BufferArgument(element=ElementType("int32"), count=4),),
    )
    local = prepare(session, problem)
    assert len(local) == len(global_size)
    assert all(1 <= size <= whole for size, whole in zip(local, global_size, strict=True))


@pytest.mark.parametrize("uses_prelude", [False, True])
def test_shows_the_compilers_message(session: DeviceSession, uses_prelude: bool) -> None:
    """Shows the compiler's message with the source's name and its own line numbers."""
    use = "a[get_group_id(0)] = 1;" if uses_prelude else ""
    source = f"kernel void scale(global float *a)\n{{\n    {use}\n    undeclared = 1;\n}}\n"
    kernel = Kernel(name="scale", source=source, source_name="scale.cl")
    with pytest.raises(CompileError, match="refused the source") as caught:
        prepare(session, replace(GOOD, kernel=kernel, arguments=(A,)))
    assert "undeclared" in str(caught.value)
    assert "scale.cl:4" in str(caught.value)


def test_required_local_sizes_are_kept(session: DeviceSession) -> None:
    """Refuses a local size other than the one the kernel requires, and uses that by itself."""
    source = "__attribute__((reqd_work_group_size(16, 1, 1)))\n" + SOURCE
    problem = replace(GOOD, kernel=replace(GOOD.kernel, source=source))
    with pytest.raises(DeviceLimitError, match=r"requires \(16,\) \(reqd_work_group_size\)"):
        prepare(session, problem)
    chosen = replace(problem, ndrange=NDRange(global_size=(1024,)))
    assert prepare(session, chosen) == (16,)


def test_memory_has_limits(session: DeviceSession) -> None:
    """Refuses what is too large before it is made, naming sizes: one buffer, all, local memory."""
    device = session.description
    huge = replace(A, count=device.max_allocation_bytes // 4 + 1024)
    each = device.max_allocation_bytes // 4 * 4
    count = device.global_memory_bytes // each + 1
    names = ", ".join(f"global float *a{index}" for index in range(count))
    many = Kernel(name="many", source=f"kernel void many({names}) {{ a0[0] = 1; }}")
    most = device.local_memory_bytes
    for problem, told in (
        (replace(GOOD, arguments=(huge, B, FACTOR, TILE)),
         f"argument 0 is a buffer of {huge.bytes:,} .*{device.max_allocation_bytes:,}"),
        (replace(GOOD, kernel=many, arguments=(replace(A, count=each // 4),) * count),
         "the buffers take"),
        (replace(GOOD, arguments=(A, B, FACTOR, LocalArgument(bytes=most + 4))),
         f"take {most + 4:,} bytes, .* has {most:,}"),
    ):  # fmt: skip
        with pytest.raises(DeviceLimitError, match=told):
            prepare(session, problem)
