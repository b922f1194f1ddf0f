"""Launches over real devices that run side by side: Intel's CPU runtime and PoCL."""

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import kernelcast
from kernelcast.balancing.balancer import Balancer, choose_places
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.launches.devices import list_descriptions
from kernelcast.records.balance import MergeRule
from kernelcast.records.errors import CompileError, DeviceError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from support.device_queues import list_devices, put, read

pytestmark = pytest.mark.device

_SCATTER = """
kernel void scatter(global int *to, global const int *place)
{ to[place[get_global_id(0)]] = 7 * get_global_id(0) + 1; }
"""


@pytest.fixture(scope="module")
def ids() -> list[str]:
    """Give Intel's CPU runtime and PoCL; both must be there."""
    known = [one.id for one in list_descriptions()]
    found = [next((one for one in known if one.startswith(name)), None)
             for name in ("intel", "pocl")]  # fmt: skip
    if None in found:
        pytest.skip(f"needs Intel's runtime and PoCL; there are: {', '.join(known)}")
    return [one for one in found if one is not None]


@pytest.mark.parametrize("shares", [(0.5, 0.5), ()])
def test_scatter_is_merged_by_comparing(ids: list[str], shares: tuple[float, ...]) -> None:
    """Where places depend on data, all that either device changed arrives."""
    count = 64 * 1000
    place = np.random.default_rng(0).permutation(count).astype(np.int32)
    to = np.full(count, -1, np.int32)
    report = kernelcast.balance(
        Kernel(name="scatter", source=_SCATTER), NDRange(global_size=(count,), local_size=(64,)),
        [to, place], ids, settings=BalanceSettings(fixed_shares=shares),
    )  # fmt: skip
    expected = np.empty(count, np.int32)
    expected[place] = 7 * np.arange(count) + 1
    assert np.array_equal(to, expected)
    assert report.merges["to"] is MergeRule.COMPARE


_TROUBLE = """
kernel void k(global int *a, int size)
{
    int i = get_global_id(0);
#ifdef POISON
#error this device is not wanted
#endif
#ifdef CRASH
    if (i > size / 2) *(volatile global int *)(8 * (ulong)i) = 1;
#endif
    float v = a[i];
    for (int k = 0; k < size; ++k)  // so that the other device is not done before
        v = v * 0.5f + 1.0f;
    a[i] = 2 * a[i] + 1 + (v > 1e9f);
}
"""


@pytest.mark.parametrize(("macro", "told"), [("POISON", "refused the source"), ("CRASH", "died")])
def test_a_device_that_fails_takes_no_work_with_it(ids: list[str], macro: str, told: str) -> None:
    """The other one does it all, whether a compiler refuses or a process dies while it runs."""
    kernel = Kernel(name="k", source=_TROUBLE)
    places = choose_places(ids)
    # PoCL hands options of this variable to its compiler.
    failing = DevicePlace(
        device_id=places[1].device_id, cores=places[1].cores,
        environment={"POCL_EXTRA_BUILD_FLAGS": f"-D{macro}"},
    )  # fmt: skip
    data = np.arange(64 * 300, dtype=np.int32)
    ndrange = NDRange(global_size=(data.size,), local_size=(64,))
    arguments = [data, np.int32(data.size)]
    settings = BalanceSettings(fixed_shares=(0.5, 0.5) if macro == "CRASH" else ())
    with Balancer([places[0], failing], settings) as balancer:
        report = balancer.balance(kernel, ndrange, arguments)
    assert np.array_equal(data, 2 * np.arange(data.size) + 1)
    assert told in report.shares[1].failure
    if macro == "POISON":
        assert report.shares[0].work_groups == 300
        with Balancer([failing]) as alone, pytest.raises(CompileError, match="not wanted"):
            alone.balance(kernel, ndrange, arguments)
    else:
        assert places[1].device_id in report.shares[1].failure


@pytest.mark.parametrize("takes_launch", [True, False])
def test_buffers_of_pyopencl_take_the_results(ids: list[str], *, takes_launch: bool) -> None:
    """By public names: a launch of live objects, or a source with buffers; nothing else changes."""
    source = """
    kernel void add(global float4 *y, global const float *x, float4 v, local float *part, int n)
    {
        int i = get_global_id(0);
        part[get_local_id(0)] = x[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < n) y[i] = v + part[get_local_id(0)];
    }
    """
    context = cl.Context([next(iter(list_devices().values()))])
    queue = cl.CommandQueue(context)
    x = np.arange(64 * 500, dtype=np.float32)
    y = np.full((x.size, 4), 7, np.float32)
    given, result = cl.array.to_device(queue, x), put(queue, y)
    vector = cl.cltypes.make_float4(1, 2, 3, 4)  # type: ignore[attr-defined]  # made at run time
    args = [result, given, vector, cl.LocalMemory(256), np.int32(x.size - 5)]
    if takes_launch:
        kernel = cl.Kernel(cl.Program(context, source).build(), "add")
        launch = kernelcast.Launch(kernel, x.shape, (64,), args, queue=queue)
        kernelcast.balance(launch, devices=ids)
    else:
        space = kernelcast.NDRange(global_size=x.shape, local_size=(64,))
        with kernelcast.Balancer(ids) as balancer:
            balancer.balance(kernelcast.Kernel(name="add", source=source), space, args)
    expected = x[:, None] + np.arange(1, 5, dtype=np.float32)
    expected[-5:] = 7
    assert np.array_equal(read(queue, result, y), expected)
    assert np.array_equal(given.get(), x)
    with pytest.raises(kernelcast.InputError, match="share memory"):
        kernelcast.balance(kernelcast.Kernel(name="scatter", source=_SCATTER), (64,), [result] * 2)


def test_kernel_that_never_ends_is_stopped(ids: list[str]) -> None:
    """Devices that show no sign of life are given up, also in their first launch."""
    source = "kernel void k(global volatile int *a) { while (a[0] == 0) a[1] = 1; }"
    data = np.zeros(64, np.int32)
    settings = BalanceSettings(timeout_s=3.0, assumes_independence=True)
    with pytest.raises(DeviceError, match="no sign of life for 3 s"):
        kernelcast.balance(Kernel(name="k", source=source), (64,), [data], ids, settings=settings)
    assert not data.any()
