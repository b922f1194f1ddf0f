"""Memory that the host and the devices' processes share, without a name that could be left over."""

import mmap
import os
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import Place

Bytes = npt.NDArray[np.uint8]
_PAGE = mmap.PAGESIZE


class SharedMemory:
    """A stretch of memory behind a descriptor that can be handed to other processes.

    Parameters
    ----------
    descriptor : int
        Of a file as large as the memory; it is ours from now on.
    size : int
        In bytes, at least 1.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        self._map = mmap.mmap(descriptor, size)
        self._bytes: Bytes | None = np.frombuffer(self._map, dtype=np.uint8)

    @classmethod
    def make(cls, size: int) -> "SharedMemory":
        """Make memory of a size."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("kernelcast")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, max(size, 1))
        return cls(descriptor, max(size, 1))

    def view(self, place: Place) -> Bytes:
        """Give the bytes of a place."""
        if self._bytes is None:
            msg = "the shared memory is closed"
            raise ValueError(msg)
        return self._bytes[place.start : place.start + place.size]

    def close(self) -> None:
        """Give it back; views that are still held keep its pages until they go."""
        self._bytes = None
        try:
            self._map.close()
        except BufferError:  # somebody holds a view
            return
        finally:
            os.close(self.descriptor)


class Layout:
    """Places of buffers in shared memory, each at the beginning of a page."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, size: int) -> Place:
        """Take room for a buffer."""
        place = Place(start=self.size, size=size)
        self.size += -(-size // _PAGE) * _PAGE
        return place


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Give a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)
