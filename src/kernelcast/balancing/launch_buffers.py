"""Memory that the host and the devices' processes share, arrays in it, and results from it."""

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import Collect, MemoryRange
from kernelcast.balancing.work import BoolArray

Bytes = npt.NDArray[np.uint8]
_PIECE_BYTES = 1 << 22
_WORKERS = min(8, os.cpu_count() or 1)


class SharedMemory:
    """Memory behind a descriptor that child processes inherit; belongs to it from now on."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # compilers that drivers start must not keep it
        self.descriptor = descriptor
        self.size = 0
        self._bytes: Bytes | None = None

    @classmethod
    def make(cls) -> "SharedMemory":
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
        if self._bytes is None:
            raise ValueError("the shared memory is closed")
        return self._bytes[place.start : place.start + place.size]

    def close(self) -> None:
        self._bytes = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Return a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


class LaunchBuffers:
    """The buffers of a launch in shared memory."""

    def __init__(
        self,
        sizes: Mapping[int, int],
        ranges: Mapping[int, Callable[[BoolArray], list[tuple[int, int]]]],
        compared: Sequence[int],
        devices: int,
    ) -> None:
        self.size = 0
        self._ranges = ranges
        self.places = {index: self._add(size) for index, size in sizes.items()}
        # Only those that are written to take up memory.
        self._copies = {
            index: [self._add(sizes[index]) for _ in range(devices)] for index in compared
        }

    def _add(self, size: int) -> MemoryRange:
        """Take room for a buffer, from the beginning of a page on."""
        place = MemoryRange(start=self.size, size=size)
        self.size += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        return place

    @property
    def result_bytes(self) -> dict[int, int]:
        """Bytes that all devices together give back, by buffer, unless they write in place."""
        return {index: self.places[index].size for index in self._ranges}

    def put(self, memory: SharedMemory, arrays: Mapping[int, Bytes]) -> None:
        _copy((memory.view(self.places[index]), array) for index, array in arrays.items())

    def collect(self, device: int, slabs: BoolArray) -> Collect:
        spans = {index: tuple(find(slabs)) for index, find in self._ranges.items()}
        targets = {index: self.places[index] for index in self._ranges}
        for index, copies in self._copies.items():
            spans[index] = ((0, self.places[index].size),)
            targets[index] = copies[device]
        return Collect(spans=spans, targets=targets)

    def merge(self, memory: SharedMemory, devices: Sequence[int], element: Mapping[int, int]) -> (
        dict[int, int]
    ):  # fmt: skip
        """Put compared copies together, where the first device's copy is."""
        found = dict.fromkeys(self._copies, 0)
        for index, held in self._copies.items() if len(devices) > 1 else ():
            original = memory.view(self.places[index])
            copies = [memory.view(held[device]) for device in devices]
            pieces = [slice(*piece) for piece in _cut(original.size)]
            before = [original[piece] for piece in pieces]
            after = [[copy[piece] for copy in copies] for piece in pieces]
            with ThreadPoolExecutor(_WORKERS) as pool:
                conflicts = pool.map(merge_changes, before, after, repeat(element[index]))
                found[index] = sum(conflicts)
        return found

    def take(
        self, memory: SharedMemory, arrays: Mapping[int, Bytes], devices: Sequence[int]
    ) -> None:
        results = {index: self.places[index] for index in (*self._ranges, *self._copies)}
        if devices:
            results |= {index: copies[devices[0]] for index, copies in self._copies.items()}
        _copy((arrays[index], memory.view(place)) for index, place in results.items())


def _copy(pairs: Iterable[tuple[Bytes, Bytes]]) -> None:
    """Copy arrays, large ones by several threads; the first of a pair is written."""
    pieces = [
        (target[start:stop], source[start:stop])
        for target, source in pairs
        for start, stop in _cut(target.size)
    ]
    if len(pieces) < 3:
        for target, source in pieces:
            np.copyto(target, source)
        return
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(lambda pair: np.copyto(*pair), pieces))


def _cut(size: int) -> list[tuple[int, int]]:
    return [(start, min(start + _PIECE_BYTES, size)) for start in range(0, size, _PIECE_BYTES)]


_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def merge_changes(original: Bytes, copies: Sequence[Bytes], element_bytes: int) -> int:
    """Merge copies into the first; count elements that two devices changed to different values."""
    word = _WORDS[element_bytes]
    whole = original.view(word)
    views = [one.view(word) for one in copies]
    conflicts = 0
    # Pieces that stay in a core's cache while several copies are compared.
    step = (1 << 18) // element_bytes
    for start in range(0, whole.size, step):
        piece = slice(start, start + step)
        before = whole[piece]
        found = before.copy()
        is_taken: npt.NDArray[np.bool_] | None = None
        for view in views:
            after = view[piece]
            changed = after != before
            if not changed.any():
                continue
            if is_taken is None:
                is_taken = changed
            else:
                conflicts += int((changed & is_taken & (after != found)).sum())
                is_taken = is_taken | changed
            np.copyto(found, after, where=changed)
        views[0][piece] = found
    return conflicts
