"""Gradients of each colour by SciPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return white where the gradient is steep, black elsewhere."""
    pixels = np.asarray(values[0]).reshape(-1, parameters["WIDTH"], 4).astype(np.float64)
    threshold = float(np.asarray(values[4]))
    gradients = [
        np.hypot(*(ndimage.sobel(pixels[..., c], axis=axis, mode="constant") for axis in (0, 1)))
        for c in range(3)
    ]
    target = np.full(pixels.shape, 255, dtype=np.uint8)
    target[..., :3] = 255 * (np.mean(gradients, axis=0) >= threshold)[..., None]
    return {1: target.reshape(-1, 4)}


REFERENCES = {"sobel": Reference(expected=expected, small={"WIDTH": 128, "HEIGHT": 64})}
