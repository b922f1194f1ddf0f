import numpy as np
import pytest

from kernelcast.records.arguments import Access
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import ScratchArguments
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

COUNT = 1024


def make_buffer(session: DeviceSession, value: float) -> cl.Buffer:
    """Make a buffer of one value."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(session.context, flags, hostbuf=np.full(COUNT, value, dtype=np.float32))


def read(session: DeviceSession, buffer: cl.Buffer) -> np.ndarray:
    """Read a buffer."""
    content = np.empty(COUNT, dtype=np.float32)
    cl.enqueue_copy(session.queue, content, buffer)
    return content


def test_copies_that_the_kernel_may_read_are_made_fresh(session: DeviceSession) -> None:
    """Restores what is read; what is only written starts as it should, and may stay as it is."""
    buffers = [make_buffer(session, value) for value in (1.0, 2.0, 3.0)]
    accesses = [Access.READ, Access.READ_WRITE, Access.WRITE]
    with session.lock:
        scratch = ScratchArguments(session.queue, buffers, accesses, session.description)
        only_read, both, only_written = scratch.arguments
        assert only_read is buffers[0]
        assert (read(session, both) == 2.0).all()
        assert (read(session, only_written) == 3.0).all()
        for copy in (both, only_written):
            cl.enqueue_copy(session.queue, copy, np.full(COUNT, 9.0, dtype=np.float32))
        scratch.refresh()
        assert (read(session, both) == 2.0).all()
        assert (read(session, only_written) == 9.0).all()
        scratch.release()
        assert [read(session, one)[0] for one in buffers] == [1.0, 2.0, 3.0]
