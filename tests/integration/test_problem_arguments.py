from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Access, Argument, BufferArgument, ElementType, Init
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import make_array, shape_of
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments, prepared_problem
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

SEED = 3
FLOAT, INT = ElementType("float32"), ElementType("int32")
RANDOM = BufferArgument(element=FLOAT, count=5000, init=Init.UNIFORM, low=2, high=5)
ZEROS = BufferArgument(element=FLOAT, count=5000, init=Init.ZEROS)


def make_problem(*arguments: Argument) -> Problem:
    """Describe a launch; its kernel is never built."""
    return Problem(
        name="p",
        kernel=Kernel(name="k", source="kernel void k() {}"),
        ndrange=NDRange(global_size=(64,)),
        arguments=arguments,
    )


def hold(session: DeviceSession, problem: Problem, accesses: Sequence[Access]) -> ProblemArguments:
    """Put a problem's arguments onto the device."""
    return ProblemArguments(session, problem, accesses, seed=SEED)


def read(session: DeviceSession, held: ProblemArguments, place: int, count: int) -> np.ndarray:
    """Read the first elements of a buffer, as of the type of a random one."""
    content = np.empty(count, dtype=np.float32)
    cl.enqueue_copy(session.queue, content, held.arguments[place])
    return content


def spoil(session: DeviceSession, held: ProblemArguments, place: int) -> None:
    """Write into a buffer as a kernel would."""
    count = held.arguments[place].size // 4
    cl.enqueue_copy(session.queue, held.arguments[place], np.full(count, 9, dtype=np.float32))


def expect(argument: BufferArgument, place: int) -> np.ndarray:
    """Give what a buffer must hold."""
    return make_array(argument, seed=1000 * SEED + place).view(np.float32)


@dataclass(frozen=True)
class FirstWorkItems:
    """Work-group g touches the bytes from 4096 g on of the buffers at places."""

    places: frozenset[int]
    bytes_each: int = 4096

    def list_ranges(self, box: GroupBox) -> dict[int, list[tuple[int, int]]]:
        """Give one range per place."""
        first, count = box.start[0], box.shape[0]
        one = (first * self.bytes_each, (first + count) * self.bytes_each)
        return {place: [one] for place in self.places}


def test_of_written_buffers_only_what_is_touched_is_filled(session: DeviceSession) -> None:
    """Fills more where more work-groups run, restores it, and all before the whole launch."""
    large = replace(RANDOM, count=1 << 19)
    reach = FirstWorkItems(frozenset({0, 1, 2}))
    problem = make_problem(large, large, replace(ZEROS, count=1 << 19))
    accesses = [Access.READ, Access.READ_WRITE, Access.WRITE]
    with session.lock:
        session.buffers.close()
        held = ProblemArguments(session, problem, accesses, seed=SEED, reach=reach)
        is_partial = session.buffers.fills_in_place
        assert len(held.whole_buffers) == (1 if is_partial else 3)
        assert np.array_equal(read(session, held, 0, large.count), expect(large, 0))
        for start, count in ((3, 2), (100, 1), (4, 10)):
            held.prepare([GroupBox(start=(start,), shape=(count,))])
            part = slice(start * 1024, (start + count) * 1024)
            found = read(session, held, 1, large.count)
            assert np.array_equal(found[part], expect(large, 1)[part])
        spoil(session, held, 1)
        held.refresh()
        assert np.array_equal(read(session, held, 1, large.count)[part], expect(large, 1)[part])
        held.prepare_whole()
        spoil(session, held, 2)
        held.refresh()
        assert np.array_equal(read(session, held, 1, large.count), expect(large, 1))
        held.release()
        again = hold(session, problem, accesses)
        assert np.array_equal(read(session, again, 1, large.count), expect(large, 1))
        again.release()
        session.buffers.close()


def test_a_file_is_read_each_time(session: DeviceSession, tmp_path: Path) -> None:
    """Takes no content of a file for what the file holds now."""
    path = tmp_path / "a.npy"
    argument = BufferArgument(element=FLOAT, count=100, init=Init.FILE, path=path)
    with session.lock:
        for value in (1.0, 2.0):
            np.save(path, np.full(100, value, dtype=np.float32))
            held = hold(session, make_problem(argument), [Access.READ])
            assert (read(session, held, 0, 100) == value).all()
            held.release()


PICTURES = """
typedef struct { float scale; int shift; } settings;
kernel void k(read_only image2d_t source, sampler_t s, settings given, global const int *none,
              write_only image2d_t copy, global float *sums)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 pixel = read_imagef(source, s, at);
    write_imagef(copy, at, pixel);
    sums[get_global_id(1) * 64 + get_global_id(0)] = given.scale * pixel.y + (none ? 1 : 0);
}
"""


def test_images_samplers_structures_and_null_reach_the_kernel(
    session: DeviceSession, tmp_path: Path
) -> None:
    """Computes with an image's pixels, a structure's fields and a pointer that is NULL."""
    pixels = np.arange(64 * 32 * 4, dtype=np.uint8).reshape(-1, 4)
    np.save(tmp_path / "pixels.npy", pixels)
    (tmp_path / "k.cl").write_text(PICTURES)
    image = "{image: rgba, channel: unorm_int8, size: [64, 32], init: pixels.npy}"
    (tmp_path / "k.yaml").write_text(f"""
source: k.cl
kernel: k
global_size: [64, 32]
local_size: [8, 8]
args:
  - {image}
  - {{sampler: nearest}}
  - {{struct: {{scale: float, shift: int}}, value: {{scale: 2, shift: 1}}}}
  - {{buffer: null}}
  - {image.replace("init: pixels.npy", "init: zeros")}
  - {{buffer: float, count: 2048}}
""")
    if not session.device.image_support:
        pytest.skip("the device has no images")
    problem = read_problem(tmp_path / "k.yaml")
    with session.lock, prepared_problem(session, problem, OpenCLLaunch, seed=SEED) as launch:
        assert launch.time_boxes([GroupBox(start=(0, 0), shape=(8, 2))])[0] > 0
        assert launch.time_whole() > 0
        built = session.whole_kernel(problem.kernel).kernel
        held = hold(session, problem, [Access.READ_WRITE] * 6)
        built.set_args(*held.arguments)
        cl.enqueue_nd_range_kernel(session.queue, built, (64, 32), (8, 8))
        sums = read(session, held, 5, 2048)
        held.release()
    np.testing.assert_allclose(sums, pixels[:, 1] * (2 / 255), rtol=1e-5)


@pytest.mark.parametrize("init", [one for one in Init if one is not Init.FILE])
@pytest.mark.parametrize("lanes", [1, 3])
def test_buffers_hold_their_recipe(session: DeviceSession, init: Init, lanes: int) -> None:
    """Fills a buffer of the device with exactly what the recipe gives on the host."""
    described = BufferArgument(element=ElementType("float32", lanes), count=70_001, init=init)
    [held] = session.buffers.take([(described, 4002)])
    buffer = held.buffer
    found = np.empty(shape_of(described), dtype=np.float32)
    cl.enqueue_copy(session.queue, found, buffer)
    buffer.release()
    assert np.array_equal(found, make_array(described, seed=4002))
