"""Random keys whose blocks are sorted by the second digit, and where each block's digits begin."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

BLOCK = 512
DIGITS = 16
SHIFT = 4


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what reorder_data_keys needs; the other kernel needs nothing."""
    if "BLOCKS" in parameters:
        blocks = parameters["BLOCKS"]
        rng = np.random.default_rng(8)
        numbers = np.sort(rng.integers(0, 2**32, size=(blocks, BLOCK), dtype=np.uint32), axis=1)
        # Sorted by their highest digit; turned by 8 bits, that is the digit at SHIFT.
        keys: Array = (numbers << np.uint32(8)) | (numbers >> np.uint32(24))
        counts = _count_digits(keys)
        block_starts = np.cumsum(counts, axis=1) - counts
        by_digit = counts.T.reshape(-1)
        np.save(folder / "block_keys.npy", keys.reshape(-1, 2))
        np.save(folder / "starts.npy", (np.cumsum(by_digit) - by_digit).astype(np.uint32))
        np.save(folder / "block_starts.npy", block_starts.reshape(-1).astype(np.uint32))
    return {}


def _count_digits(keys: Array) -> Array:
    """Give how often each digit occurs in each block, of shape (blocks, DIGITS)."""
    digits = (keys >> SHIFT) % DIGITS
    slots = np.arange(len(keys))[:, None] * DIGITS + digits
    counts: Array = np.bincount(slots.reshape(-1), minlength=len(keys) * DIGITS)
    return counts.reshape(-1, DIGITS)
