import numpy as np
import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession
from support.device_queues import put, read

pytestmark = pytest.mark.device

SOURCE = """
kernel void plain(global float *values)
{
    values[get_global_id(0)] *= 2.0f;
}

kernel void staged(global float *values, local float *more, int n)
{
    local float tile[512];
    float kept[300];
    for (int i = 0; i < 300; ++i)
        kept[i] = values[(i * n) % 1000];
    tile[get_local_id(0)] = values[get_global_id(0)];
    more[get_local_id(0)] = kept[get_local_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    values[get_global_id(0)] = tile[(get_local_id(0) + n) % 64] + more[0]
        + kept[kept[n % 300] > 0.0f ? n % 299 : 7];
}
"""
PLAIN = Kernel(name="plain", source=SOURCE)
STAGED = Kernel(name="staged", source=SOURCE)
NDRANGE = NDRange(global_size=(1024,), local_size=(64,))
ARRAY_BYTES = 300 * 4


def test_facts_are_what_the_source_says(session: DeviceSession) -> None:
    """Declared local memory, also where local arguments were set before; private memory tells an
    array from a scalar, or is not told at all."""
    kernel = session.whole_kernel(STAGED).kernel
    kernel.set_arg(1, cl.LocalMemory(256))
    plain, staged = (read_compiler_facts(session, one, NDRANGE) for one in (PLAIN, STAGED))
    local = [one.local_bytes_per_work_group for one in (plain, staged)]
    assert [one and one.value for one in local] == [0, 2048]
    few, many = (one.private_bytes_per_work_item for one in (plain, staged))
    assert (few is None) == (many is None)
    if few is not None and many is not None:
        assert few.value < ARRAY_BYTES <= many.value < 4 * ARRAY_BYTES


def test_sizes_fit_together(session: DeviceSession) -> None:
    """Finds work-group and sub-group sizes that agree with each other and with the device.

    Registers, spills and PTX come from NVIDIA's compiler alone.
    """
    facts, most = read_compiler_facts(session, PLAIN, NDRANGE), session.description
    multiple = facts.preferred_work_group_multiple
    assert multiple is not None
    assert multiple.value <= most.max_work_group_size
    if facts.max_work_group_size is not None:
        assert 64 <= facts.max_work_group_size.value <= most.max_work_group_size
    size, count = facts.sub_group_size, facts.sub_groups_per_work_group
    assert (size is None) == (count is None)
    if size is not None and count is not None:
        assert (count.value - 1) * size.value < NDRANGE.work_group_size
        assert NDRANGE.work_group_size <= count.value * size.value
    names = ("registers_per_work_item", "spill_store_bytes_per_work_item", "ptx_instruction_count")
    is_told = "cl_nv_compiler_options" in most.extensions
    assert [name in facts.known for name in names] == [is_told] * len(names)
    if facts.registers_per_work_item is not None:
        assert 1 <= facts.registers_per_work_item.value <= 255


MACROS = (
    "cl_khr_fp16", "cl_khr_fp64", "cl_khr_subgroups", "cl_intel_subgroups",
    "cl_intel_required_subgroup_size", "cl_nv_device_attribute_query", "__IMAGE_SUPPORT__",
    "__ENDIAN_LITTLE__", "cl_khr_int64_base_atomics", "__OPENCL_VERSION__",
)  # fmt: skip


def test_analysis_reads_the_branches_that_the_device_compiles(session: DeviceSession) -> None:
    """Defines the macros that the device's compiler defines, and no other."""
    branches = [
        f"#ifdef {macro}\na[{number}] = {macro};\n#endif" for number, macro in enumerate(MACROS)
    ]
    source = "\n".join(["kernel void k(global int *a) {", *branches, "}"])
    kernel = Kernel(name="k", source=source, dialect=session.description.dialect)
    host = np.zeros(len(MACROS), dtype=np.int32)
    buffer = put(session.queue, host)
    with session.lock:
        session.whole_kernel(kernel).kernel(session.queue, (1,), (1,), buffer)
        host = read(session.queue, buffer, host)
    stores = {access.line // 3 - 1 for access in read_facts(kernel).accesses}
    assert stores == {*np.flatnonzero(host)}
    assert session.description.dialect is not None
    major, minor = session.description.dialect.version
    assert host[-1] == 100 * major + 10 * minor
