"""Memory that the host and the devices' processes share, without a name that could be left over."""

import mmap
import os
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import MemoryRange

Bytes = npt.NDArray[np.uint8]
_PAGE = mmap.PAGESIZE


class SharedMemory:
    """Memory behind a descriptor that child processes inherit; belongs to it from now on."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # compilers that drivers start must not keep it
        self.descriptor = descriptor
        self.size = 0
        self._bytes: Bytes | None = None

    @classmethod
    def make(cls) -> "SharedMemory":
        """Make memory, of no size yet."""
        if hasattr(os, "memfd_create"):
            return cls(os.memfd_create("kernelcast"))
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()))

    def grow(self, size: int) -> None:
        """Make it at least so large; views of before still show it."""
        if size > self.size:
            os.ftruncate(self.descriptor, size)
            self.map(size)

    def map(self, size: int) -> None:
        """Look at so much of it, all that there is by now."""
        if size != self.size:
            self._bytes = np.frombuffer(mmap.mmap(self.descriptor, size), dtype=np.uint8)
            self.size = size

    def view(self, place: MemoryRange) -> Bytes:
        """Give the bytes of a place."""
        if self._bytes is None:
            msg = "the shared memory is closed"
            raise ValueError(msg)
        return self._bytes[place.start : place.start + place.size]

    def close(self) -> None:
        """Give it back; views that are still held keep its pages until they go."""
        self._bytes = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Layout:
    """Places of buffers in shared memory, each at the beginning of a page."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, size: int) -> MemoryRange:
        """Take room for a buffer."""
        place = MemoryRange(start=self.size, size=size)
        self.size += -(-size // _PAGE) * _PAGE
        return place


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Give a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)
