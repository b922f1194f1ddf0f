"""What samples read and write: copies of a program's buffers, and the contents of problems."""

import mmap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kernelcast import Launch
from kernelcast.features.counting.work_profile import WorkProfile
from kernelcast.launches import weighing
from kernelcast.launches.live import LiveLaunch, describe_live
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.weighing import apply_profile
from kernelcast.predictor import api
from kernelcast.records.arguments import Access, BufferArgument, ElementType, Init
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.arguments import make_array
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments, prepared_problem
from kernelcast.sampling.scratch import BufferPool
from kernelcast.sampling.session import DeviceSession
from support.device_queues import put, read
from support.problems import write_problem

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
kernel void follow(global int *next, int n)
{
    int i = get_global_id(0);
    next[i] = next[next[i]];
}
kernel void rows(global const int *begin, global const int *value, global int *out)
{
    int sum = 0;
    for (int k = begin[get_global_id(0)]; k < begin[get_global_id(0) + 1]; ++k)
        sum += value[k];
    out[get_global_id(0)] = sum;
}
"""
BOX = GroupBox(start=(5000,), shape=(40,))
OURS = slice(5000 * 64, 5040 * 64)
SEED = 3
FILLED = "kernel void k() {}"  # is never built
FLOAT = ElementType("float32")
Numbers = npt.NDArray[np.generic]


def describe(session: DeviceSession, name: str, *arguments: object) -> LiveLaunch:
    program = cl.Program(session.context, SOURCE).build()
    queue = cl.CommandQueue(session.context, session.device)
    launch = Launch(cl.Kernel(program, name), (ITEMS,), (64,), arguments, queue=queue)
    return describe_live(launch)


def run_box(live: LiveLaunch, accesses: Sequence[Access | None], place: int, like: Numbers) -> (
    tuple[Numbers, Numbers]
):  # fmt: skip
    """Run a box, and then all of the launch; give what both leave in a copy."""
    with live.session.lock, live.hold(inferred=accesses) as launch:
        launch.time_boxes([BOX])
        sampled = read(live.session.queue, launch.scratch.arguments[place], like)
        launch.time_whole()
        whole = read(live.session.queue, launch.scratch.arguments[place], like)
    return sampled, whole


@pytest.mark.parametrize("is_part", [False, True])
def test_boxes_find_what_they_read_and_change_copies_only(
    session: DeviceSession, *, is_part: bool
) -> None:
    """A stencil at the edges of what was copied, as in the whole launch; twice, in kept copies."""
    align = max(4096, session.device.mem_base_addr_align // 8) if is_part else 0
    for seed in (0, 1):
        draw = np.random.default_rng(seed)
        a, parent = (draw.random(2 * ITEMS, dtype=np.float32) for _ in range(2))
        users = [put(session.queue, one) for one in (a, parent)]
        part = users[1].get_sub_region(align, 4 * ITEMS) if is_part else users[1]
        b = parent[align // 4 :][:ITEMS]
        live = describe(session, "smooth", users[0], part, np.int32(ITEMS))
        sampled, whole = run_box(live, [Access.READ, Access.READ_WRITE, None], 1, b)
        padded = np.pad(a[:ITEMS], 1, mode="edge")
        expected = np.float32(0.5) * (padded[:-2] + padded[2:]) + b
        np.testing.assert_allclose(sampled[OURS], expected[OURS], rtol=1e-6)
        np.testing.assert_allclose(whole, expected, rtol=1e-6)
        for user, content in zip(users, (a, parent), strict=True):
            assert np.array_equal(read(session.queue, user, content), content)


def test_only_what_is_touched_and_written_is_copied(session: DeviceSession) -> None:
    """Of a buffer of 4 MiB two pages, and those beside them; nothing of one that is only read."""
    users = [put(session.queue, np.ones(ITEMS, np.float32)) for _ in range(2)]
    live = describe(session, "smooth", *users, np.int32(ITEMS))
    live.session.buffers.close()
    with session.lock, live.hold(inferred=[Access.READ, None, None]) as launch:
        launch.time_boxes([BOX])
        (parts,) = (one.list_all() for one in launch.scratch._ready.values())
        assert sum(high - low for low, high in parts) < 1 << 16
        assert parts[0][0] <= BOX.start[0] * 256 < parts[-1][1]
        assert launch.scratch.arguments[0] == users[0]
    assert live.session.buffers.kept_bytes == users[1].size


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
    with session.lock, follow.hold(inferred=[Access.READ_WRITE, None]) as launch:
        copy = launch.scratch.arguments[0]
        assert np.array_equal(read(session.queue, copy, order), order)


def test_kept_copies_stay_within_their_limit(session: DeviceSession) -> None:
    """The oldest go first; what is given again for something else holds nothing known."""
    pool = BufferPool(session.context, session.queue, session.description, most_bytes=3 << 12)
    buffers = [pool.get(size << 12) for size in (1, 2, 1)]
    pool.give_back(buffers)
    assert pool.kept_bytes == 3 << 12
    assert pool.get(2 << 12) is buffers[1]
    pool.close()
    assert pool.kept_bytes == 0
    recipe = BufferArgument(element=ElementType("int32"), count=1024, init=Init.ARANGE), 0
    [filled] = pool.take([recipe])
    pool.give_back([filled])
    assert pool.get(filled.size) is filled
    cl.enqueue_copy(session.queue, filled, np.zeros(1024, np.int32))
    pool.give_back([filled])
    [again] = pool.take([recipe])
    numbers = np.arange(1024, dtype=np.int32)
    assert np.array_equal(read(session.queue, again, numbers), numbers)


@pytest.mark.parametrize("size", [1, 4096, 4097, 64 * 4096 + 1])
def test_reading_all_pages_changes_nothing(session: DeviceSession, size: int) -> None:
    """Of a buffer that ends within a page, or within a work-item's share of the pages."""
    content = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    buffer = put(session.queue, content)
    session.touch([(buffer, size)], mmap.PAGESIZE)
    assert (read(session.queue, buffer, content) == content).all()


def test_a_kernel_that_fails_leaves_buffers_alone(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns a driver's failure half-way into an error of ours, buffers untouched."""
    calls = 0
    original = cl.enqueue_nd_range_kernel

    def fail(queue: cl.CommandQueue, kernel: cl.Kernel, *arguments: object) -> cl.Event:
        nonlocal calls
        calls += kernel.function_name == "follow"
        if calls > 2:
            kernel.set_arg(0, np.int8(0))  # the driver itself refuses this
        return original(queue, kernel, *arguments)

    content = np.arange(ITEMS, dtype=np.int32)[::-1].copy()
    user = put(session.queue, content)
    live = describe(session, "follow", user, np.int32(ITEMS))
    monkeypatch.setattr("kernelcast.sampling.launch.enqueue_native", fail)
    boxes = [GroupBox(start=(start,), shape=(20,)) for start in range(1, 200, 40)]
    with (
        session.lock,
        live.hold(inferred=[None, None]) as launch,
        pytest.raises(KernelcastError, match=r"kernel follow could not be run"),
    ):
        launch.time_boxes(boxes)
    assert np.array_equal(read(session.queue, user, content), content)


def test_row_pointers_on_the_device_tell_the_work(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples of a program's own buffers are weighed by what these hold, which stays as it is."""
    lengths = np.repeat(np.random.default_rng(1).integers(1, 200, 128), 256)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    contents = [begin, np.ones(begin[-1], np.int32), np.zeros(len(lengths), np.int32)]
    buffers = [put(session.queue, one) for one in contents]
    program = cl.Program(session.context, SOURCE).build()
    queue = cl.CommandQueue(session.context, session.device)
    profiles: list[WorkProfile] = []

    def note(run: SampleRun, profile: WorkProfile, parts: int) -> SampleRun:
        profiles.append(profile)
        return apply_profile(run, profile, parts)

    monkeypatch.setattr(weighing, "apply_profile", note)
    found = api.estimate(program.rows, (len(lengths),), (64,), buffers, queue=queue)
    assert found.seconds > 0
    profile = profiles[0]  # one for each moment
    assert profile.is_exact
    assert profile.spread == pytest.approx(np.std(lengths) / np.mean(lengths), rel=0.1)
    for buffer, content in zip(buffers, contents, strict=True):
        np.testing.assert_array_equal(read(session.queue, buffer, content), content)


def test_of_written_buffers_only_what_is_touched_is_filled(session: DeviceSession) -> None:
    """Fills more where more work-groups run, restores it, and all before the whole launch."""
    large = BufferArgument(element=FLOAT, count=1 << 19, init=Init.UNIFORM, low=2, high=5)
    zeros = replace(large, init=Init.ZEROS, low=None, high=None)
    problem = write_problem(FILLED, large, large, zeros, local=None)
    accesses = [Access.READ, Access.READ_WRITE, Access.WRITE]

    def list_ranges(box: GroupBox) -> dict[int, list[tuple[int, int]]]:
        return {n: [(box.start[0] << 12, box.start[0] + box.shape[0] << 12)] for n in range(3)}

    reach: Any = SimpleNamespace(places=(0, 1, 2), list_ranges=list_ranges)
    reach.without = lambda _: reach

    def is_right(held: ProblemArguments, place: int, part: slice = np.s_[:]) -> bool:
        wanted = make_array(large, seed=1000 * SEED + place)
        return np.array_equal(
            read(session.queue, held.arguments[place], wanted)[part], wanted[part]
        )

    with session.lock:
        session.buffers.close()
        held = ProblemArguments(session, problem, accesses, seed=SEED, reach=reach)
        assert len(held.whole_buffers) == (1 if session.buffers.fills_in_place else 3)
        assert is_right(held, 0)
        for start, count in ((3, 2), (100, 1), (4, 10)):
            held.prepare([GroupBox(start=(start,), shape=(count,))])
            part = slice(start * 1024, (start + count) * 1024)
            assert is_right(held, 1, part)
        for prepare, found in ((lambda: None, part), (held.prepare_whole, np.s_[:])):
            prepare()
            cl.enqueue_fill_buffer(session.queue, held.arguments[1], np.float32(9), 0, 4 << 19)
            held.refresh()
            assert is_right(held, 1, found)
        held.release()
        again = ProblemArguments(session, problem, accesses, seed=SEED)
        assert is_right(again, 1)
        again.release()
        session.buffers.close()


def test_a_file_is_read_each_time(session: DeviceSession, tmp_path: Path) -> None:
    """Takes no content of a file for what the file holds now."""
    path = tmp_path / "a.npy"
    argument = BufferArgument(element=FLOAT, count=100, init=Init.FILE, path=path)
    problem = write_problem(FILLED, argument, local=None)
    for value in (1.0, 2.0):
        content = np.full(100, value, dtype=np.float32)
        np.save(path, content)
        with session.lock:
            held = ProblemArguments(session, problem, [Access.READ], seed=SEED)
            assert (read(session.queue, held.arguments[0], content) == value).all()
            held.release()


@pytest.mark.parametrize("init", [one for one in Init if one is not Init.FILE])
@pytest.mark.parametrize("lanes", [1, 3])
def test_buffers_hold_their_recipe(session: DeviceSession, init: Init, lanes: int) -> None:
    """Fills a buffer of the device with exactly what the recipe gives on the host."""
    described = BufferArgument(element=ElementType("float32", lanes), count=70_001, init=init)
    [held] = session.buffers.take([(described, 4002)])
    wanted = make_array(described, seed=4002)
    assert np.array_equal(read(session.queue, held, wanted), wanted)
    held.release()


PICTURES = """\
code: |
  typedef struct { float scale; int shift; } settings;
  kernel void k(read_only image2d_t source, sampler_t s, settings given, global const int *none,
                write_only image2d_t copy, global float *sums)
  {
      int2 at = (int2)(get_global_id(0), get_global_id(1));
      float4 pixel = read_imagef(source, s, at);
      write_imagef(copy, at, pixel);
      sums[get_global_id(1) * 64 + get_global_id(0)] = given.scale * pixel.y + (none ? 1 : 0);
  }
kernel: k
global_size: [64, 32]
local_size: [8, 8]
args:
  - {image: rgba, channel: unorm_int8, size: [64, 32], init: pixels.npy}
  - {sampler: nearest}
  - {struct: {scale: float, shift: int}, value: {scale: 2, shift: 1}}
  - {buffer: null}
  - {image: rgba, channel: unorm_int8, size: [64, 32], init: zeros}
  - {buffer: float, count: 2048}
"""


def test_images_samplers_structures_and_null_reach_the_kernel(
    session: DeviceSession, tmp_path: Path
) -> None:
    """Computes with an image's pixels, a structure's fields and a pointer that is NULL."""
    if not session.device.image_support:
        pytest.skip("the device has no images")
    pixels = np.arange(64 * 32 * 4, dtype=np.uint8).reshape(-1, 4)
    np.save(tmp_path / "pixels.npy", pixels)
    (tmp_path / "k.yaml").write_text(PICTURES)
    problem = read_problem(tmp_path / "k.yaml")
    with session.lock:
        with prepared_problem(session, problem, seed=SEED) as launch:
            assert launch.time_boxes([GroupBox(start=(0, 0), shape=(8, 2))])[0] > 0
            assert launch.time_whole() > 0
        held = ProblemArguments(session, problem, [Access.READ_WRITE] * 6, seed=SEED)
        built = session.whole_kernel(problem.kernel).kernel
        built(session.queue, (64, 32), (8, 8), *held.arguments)
        sums = read(session.queue, held.arguments[5], np.empty(2048, np.float32))
        held.release()
    np.testing.assert_allclose(sums, pixels[:, 1] * (2 / 255), rtol=1e-5)
