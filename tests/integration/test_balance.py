"""Launches over real devices that run side by side: Intel's CPU runtime and PoCL."""

from collections.abc import Iterator

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import kernelcast
from kernelcast.balancing.balancer import Balancer, choose_places
from kernelcast.balancing.host_arguments import read_host_arguments
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.launches.devices import list_descriptions
from kernelcast.records.balance import BalanceReport, MergeRule
from kernelcast.records.errors import CompileError, DeviceError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from support.device_queues import list_devices

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


@pytest.fixture(scope="module")
def balancer(ids: list[str]) -> Iterator[Balancer]:
    """Keep both devices open, each on a core of its own where there are two."""
    with Balancer(choose_places(ids)) as opened:
        yield opened


def _run(
    balancer: Balancer, kernel: Kernel, ndrange: NDRange, arguments: list[object], **chosen: object
) -> BalanceReport:
    settings = BalanceSettings(**chosen)  # type: ignore[arg-type]
    return balancer.balance(kernel, ndrange, read_host_arguments(arguments), settings=settings)


@pytest.mark.parametrize("shares", [(0.5, 0.5), ()])
def test_scatter_is_merged_by_comparing(balancer: Balancer, shares: tuple[float, ...]) -> None:
    """Where places depend on data, all that either device changed arrives."""
    count = 64 * 1000
    place = np.random.default_rng(0).permutation(count).astype(np.int32)
    to = np.full(count, -1, np.int32)
    report = _run(
        balancer,
        Kernel(name="scatter", source=_SCATTER),
        NDRange(global_size=(count,), local_size=(64,)),
        [to, place],
        fixed_shares=shares,
    )
    expected = np.empty(count, np.int32)
    expected[place] = 7 * np.arange(count) + 1
    assert np.array_equal(to, expected)
    assert report.merges["to"] is MergeRule.COMPARE


def test_kernel_that_one_driver_rejects(ids: list[str]) -> None:
    """The other device does all the work; the report says whose compiler refused and why."""
    kernel = Kernel(
        name="k",
        source="""
        #ifdef POISON
        #error this device is not wanted
        #endif
        kernel void k(global int *a)
        {
            float v = a[get_global_id(0)];
            for (int i = 0; i < 300000; ++i)  // so that the other one is not done before
                v = v * 0.5f + 1.0f;
            a[get_global_id(0)] = 3 + (v > 1e9f);
        }
        """,
    )
    places = choose_places(ids)
    # PoCL hands options of this variable to its compiler.
    poisoned = DevicePlace(
        device_id=places[1].device_id,
        cores=places[1].cores,
        environment={"POCL_EXTRA_BUILD_FLAGS": "-DPOISON"},
    )
    data = np.zeros(64 * 300, np.int32)
    ndrange = NDRange(global_size=(data.size,), local_size=(64,))
    with Balancer([places[0], poisoned]) as balancer:
        report = balancer.balance(kernel, ndrange, read_host_arguments([data]))
    assert (data == 3).all()
    assert "refused the source" in report.shares[1].failure
    assert report.shares[0].work_groups == 300
    with Balancer([poisoned]) as alone, pytest.raises(CompileError, match="not wanted"):
        alone.balance(kernel, ndrange, read_host_arguments([data]))


def test_device_that_crashes_is_replaced(ids: list[str]) -> None:
    """A process that dies while it runs takes no work with it."""
    kernel = Kernel(
        name="k",
        source="""
        kernel void k(global int *a, int size)
        {
            int i = get_global_id(0);
        #ifdef CRASH
            if (i > size / 2) *(volatile global int *)(8 * (ulong)i) = 1;
        #endif
            a[i] = 2 * a[i] + 1;
        }
        """,
    )
    places = choose_places(ids)
    crashing = DevicePlace(
        device_id=places[1].device_id,
        cores=places[1].cores,
        environment={"POCL_EXTRA_BUILD_FLAGS": "-DCRASH"},
    )
    data = np.arange(64 * 300, dtype=np.int32)
    ndrange = NDRange(global_size=(data.size,), local_size=(64,))
    arguments = [data, np.int32(data.size)]
    settings = BalanceSettings(fixed_shares=(0.5, 0.5))
    with Balancer([places[0], crashing], settings) as balancer:
        report = balancer.balance(kernel, ndrange, read_host_arguments(arguments))
    assert np.array_equal(data, 2 * np.arange(data.size) + 1)
    assert "died" in report.shares[1].failure
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
    given, result = (
        cl.array.to_device(queue, x),
        cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=y),
    )
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
    found = np.empty_like(y)
    cl.enqueue_copy(queue, found, result)
    expected = x[:, None] + np.arange(1, 5, dtype=np.float32)
    expected[-5:] = 7
    assert np.array_equal(found, expected)
    assert np.array_equal(given.get(), x)
    with pytest.raises(kernelcast.InputError, match="share memory"):
        kernelcast.balance(kernelcast.Kernel(name="scatter", source=_SCATTER), (64,), [result] * 2)


@pytest.mark.parametrize("count", [1, 2])
def test_kernel_that_never_ends_is_stopped(ids: list[str], count: int) -> None:
    """Devices that show no sign of life are given up, also in their first launch."""
    source = "kernel void k(global volatile int *a) { while (a[0] == 0) a[1] = 1; }"
    data = np.zeros(64, np.int32)
    settings = BalanceSettings(timeout_s=3.0, assumes_independence=True)
    with pytest.raises(DeviceError, match="no sign of life for 3 s"):
        kernelcast.balance(
            Kernel(name="k", source=source), (64,), [data], ids[:count], settings=settings
        )
    assert not data.any()
