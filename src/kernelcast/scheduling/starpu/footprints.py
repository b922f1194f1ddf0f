"""The number under which StarPU files a task's time: a CRC over the sizes of its data.

Source: StarPU 1.3.10 and 1.4, `src/common/hash.c` and `src/datawizard/footprint.c`. Vectors and
variables are told apart by their lengths alone there: two of different element sizes may share an
entry, as they do in StarPU's own files.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import InputError

_POLYNOMIAL = 0x1EDC6F41
_TOP_BIT = 0x8000_0000
_MASK = 0xFFFF_FFFF
_LARGEST_COUNT = 2**32 - 1


class DataKind(StrEnum):
    """StarPU's interfaces whose footprints depend on sizes alone."""

    VECTOR = "vector"
    MATRIX = "matrix"
    BLOCK = "block"
    VARIABLE = "variable"


_INTERFACE_IDS = {
    DataKind.MATRIX: 0, DataKind.BLOCK: 1, DataKind.VECTOR: 2, DataKind.VARIABLE: 5,
}  # fmt: skip
_DIMENSIONS = {DataKind.VECTOR: 1, DataKind.MATRIX: 2, DataKind.BLOCK: 3, DataKind.VARIABLE: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskData:
    """One piece of data of a task, as it is registered with StarPU."""

    kind: DataKind
    """Its interface."""
    counts: tuple[int, ...]
    """Elements per dimension, nx first; empty for a variable."""
    element_bytes: int
    """Bytes of an element; of a variable, all its bytes."""

    def __post_init__(self) -> None:
        wanted = _DIMENSIONS[self.kind]
        if len(self.counts) != wanted:
            msg = f"a {self.kind} of {len(self.counts)} sizes: expected {wanted}"
            raise InputError(msg)
        numbers = (*self.counts, self.element_bytes)
        if min(numbers) < 1 or max(numbers) > _LARGEST_COUNT:
            msg = f"a {self.kind} of sizes {numbers}: expected 1 to {_LARGEST_COUNT} (32 bits)"
            raise InputError(msg)

    @property
    def bytes(self) -> int:
        """Bytes of the data."""
        return math.prod(self.counts) * self.element_bytes

    @property
    def footprint(self) -> int:
        """What StarPU's data handle has as its footprint."""
        if self.kind is DataKind.MATRIX:
            inner = hash_word(self.counts[0], self.counts[1])
        elif self.kind is DataKind.VARIABLE:
            inner = hash_word(self.element_bytes, 0)
        else:
            inner = 0
            for count in self.counts:
                inner = hash_word(count, inner)
        return hash_word(inner, _INTERFACE_IDS[self.kind])


def hash_bytes(content: bytes, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be_n``: CRC-32C, highest bit first, nothing inverted.

    Examples
    --------
    >>> f"{hash_bytes(b'StarPU'):08x}"
    '826e6d34'
    """
    for byte in content:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) & _MASK) ^ (_POLYNOMIAL if crc & _TOP_BIT else 0)
    return crc


def hash_word(word: int, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be`` of a 32-bit number, on little-endian machines."""
    return hash_bytes(word.to_bytes(4, "little"), crc)


def footprint_of_data(data: Sequence[TaskData]) -> int:
    """Compute a task's footprint from its data: StarPU's default.

    Examples
    --------
    >>> one = TaskData(kind=DataKind.VECTOR, counts=(1024,), element_bytes=4)
    >>> footprint_of_data([one, one]) == footprint_of_data([one])
    False
    """
    found = 0
    for one in data:
        found = hash_word(one.footprint, found)
    return found


def footprint_of_size_base(size: int) -> int:
    """Compute a task's footprint where the performance model has a ``size_base`` function."""
    return hash_bytes(size.to_bytes(8, "little"))
