"""The step by SciPy's convolution."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the new inner points; border and padding stay as they were."""
    pitch, width = parameters["PITCH"], parameters["WIDTH"]
    source = np.asarray(values[0], dtype=np.float64).reshape(-1, pitch)
    target = np.asarray(values[1]).reshape(-1, pitch).copy()
    centre, cardinal, diagonal = (float(np.asarray(value)) for value in values[3:6])
    row = [diagonal, cardinal, diagonal]
    weights = np.array([row, [cardinal, centre, cardinal], row])
    inner = (slice(1, -1), slice(1, width + 1))
    target[inner] = ndimage.convolve(source, weights, mode="constant")[inner]
    return {1: target.reshape(-1)}


REFERENCES = {
    "stencil": Reference(expected=expected, small={"WIDTH": 512, "HEIGHT": 64}, tolerance=1e-5)
}
