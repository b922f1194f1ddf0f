"""What the host and the devices' processes tell each other, and the memory that they share.

Times are CLOCK_MONOTONIC's.
"""

import mmap
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.features.write_safety import SplitSafety
from kernelcast.records.balance import MergeRule, Span
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.problem import Problem

BoolArray = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
_PIECE_BYTES = 1 << 22
_WORKERS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Build the kernel, take the buffers."""

    problem: Problem
    buffers: Mapping[int, Span]
    """Where in the shared memory each one's content lies, in bytes, by its position."""
    memory_bytes: int
    in_place: frozenset[int] = frozenset()
    """Positions of buffers that all devices may use where they lie: those that are only read, and
    those that are only written, each byte by one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    boxes: tuple[GroupBox, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Write stretches of buffers, by the argument's position, into the shared memory."""

    spans: Mapping[int, tuple[Span, ...]]
    targets: Mapping[int, Span]


Command = Prepare | Run | Collect | None
"""None: drop the buffers; the device stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A command is done; it began and ended then."""

    start_s: float
    end_s: float
    device: str = ""
    """The device's name, once it is open: that is said before any command."""
    upload_s: float = 0.0
    uploaded_bytes: int = 0
    """What a device that is prepared took over, and how long that took."""
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Reply):
    """The device has failed; what its buffers hold is unknown."""

    error: KernelcastError
    is_final: bool = True


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

    def view(self, place: Span) -> Bytes:
        if self._bytes is None:
            raise ValueError("the shared memory is closed")
        return self._bytes[slice(*place)]

    def close(self) -> None:
        self._bytes = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Return a contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


class LaunchBuffers:
    """The buffers of a launch in shared memory, by the arguments' positions."""

    def __init__(
        self,
        memory: SharedMemory,
        arrays: Mapping[int, npt.NDArray[Any]],
        safety: SplitSafety,
        devices: int,
    ) -> None:
        """Take room for them, and copy what they hold."""
        self._size = 0
        self._memory, self._arrays = memory, arrays
        self.places = {index: self._add(array.nbytes) for index, array in arrays.items()}
        named = dict(zip(arrays, safety.rules.items(), strict=True))  # in the arguments' order
        self._ranges = {
            index: safety.footprints[name].spans
            for index, (name, rule) in named.items()
            if rule is MergeRule.RANGES
        }
        # Only those that are written to take up memory.
        self._copies = {
            index: [self._add(arrays[index].nbytes) for _ in range(devices)]
            for index, (_, rule) in named.items()
            if rule is MergeRule.COMPARE
        }
        # A buffer that is read and written has a copy on each device: where one fails, another one
        # repeats its part, and must find what was there before.
        self.in_place = frozenset(
            index
            for index, (name, rule) in named.items()
            if rule is MergeRule.READ or name in safety.unread
        )
        memory.grow(self._size)
        _copy((memory.view(self.places[index]), as_bytes(one)) for index, one in arrays.items())

    def _add(self, size: int) -> Span:
        """Take room for a buffer, from the beginning of a page on."""
        place = self._size, self._size + size
        self._size += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        return place

    def count_returned(self, in_place: Collection[int]) -> int:
        """Count the bytes that all devices together give back, but for what they write in place."""
        return sum(self._arrays[index].nbytes for index in self._ranges if index not in in_place)

    def collect(self, device: int, slabs: BoolArray) -> Collect:
        spans = {index: tuple(find(slabs)) for index, find in self._ranges.items()}
        targets = {index: self.places[index] for index in self._ranges}
        for index, copies in self._copies.items():
            spans[index] = ((0, self._arrays[index].nbytes),)
            targets[index] = copies[device]
        return Collect(spans=spans, targets=targets)

    def merge(self, devices: Sequence[int]) -> dict[int, int]:
        """Put compared copies together, where the first device's copy is; count conflicts."""
        found = dict.fromkeys(self._copies, 0)
        for index, held in self._copies.items() if len(devices) > 1 else ():
            original = self._memory.view(self.places[index])
            copies = [self._memory.view(held[device]) for device in devices]
            pieces = [slice(*piece) for piece in _cut(original.size)]
            before = [original[piece] for piece in pieces]
            after = [[copy[piece] for copy in copies] for piece in pieces]
            width = self._arrays[index].dtype.itemsize
            with ThreadPoolExecutor(_WORKERS) as pool:
                found[index] = sum(pool.map(merge_changes, before, after, repeat(width)))
        return found

    def take(self, devices: Sequence[int]) -> list[int]:
        """Have the caller's arrays take the results; tell which have some."""
        results = {index: self.places[index] for index in (*self._ranges, *self._copies)}
        if devices:
            results |= {index: copies[devices[0]] for index, copies in self._copies.items()}
        _copy(
            (as_bytes(self._arrays[index]), self._memory.view(place))
            for index, place in results.items()
        )
        return list(results)


def _copy(pairs: Iterable[tuple[Bytes, Bytes]]) -> None:
    """Copy arrays, by several threads; the first of a pair is written."""
    pieces = [
        (target[start:stop], source[start:stop])
        for target, source in pairs
        for start, stop in _cut(target.size)
    ]
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
        is_taken: BoolArray | None = None
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
