"""Sums and extremes in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def add_up(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return each work-group's sum."""
    numbers, sums = np.asarray(values[0], dtype=np.float64), np.asarray(values[1])
    return {1: numbers.reshape(sums.size, -1).sum(axis=1).astype(np.float32)}


def find_extremes(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the least and the greatest number, those included that were there before."""
    numbers, least, greatest = (np.asarray(value) for value in values)
    return {1: np.minimum(least, numbers.min()), 2: np.maximum(greatest, numbers.max())}


REFERENCES = {
    "sum_divergent": Reference(expected=add_up, small={"COUNT": 65536}, tolerance=1e-5),
    "sum_vectors": Reference(expected=add_up, small={"UNITS": 16}, tolerance=1e-5),
    "extremes_atomic": Reference(expected=find_extremes, small={"UNITS": 16}),
}
