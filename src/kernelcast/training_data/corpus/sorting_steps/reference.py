"""The steps with NumPy's sorting and selecting."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def count_digits(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the counts, in the order of digits, then tiles."""
    bits = np.asarray(values[0]).view(np.uint32)
    keys = np.where(bits >= 2**31, ~bits, bits | np.uint32(2**31))
    digits = (keys >> np.asarray(values[2])) % 256
    tiles = digits.reshape(-1, 4096)
    counts = [np.bincount(tile, minlength=256) for tile in tiles]
    return {1: np.stack(counts, axis=1).astype(np.uint32)}


def merge(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all values sorted."""
    return {2: np.sort(np.concatenate([np.asarray(value) for value in values[:2]]))}


def select(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the records whose key is below the limit."""
    records = np.asarray(values[0]).reshape(-1, 4)
    return {2: records[records[:, 0] < parameters["LIMIT"]]}


REFERENCES = {
    "digit_counts": Reference(expected=count_digits, small={"TILES": 5}),
    "merge_path": Reference(expected=merge, small={"PIECES": 256}),
    "compact": Reference(expected=select, small={"TILES": 20}),
}
