"""Makes the tables of the compressor: ways to cut an order into four classes."""

from collections.abc import Mapping
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

PIXELS = 16
TABLE_LENGTH = 1024
# Classes in the order of their colours from the first end to the last, and the weight of the first
# end in thirds.
CLASSES = np.array([0, 2, 3, 1], dtype=np.uint64)
WEIGHTS = np.array([3, 0, 2, 1])


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write cuts.npy and factors.npy; nothing follows from them."""
    assert parameters["BLOCKS"] > 0
    classes = list_cuts()
    shifts = 2 * np.arange(PIXELS, dtype=np.uint64)
    np.save(folder / "cuts.npy", (classes << shifts).sum(axis=1).astype(np.uint32))
    first = WEIGHTS[classes]
    last = 3 - first
    squares = (first**2).sum(axis=1) * (last**2).sum(axis=1)
    determinant = squares - (first * last).sum(axis=1) ** 2
    # where all pixels are of one class there is no solution: such a cut is made worthless
    factors = np.divide(3.0, determinant, out=np.zeros(TABLE_LENGTH), where=determinant != 0)
    np.save(folder / "factors.npy", factors.astype(np.float32))
    return {}


def list_cuts() -> Array:
    """Give the class of each of 16 ordered pixels, for each cut; shape (1024, 16)."""
    ends = np.array(list(combinations_with_replacement(range(PIXELS + 1), 3)))
    place = np.arange(PIXELS)
    cuts = CLASSES[(place[:, np.newaxis] >= ends[:, np.newaxis, :]).sum(axis=2)]
    filling = np.repeat(cuts[-1:], TABLE_LENGTH - len(cuts), axis=0)
    return np.concatenate([cuts, filling])
