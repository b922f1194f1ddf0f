"""Prefix sums in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def _scan(values: Sequence[Value], block: int) -> dict[int, Array]:
    numbers = np.asarray(values[0])
    blocks = numbers.reshape(-1, block)
    sums = np.cumsum(blocks, axis=1, dtype=np.uint32)
    return {1: (sums - blocks).reshape(numbers.shape), 2: sums[:, -1]}


def scan_pairs(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the sums of blocks of two values a work-item."""
    return _scan(values, 2 * parameters["LOCAL0"])


def scan_fours(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the sums of blocks of four values a work-item."""
    return _scan(values, 4 * parameters["LOCAL0"])


REFERENCES = {
    "scan_tree": Reference(expected=scan_pairs, small={"UNITS": 8}),
    "scan_bundles": Reference(expected=scan_fours, small={"UNITS": 8}),
}
