"""What buffers of devices hold: recipes that fill them, and digests that tell them apart."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from kernelcast.records.arguments import BufferArgument, ElementType, Init
from kernelcast.records.errors import InputError
from kernelcast.sampling.contents import make_array, shape_of
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.user_arguments import MOST_HELD_BYTES, digest_buffer

pytestmark = pytest.mark.device


@pytest.mark.parametrize("size", [4, 2**15 + 3, MOST_HELD_BYTES + 2**20 + 4])
def test_contents_keep_their_digest(session: DeviceSession, size: int) -> None:
    """Gives the SHA-256 under which observations are kept, again and anew after any change."""
    content = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size)
    cl.enqueue_copy(session.queue, buffer, content)
    with session.lock:
        first, again = digest_buffer(session, buffer), digest_buffer(session, buffer)
        content[-1] ^= 1
        cl.enqueue_copy(session.queue, buffer, content)
        changed = digest_buffer(session, buffer)
        content[-1] ^= 1
        cl.enqueue_copy(session.queue, buffer, content)
        assert first == again == digest_buffer(session, buffer) != changed
    if size <= MOST_HELD_BYTES:
        assert first == hashlib.sha256(content.data).hexdigest()
    buffer.release()


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


def test_device_goes_on_after_a_content_that_cannot_be_made(
    session: DeviceSession, tmp_path: Path
) -> None:
    """Names the file that cannot be read, and fills the next buffer all the same."""
    described = BufferArgument(
        element=ElementType("int32"), count=8, init=Init.FILE, path=tmp_path / "none.npy"
    )
    with pytest.raises(InputError, match=r"none\.npy: cannot be read"):
        session.buffers.take([(described, 0)])
    np.save(tmp_path / "none.npy", np.arange(8, dtype=np.int32))
    buffer = session.buffers.take([(described, 0)])[0].buffer
    found = np.empty(8, dtype=np.int32)
    cl.enqueue_copy(session.queue, found, buffer)
    assert found.tolist() == [*range(8)]
