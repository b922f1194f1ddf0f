"""Copies of what samples touch only: the same results, and buffers of the program as they were."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from kernelcast import Launch
from kernelcast.launches.live import LiveLaunch, describe_live
from kernelcast.records.arguments import Access
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.buffer_pool import BufferPool
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import ScratchArguments
from kernelcast.sampling.session import DeviceSession
from support.device_queues import put, read

pytestmark = pytest.mark.device

ITEMS = 1 << 20
SOURCE = """
kernel void smooth(global float *a, global float *b, int n)
{
    int i = get_global_id(0);
    b[i] = 0.5f * (a[max(i - 1, 0)] + a[min(i + 1, n - 1)]) + b[i];
}
kernel void scatter(global int *a, global const int *place)
{
    int i = get_global_id(0);
    a[place[i]] += i;
}
kernel void count(global int *sums, global int *bound)
{
    int i = get_global_id(0);
    for (int k = 0; k < bound[i]; k++)
        sums[i] += k;
    bound[i] = bound[i] + 0;
}
kernel void follow(global int *next, int n)
{
    int i = get_global_id(0);
    next[i] = next[next[i]];
}
"""
BOX = GroupBox(start=(5000,), shape=(40,))
Numbers = npt.NDArray[np.generic]


def describe(session: DeviceSession, name: str, *arguments: object) -> LiveLaunch:
    """Describe a launch of a program's own objects."""
    program = cl.Program(session.context, SOURCE).build()
    queue = cl.CommandQueue(session.context, session.device)
    launch = Launch(cl.Kernel(program, name), (ITEMS,), (64,), arguments, queue=queue)
    return describe_live(launch)


def run_box(live: LiveLaunch, accesses: Sequence[Access | None], place: int, like: Numbers) -> (
    tuple[Numbers, Numbers]
):  # fmt: skip
    """Run a box, and then all of the launch; give what both leave in a copy."""
    with live.session.lock, live.hold(OpenCLLaunch, inferred=accesses) as launch:
        launch.time_boxes([BOX])
        sampled = read(live.session.queue, launch._scratch.arguments[place], like)
        launch.time_whole()
        whole = read(live.session.queue, launch._scratch.arguments[place], like)
    return sampled, whole


def test_boxes_find_what_they_read_and_change_copies_only(session: DeviceSession) -> None:
    """A stencil at the edges of what was copied, as in the whole launch; twice, in kept copies."""
    for seed in (0, 1):
        draw = np.random.default_rng(seed)
        a, b = (draw.random(ITEMS, dtype=np.float32) for _ in range(2))
        users = [put(session.queue, one) for one in (a, b)]
        live = describe(session, "smooth", *users, np.int32(ITEMS))
        accesses = [Access.READ, Access.READ_WRITE, None]
        sampled, whole = run_box(live, accesses, 1, b)
        padded = np.pad(a, 1, mode="edge")
        expected = np.float32(0.5) * (padded[:-2] + padded[2:]) + b
        ours = slice(BOX.start[0] * 64, (BOX.start[0] + BOX.shape[0]) * 64)
        np.testing.assert_allclose(sampled[ours], expected[ours], rtol=1e-6)
        np.testing.assert_allclose(whole, expected, rtol=1e-6)
        for user, content in zip(users, (a, b), strict=True):
            assert np.array_equal(read(session.queue, user, content), content)


def test_only_what_is_touched_is_copied(session: DeviceSession) -> None:
    """Of a buffer of 4 MiB two pages, and those beside them."""
    b = np.ones(ITEMS, np.float32)
    live = describe(
        session, "smooth", put(session.queue, b), put(session.queue, b), np.int32(ITEMS)
    )
    with session.lock, live.hold(OpenCLLaunch, inferred=[Access.READ, None, None]) as launch:
        launch.time_boxes([BOX])
        (parts,) = (one.list_all() for one in launch._scratch._ready.values())
        assert sum(high - low for low, high in parts) < 1 << 16
        assert parts[0][0] <= BOX.start[0] * 256 < parts[-1][1]


def test_what_data_decide_is_copied_whole(session: DeviceSession) -> None:
    """Writes that leave every range that the source tells of, and indices that are written."""
    order = np.random.default_rng(0).permutation(ITEMS).astype(np.int32)
    a = np.arange(ITEMS, dtype=np.int32)
    users = [put(session.queue, a), put(session.queue, order)]
    live = describe(session, "scatter", *users)
    sampled, whole = run_box(live, [Access.READ_WRITE, Access.READ], 0, a)
    expected = a.copy()
    expected[order] += a
    assert np.array_equal(whole, expected)
    assert np.count_nonzero(sampled != a) == BOX.shape[0] * 64
    assert np.array_equal(read(session.queue, users[0], a), a)
    follow = describe(session, "follow", users[1], np.int32(ITEMS))
    with session.lock, follow.hold(OpenCLLaunch, inferred=[Access.READ_WRITE, None]) as launch:
        copy = launch._scratch.arguments[0]
        assert np.array_equal(read(session.queue, copy, order), order)


class _WrongReach:
    """Expects accesses where there are none."""

    places = (0,)

    def without(self, places: Collection[int]) -> "_WrongReach":
        """Leave nothing out."""
        assert not places
        return self

    @staticmethod
    def list_ranges(box: GroupBox) -> Mapping[int, Sequence[tuple[int, int]]]:
        del box
        return {0: [(-100, 4096)]}


def test_writes_nobody_expected_change_no_buffer_of_the_program(session: DeviceSession) -> None:
    """A copy is as large as the buffer, whatever was said of the kernel."""
    content = np.full(ITEMS, 7, np.int32)
    user = put(session.queue, content)
    pool = BufferPool(session.context, session.queue, session.description)
    fill = cl.Program(session.context, "kernel void f(global int *a){a[get_global_id(0)] = 1;}")
    kernel = cl.Kernel(fill.build(), "f")
    with session.lock:
        scratch = ScratchArguments(
            session.queue, [user], [None], session.description, reach=_WrongReach(), pool=pool
        )
        scratch.prepare([BOX])
        kernel.set_args(scratch.arguments[0])
        cl.enqueue_nd_range_kernel(session.queue, kernel, (ITEMS,), (64,))
        session.queue.finish()
        assert (read(session.queue, scratch.arguments[0], content) == 1).all()
        scratch.refresh()
        scratch.prepare_whole()
        assert (read(session.queue, scratch.arguments[0], content) == 7).all()
        scratch.release()
        assert pool.kept_bytes == user.size
        pool.close()
    assert np.array_equal(read(session.queue, user, content), content)


def test_parts_of_buffers_are_copied_where_they_lie(session: DeviceSession) -> None:
    """A sub-buffer's ranges count from where it begins."""
    align = max(4096, session.device.mem_base_addr_align // 8)
    parent = np.arange(2 * ITEMS, dtype=np.float32)
    user = put(session.queue, parent)
    part = user.get_sub_region(align, 4 * ITEMS)
    zeros = put(session.queue, np.zeros(ITEMS, np.float32))
    live = describe(session, "smooth", zeros, part, np.int32(ITEMS))
    like = np.empty(ITEMS, np.float32)
    sampled, whole = run_box(live, [Access.READ, Access.READ_WRITE, None], 1, like)
    expected = parent[align // 4 :][:ITEMS]
    ours = slice(BOX.start[0] * 64, (BOX.start[0] + BOX.shape[0]) * 64)
    assert np.array_equal(sampled[ours], expected[ours])
    assert np.array_equal(whole, expected)
    assert np.array_equal(read(session.queue, user, parent), parent)


def test_kept_copies_stay_within_their_limit(session: DeviceSession) -> None:
    """The oldest go first; what is asked for again is given again."""
    pool = BufferPool(session.context, session.queue, session.description, most_bytes=3 << 12)
    buffers = [pool.get(size << 12) for size in (1, 2, 1)]
    pool.give_back(buffers)
    assert pool.kept_bytes == 3 << 12
    assert pool.get(2 << 12) is buffers[1]
    pool.close()
    assert pool.kept_bytes == 0
