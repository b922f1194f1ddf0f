"""Maps a device's memory into the host's."""

import numpy as np
import numpy.typing as npt

from kernelcast.sampling.opencl import cl


def map_memory(
    queue: cl.CommandQueue,
    memory: cl.Buffer,
    size_bytes: int,
    flags: cl.map_flags,
    *,
    first_byte: int = 0,
) -> npt.NDArray[np.uint8]:
    """Map bytes of a buffer, and wait for it."""
    mapped, _ = cl.enqueue_map_buffer(
        queue, memory, flags, first_byte, (size_bytes,), np.dtype(np.uint8)
    )
    found: npt.NDArray[np.uint8] = mapped
    return found


def unmap_memory(queue: cl.CommandQueue, mapped: npt.NDArray[np.uint8]) -> None:
    """Give mapped memory back, and wait for it."""
    mapped.base.release(queue)  # type: ignore[union-attr]  # its base is a MemoryMap
    queue.finish()
