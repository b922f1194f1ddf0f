"""CUDA devices behind the objects of pyopencl, on a stand-in for the driver."""

import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as real_driver

from kernelcast import compiling
from kernelcast.records.arguments import ElementType, Init, LocalArgument, ScalarArgument
from kernelcast.records.errors import (
    BrokenDeviceError,
    CompileError,
    DeviceLimitError,
    KernelRunError,
    SignatureError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling import cuda
from kernelcast.sampling.cuda import adapt_ptx, choose_local_size
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import PartialLaunch, run_whole
from kernelcast.sampling.session import DeviceSession, open_session
from support import cuda_driver
from support.problems import buffer_of, number_of, write_problem

TELLING = """
kernel void telling(global ulong *out, ulong width)
{
    size_t place = get_global_id(1) * width + get_global_id(0) - get_global_offset(0);
    out[place] = get_group_id(0) + 100 * get_group_id(1) + 10000 * get_num_groups(0)
        + 1000000 * get_num_groups(1) + 100000000 * get_global_size(0)
        + get_local_id(0) * 100000000000UL;
}
"""
MIXED = """
typedef struct { int a; float b[3]; } Pair;
constant float TABLE[4] = {1, 2, 3, 4};
kernel void mixed(global float *out, constant float *given, local float *first, Pair pair,
                  local float *second, float3 vector, global float *none)
{
    size_t i = get_local_id(0), n = get_local_size(0);
    first[i] = given[i];
    second[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = first[n - 1 - i] + second[n - 1 - i] + pair.a + pair.b[2] + vector.z
        + TABLE[i & 3] + (none ? 1000 : 0);
}
"""


@pytest.fixture(scope="module")
def session() -> Iterator[DeviceSession]:
    with cuda_driver.stand_in(alone=1, units=2):
        [(description, device)] = find_devices()
        yield open_session(description, device)


def test_the_stand_in_has_functions_of_the_driver() -> None:
    """What kernelcast calls is there in cuda-bindings and takes as many arguments."""
    for name in cuda_driver.FUNCTIONS:
        line = getattr(real_driver, name).__doc__.splitlines()[0]
        listed = re.sub(r"\[[^]]*\]", "", line[line.index("(") + 1 : line.rindex(")")])
        count = len([one for one in listed.split(",") if one.strip()])
        assert getattr(cuda_driver, name).__wrapped__.__code__.co_argcount == count, line


def test_there_is_no_cuda_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a missing package nor a missing library stops the search for devices."""
    for module in ("no_such_module", "cuda.bindings.driver"):
        monkeypatch.setenv(cuda.DRIVER_VARIABLE, module)
        cuda.load_driver.cache_clear()
        if cuda.load_driver() is None:
            assert cuda.list_devices() == []
    cuda.load_driver.cache_clear()


@pytest.mark.skipif(compiling.find_ptxas() is None, reason="ptxas is not installed")
def test_adapted_ptx_assembles() -> None:
    """The base of local arguments is PTX as the assembler takes it; declared memory is kept."""
    source = """kernel void k(global int *a, local int *b, local int *c)
    { local int own[64]; uint i = get_local_id(0); own[i] = a[i]; b[i] = own[63 - i];
      c[i] = i; barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = b[i ^ 1] + c[i ^ 2]; }"""
    compiled = compiling.compile_kernel(source, target=compiling.Target.parse("sm_90"))
    adapted = adapt_ptx(compiled.text, compiled.kernels)
    assert adapted != compiled.text
    assert compiling.assemble_ptx(adapted, "sm_90")["k"].shared_bytes == 256


def test_a_chosen_local_size_divides() -> None:
    """No work-group is cut off, whatever the size."""
    for size in [(1000, 7), (1,), (97, 97), (4096, 4096, 2)]:
        chosen = choose_local_size(size)
        assert all(whole % one == 0 for whole, one in zip(size, chosen, strict=True))
        assert np.prod(chosen) <= 256


@pytest.mark.device
def test_a_gpu_that_opencl_shows_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same place on the bus is the same GPU; another place is another."""
    with cuda_driver.stand_in(alone=1):
        [through_cuda] = cuda.list_devices()
        shown = SimpleNamespace(
            **{name: getattr(through_cuda, name) for name in dir(through_cuda)
               if not name.startswith("_")},
        )  # fmt: skip
        shown.platform = SimpleNamespace(name="NVIDIA CUDA", vendor="NVIDIA", version="OpenCL 3.0")
        listing = SimpleNamespace(get_devices=lambda: [shown])
        monkeypatch.setattr(cl, "get_platforms", lambda: [listing])
        assert [one.platform for one, _ in find_devices()] == ["NVIDIA CUDA"]
        shown.pci_bus_id_nv += 1
        assert {one.platform for one, _ in find_devices()} == {"NVIDIA CUDA", "CUDA"}


@pytest.mark.device
def test_windows_are_told_of_the_whole_launch(session: DeviceSession) -> None:
    """Each work-group writes what it writes in the whole launch; the others write nothing."""
    ndrange = NDRange(global_size=(64, 12), local_size=(16, 2), global_offset=(8, 0))
    elements = buffer_of("uint64", 64 * 12)
    width = number_of(64, "uint64")
    problem = replace(write_problem(TELLING, elements, width), ndrange=ndrange)
    whole = run_whole(session, problem, seed=0)[1][0]
    out = np.zeros(64 * 12, dtype=np.uint64)
    launch = PartialLaunch(session, problem, {0: out})
    launch.run([GroupBox(start=(1, 3), shape=(2, 2))])
    launch.read(0, [(0, out.nbytes)], out.view(np.uint8))
    launch.release()
    expected = np.zeros((12, 64), dtype=np.uint64)
    expected[6:10, 16:48] = np.asarray(whole).reshape(12, 64)[6:10, 16:48]
    assert np.asarray(whole).reshape(12, 64)[6, 16] == 64_06_04_03_01
    assert np.array_equal(out.reshape(12, 64), expected)


@pytest.mark.device
def test_all_kinds_of_arguments_arrive(session: DeviceSession) -> None:
    """Structures and vectors by value, two stretches of local memory, constants, no buffer."""
    problem = write_problem(
        MIXED, buffer_of("float32", 8),
        replace(buffer_of("float32", 8), init=Init.ARANGE), LocalArgument(bytes=16),
        ScalarArgument(
            element=ElementType("uint8", 16),
            values=tuple(np.array([7, 0, 0, 0x41200000], dtype=np.int32).tobytes()),
        ),
        LocalArgument(bytes=20),
        ScalarArgument(element=ElementType("float32", 3), values=(0, 0, 5)),
        buffer_of("float32", 1), items=(8,), local=(4,),
    )  # fmt: skip
    after = run_whole(session, problem, seed=0)[1][0]
    expected = [3 - i + 3 - i + 7 + 10 + 5 + (i + 1) + 1000 for i in range(4)] * 2
    assert np.asarray(after).tolist() == expected


@pytest.mark.device
def test_wrong_sources_and_arguments_are_refused(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler's words name the line, as do the driver's of PTX; missing built-ins their names,
    images that they are."""
    floats = buffer_of("float32", 4)
    wrong = write_problem(
        "kernel void k(global int *a)\n{ a[0] = nothing; }", buffer_of("int32", 4)
    )
    with pytest.raises(
        CompileError, match=r":2:\d+: error: use of undeclared identifier 'nothing'"
    ):
        run_whole(session, wrong, seed=0)
    lacking = "float unheard_of(float x); kernel void k(global float *a) { a[0] = unheard_of(2); }"
    with pytest.raises(CompileError, match="built-in functions unheard_of"):
        run_whole(session, write_problem(lacking, floats), seed=0)
    images = write_problem(
        "kernel void k(read_only image2d_t i, global float *a) { a[0] = get_image_width(i); }",
        floats, floats,
    )  # fmt: skip
    with pytest.raises((CompileError, SignatureError), match="image"):
        run_whole(session, images, seed=0)
    compile_kernel = compiling.compile_kernel
    monkeypatch.setattr(
        compiling, "compile_kernel",
        lambda *arguments, **named: replace(compile_kernel(*arguments, **named), text="wrong"),
    )  # fmt: skip
    with pytest.raises(CompileError, match=r"refused the program's PTX.*\n.*line 1"):
        session.whole_kernel(Kernel(name="k", source="kernel void k(global int *a) { a[0] = 7; }"))


@pytest.mark.device
def test_launches_beyond_the_device_are_refused(session: DeviceSession) -> None:
    """Too much memory and too many work-groups are limits of the device, told as such."""
    source = "kernel void k(global char *a) { a[0] = 1; }"
    problem = write_problem(source, buffer_of("int8", 4), items=(1, 70_000), local=(1, 1))
    with pytest.raises(DeviceLimitError, match="65,535 along an axis"):
        run_whole(session, problem, seed=0)
    with pytest.raises(DeviceLimitError):
        cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=8 << 30)


@pytest.mark.device
def test_an_error_of_a_running_kernel_is_the_devices() -> None:
    """It names kernel and status, and nothing of the same context works any more."""
    with cuda_driver.stand_in(alone=1, fails="cuLaunchKernel/stray=700"):
        description, device = find_devices()[0]
        session = DeviceSession(description, cl.Context([device]), device)
        source = "kernel void stray(global int *a) { a[1 << 30] = 1; }"
        problem = write_problem(source, buffer_of("int32", 4))
        with pytest.raises(KernelRunError, match=r"stray could not be run.*ILLEGAL_ADDRESS"):
            run_whole(session, problem, seed=0)
        with pytest.raises(BrokenDeviceError, match="ILLEGAL_ADDRESS"):
            open_session(description, device)


@pytest.mark.device
def test_parts_of_buffers_are_copied_filled_and_mapped(session: DeviceSession) -> None:
    """Each copy has its ranges, and ranges stay inside."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    whole = cl.Buffer(session.context, flags, hostbuf=np.arange(16, dtype=np.int32))
    cl.enqueue_fill_buffer(session.queue, whole, np.zeros(1, dtype=np.uint8), 24, 16)
    cl.enqueue_copy(session.queue, whole, whole, src_offset=12, dst_offset=0, byte_count=8)
    mapped, _ = cl.enqueue_map_buffer(
        session.queue, whole, cl.map_flags.WRITE, 60, (1,), np.dtype(np.int32)
    )  # fmt: skip
    mapped[0] = 99
    base: Any = mapped.base
    base.release(session.queue)
    content = np.empty(16, dtype=np.int32)
    cl.enqueue_copy(session.queue, content, whole)
    assert content.tolist() == [3, 4, 2, 3, 4, 5, 0, 0, 0, 0, 10, 11, 12, 13, 14, 99]
    with pytest.raises(KernelRunError, match="68 bytes of a buffer of 64"):
        cl.enqueue_copy(session.queue, np.empty(1, dtype=np.int32), whole, src_offset=64)
