"""Carries arrays into the shared memory, and merges results on their way back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.messages import Collect, MemoryRange
from kernelcast.balancing.shared_memory import Layout, SharedMemory
from kernelcast.balancing.work import BoolArray

Bytes = npt.NDArray[np.uint8]
_PIECE_BYTES = 1 << 22
_MOST_WORKERS = 8


class LaunchBuffers:
    """The buffers of a launch in shared memory.

    Parameters
    ----------
    ranges : mapping of int to callable
        For buffers that merge by ranges: gives the bytes that some slabs write.
    """

    def __init__(
        self,
        sizes: Mapping[int, int],
        ranges: Mapping[int, Callable[[BoolArray], list[tuple[int, int]]]],
        compared: Sequence[int],
        devices: int,
    ) -> None:
        layout = Layout()
        self._ranges = ranges
        self._compared = compared
        self.places = {index: layout.add(size) for index, size in sizes.items()}
        # Only those that are written to take up memory.
        self._copies = {
            index: [layout.add(sizes[index]) for _ in range(devices)] for index in compared
        }
        self.size = layout.size

    @property
    def result_bytes(self) -> dict[int, int]:
        """Bytes that all devices together give back, where that depends on their shares."""
        return {index: self.places[index].size for index in self._ranges}

    def put(self, memory: SharedMemory, arrays: Mapping[int, Bytes]) -> None:
        """Copy the arrays' bytes in."""
        _copy((memory.view(self.places[index]), array) for index, array in arrays.items())

    def collect(self, device: int, slabs: BoolArray) -> Collect:
        """Give the command for the results of some slabs."""
        spans = {index: tuple(find(slabs)) for index, find in self._ranges.items()}
        targets = {index: self.places[index] for index in self._ranges}
        for index, copies in self._copies.items():
            spans[index] = ((0, self.places[index].size),)
            targets[index] = copies[device]
        return Collect(spans=spans, targets=targets)

    def merge(self, memory: SharedMemory, devices: Sequence[int], element: Mapping[int, int]) -> (
        dict[int, int]
    ):  # fmt: skip
        """Put compared copies together, where the first device's copy is.

        Returns
        -------
        dict of int to int
            Elements that devices have changed to different values, by the buffer's position.
        """
        if len(devices) < 2:
            return dict.fromkeys(self._compared, 0)
        found: dict[int, int] = {}
        for index in self._compared:
            original = memory.view(self.places[index])
            copies = [memory.view(self._copies[index][device]) for device in devices]
            pieces = _cut(original.size)

            def merge(
                span: tuple[int, int],
                original: Bytes = original,
                copies: list[Bytes] = copies,
                size: int = element[index],
            ) -> int:
                part = slice(*span)
                own = [copy[part] for copy in copies]
                return merge_changes(original[part], own, element_bytes=size, into=own[0])

            with ThreadPoolExecutor(_workers()) as pool:
                found[index] = sum(pool.map(merge, pieces))
        return found

    def take(
        self, memory: SharedMemory, arrays: Mapping[int, Bytes], devices: Sequence[int]
    ) -> None:
        """Copy results out into the arrays that are written."""
        pairs = [(array, self._result(index, devices)) for index, array in arrays.items()
                 if index in self._ranges or index in self._copies]  # fmt: skip
        _copy((array, memory.view(place)) for array, place in pairs)

    def _result(self, index: int, devices: Sequence[int]) -> MemoryRange:
        if index in self._copies and devices:
            return self._copies[index][devices[0]]
        return self.places[index]


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
    with ThreadPoolExecutor(_workers()) as pool:
        list(pool.map(lambda pair: np.copyto(*pair), pieces))


def _cut(size: int) -> list[tuple[int, int]]:
    return [(start, min(start + _PIECE_BYTES, size)) for start in range(0, size, _PIECE_BYTES)]


def _workers() -> int:
    return min(_MOST_WORKERS, cpu_count() or 1)


# Pieces that stay in a core's cache while several copies are compared.
_COMPARED_BYTES = 1 << 18
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def merge_changes(
    original: Bytes, copies: Sequence[Bytes], *, element_bytes: int, into: Bytes
) -> int:
    """Merge copies of a buffer.

    Parameters
    ----------
    element_bytes : int
        Size of an element: 1, 2, 4 or 8, a divisor of the sizes.

    Returns
    -------
    int
        Elements that two devices have changed to different values; of these the result holds
        one of the values.

    Examples
    --------
    >>> before = np.zeros(4, np.uint8)
    >>> one, other = np.array([[7, 0, 0, 5], [0, 8, 0, 6]], np.uint8)
    >>> result = before.copy()
    >>> merge_changes(before, [one, other], element_bytes=1, into=result), result.tolist()
    (1, [7, 8, 0, 6])
    """
    word = _WORDS[element_bytes]
    whole, result = original.view(word), into.view(word)
    views = [one.view(word) for one in copies]
    conflicts = 0
    step = _COMPARED_BYTES // element_bytes
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
        result[piece] = found
    return conflicts
