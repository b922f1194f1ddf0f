"""The same findings with whole images shifted, and with SciPy's filters."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value

_SMALL = {"HEIGHT": 48, "WIDTH": 192}


def remove_noise(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the mean of shifted images, weighted by likeness."""
    image = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1)
    strictness = float(np.asarray(values[4]))
    # three pixels of margin, so that sums over patches see none of the filter's own edges
    padded = np.pad(image, 4, mode="edge")
    inner = (slice(4, -4), slice(4, -4))
    total, mixed = np.zeros_like(image), np.zeros_like(image)
    for dy, dx in product(range(-2, 3), repeat=2):
        shifted = np.roll(padded, (-dy, -dx), axis=(0, 1))
        unlike = 9.0 * ndimage.uniform_filter((shifted - padded) ** 2, size=3)
        weight = np.exp(-strictness * unlike)[inner]
        total += weight
        mixed += weight * shifted[inner]
    return {1: (mixed / total).astype(np.float32)}


def find_corners(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return how much of a corner each pixel is."""
    image = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1)
    along_y, along_x = (
        ndimage.correlate1d(image, [-1.0, 0.0, 1.0], axis=axis, mode="nearest") for axis in (0, 1)
    )
    xx, xy, yy = (
        25.0 * ndimage.uniform_filter(one, size=5, mode="nearest")
        for one in (along_x**2, along_x * along_y, along_y**2)
    )
    flatness = float(np.asarray(values[4]))
    return {1: (xx * yy - xy**2 - flatness * (xx + yy) ** 2).astype(np.float32)}


def match(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the shifts of least cost."""
    left, right = (
        np.pad(np.asarray(value).astype(np.int64).reshape(parameters["HEIGHT"], -1), 32, "edge")
        for value in values[:2]
    )
    window = np.ones(5, dtype=np.int64)
    costs = []
    for shift in range(24):
        gaps = np.abs(left - np.roll(right, shift, axis=1))
        sums = ndimage.correlate1d(ndimage.correlate1d(gaps, window, axis=0), window, axis=1)
        costs.append(sums[32:-32, 32:-32])
    return {2: np.argmin(costs, axis=0).astype(np.uint8)}


REFERENCES = {
    "non_local_means": Reference(expected=remove_noise, small=_SMALL, tolerance=1e-4),
    "harris": Reference(expected=find_corners, small=_SMALL, tolerance=1e-4),
    "stereo_match": Reference(expected=match, small=_SMALL),
}
