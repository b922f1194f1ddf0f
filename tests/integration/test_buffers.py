import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from kernelcast.features.counting.work_profile import WorkProfile
from kernelcast.launches import weighing
from kernelcast.launches.weighing import apply_profile
from kernelcast.predictor import api
from kernelcast.records.arguments import Access, ElementType
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun
from kernelcast.sampling import launch as launch_module
from kernelcast.sampling.device_check import Probe
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.user_arguments import hold_buffer
from support.device_queues import put, read

pytestmark = pytest.mark.device

ITEMS = 32 * 256
NDRANGE = NDRange(global_size=(ITEMS,), local_size=(32,))
UPDATE = Kernel(
    name="update",
    source="""
kernel void update(global int *a, global const int *b, global int *c)
{
    size_t i = get_global_id(0);
    a[i] += b[i] + (int)get_group_id(0);
    c[i] = a[i];
}
""",
)
SAMPLE_BOXES = [GroupBox(start=(start,), shape=(40,)) for start in (3, 100, 200)]
BOXES = [GroupBox(start=(start,), shape=(20,)) for start in range(1, 200, 40)]
Bytes = npt.NDArray[np.int32]


def make_content(seed: int) -> Bytes:
    """Draw the content of a buffer."""
    return np.random.default_rng(seed).integers(-1000, 1000, ITEMS, dtype=np.int32)


@pytest.mark.parametrize("most_cached_bytes", [0, 1 << 30], ids=["large", "cached"])
def test_buffers_are_read_and_nothing_is_written(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch, most_cached_bytes: int
) -> None:
    """Every line of a launch's buffers at each moment, where caches hold them together."""
    seen: list[tuple[list[int], int]] = []
    touch = Probe.touch

    def spy(probe: Probe, buffers: Sequence[tuple[cl.Buffer, int]], step_bytes: int) -> None:
        seen.append(([size for _, size in buffers], step_bytes))
        touch(probe, buffers, step_bytes)

    monkeypatch.setattr(launch_module, "_MOST_CACHED_BYTES", most_cached_bytes)

    monkeypatch.setattr(Probe, "touch", spy)
    user = UserBuffers(session)
    with OpenCLLaunch(session, UPDATE, NDRANGE, user.buffers, [None] * 3) as launch:
        launch.settle()
        launch.settle()
    are_read = most_cached_bytes and session.works_in_host_memory
    expected = [([4 * ITEMS] * 3, 64)] * 2 if are_read else []
    assert seen == expected
    assert user.are_untouched


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 64 * 4096 + 1])
def test_pages_of_any_number_are_read(session: DeviceSession, size: int) -> None:
    """A buffer that ends within a page, or within a work-item's share of the pages."""
    content = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(session.context, flags, hostbuf=content)
    session.probe.touch([(buffer, size)], mmap.PAGESIZE)
    found = np.empty_like(content)
    cl.enqueue_copy(session.queue, found, buffer)
    assert (found == content).all()


class UserBuffers:
    """Three user's buffers that remember what they held."""

    def __init__(self, session: DeviceSession) -> None:
        self._session = session
        self.before = [make_content(seed) for seed in range(3)]
        self.buffers = [put(session.queue, content) for content in self.before]

    @property
    def are_untouched(self) -> bool:
        """Whether every buffer is bit for bit what it was."""
        return all(
            np.array_equal(read(self._session.queue, buffer, content), content)
            for buffer, content in zip(self.buffers, self.before, strict=True)
        )

    def launch(self, kernel: Kernel = UPDATE) -> OpenCLLaunch:
        """Prepare a launch on the buffers."""
        accesses = [Access.READ_WRITE, Access.READ, Access.WRITE]
        return OpenCLLaunch(self._session, kernel, NDRANGE, self.buffers, accesses)


@pytest.fixture
def users(session: DeviceSession) -> UserBuffers:
    """Give fresh user's buffers."""
    return UserBuffers(session)


@pytest.fixture
def launch(users: UserBuffers) -> OpenCLLaunch:
    """Prepare a fresh launch."""
    return users.launch()


def test_boxes_are_timed(launch: OpenCLLaunch) -> None:
    """One positive duration for each box; a box that leaves the index space is refused."""
    counts = launch.ndrange.group_counts
    launch.warm_up(SAMPLE_BOXES[0])
    launch.settle()
    durations = launch.time_boxes(SAMPLE_BOXES)
    assert len(durations) == len(SAMPLE_BOXES)
    assert all(0 < duration < float("inf") for duration in durations)
    assert launch.time_boxes([]) == []
    assert 0 < launch.time_whole() < float("inf")
    for start, shape in ((counts[0], 1), (0, counts[0] + 1), (-1, 1)):
        outside = GroupBox(start=(start,), shape=(shape,))
        with pytest.raises(InputError):
            launch.time_boxes([SAMPLE_BOXES[0], outside])
    assert len(launch.time_boxes(SAMPLE_BOXES[:1])) == 1
    assert launch.launch_overhead_s >= 0
    assert launch.saturation.p_sat.value >= 1
    assert launch.saturation.concurrency >= 1


def test_whole_runs_start_from_true_content(session: DeviceSession, users: UserBuffers) -> None:
    """Starts each whole run from the buffers' true content, so that all compute the same."""
    expected = users.before[0] + users.before[1] + np.arange(ITEMS, dtype=np.int32) // 32
    with users.launch() as launch:
        for _ in range(2):
            launch.time_boxes([GroupBox(start=(5,), shape=(9,))])
            launch.time_whole()
            assert np.array_equal(
                read(session.queue, launch._scratch.arguments[0], expected), expected
            )
            assert np.array_equal(
                read(session.queue, launch._scratch.arguments[2], expected), expected
            )


def test_a_kernel_that_fails_leaves_buffers_alone(
    users: UserBuffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns a driver's failure half-way into an error of ours, buffers untouched."""
    calls = 0
    original = cl.enqueue_nd_range_kernel

    def _fail(queue: cl.CommandQueue, kernel: cl.Kernel, *arguments: object) -> cl.Event:
        nonlocal calls
        calls += kernel.function_name == UPDATE.name
        if calls > 2:
            kernel.set_arg(0, np.int8(0))  # the driver itself refuses this
        return original(queue, kernel, *arguments)

    def _sample() -> None:
        with users.launch() as launch:
            for box in BOXES:
                launch.time_boxes([box])

    monkeypatch.setattr("kernelcast.sampling.launch.enqueue_native", _fail)
    with pytest.raises(KernelcastError, match=r"kernel update could not be run"):
        _sample()
    assert users.are_untouched


def test_read_only_buffers_are_not_copied(users: UserBuffers) -> None:
    """Copies the buffers that may be written and no other."""
    with users.launch() as launch:
        assert sum(launch._scratch._sizes.values()) == 2 * 4 * ITEMS
        assert launch._scratch.arguments[1] is users.buffers[1]


ROWS = """
kernel void rows(global const int *begin, global const int *value, global int *out)
{
    int sum = 0;
    for (int k = begin[get_global_id(0)]; k < begin[get_global_id(0) + 1]; ++k)
        sum += value[k];
    out[get_global_id(0)] = sum;
}
"""


def test_row_pointers_on_the_device_tell_the_work(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples of a program's own buffers are weighed by what these hold, which stays as it is."""
    lengths = np.repeat(np.random.default_rng(1).integers(1, 200, 128), 256)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    contents = [begin, np.ones(begin[-1], np.int32), np.zeros(len(lengths), np.int32)]
    buffers = [put(session.queue, one) for one in contents]
    program = cl.Program(session.context, ROWS).build()
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


def test_contents_are_told_apart_where_they_decide(session: DeviceSession) -> None:
    """A buffer's content comes as bytes; its digest differs with it, and only if it decides."""
    element, content = ElementType("int32"), make_content(5)
    buffer, other = put(session.queue, content), put(session.queue, content + 1)
    held = hold_buffer(session, buffer, element, is_decisive=True)
    assert held.read is not None
    np.testing.assert_array_equal(held.read().view(np.int32), content)
    assert (held.bytes, held.count) == (content.nbytes, content.size)
    assert held == hold_buffer(session, put(session.queue, content), element, is_decisive=True)
    assert held != hold_buffer(session, other, element, is_decisive=True)
    assert hold_buffer(session, buffer, element, is_decisive=False) == hold_buffer(
        session, other, element, is_decisive=False
    )
