"""The sweep by SciPy's convolution."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value

_MEAN = 0.25 * ndimage.generate_binary_structure(2, 1)
_MEAN[1, 1] = 0.0


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the grid after the sweep; its border stays as it was."""
    shape = (-1, parameters["WIDTH"])
    old, right = (np.asarray(value, dtype=np.float64).reshape(shape) for value in values[:2])
    new = np.asarray(values[2]).reshape(shape).copy()
    damping = float(np.asarray(values[5]))
    mean = ndimage.convolve(old, _MEAN, mode="constant") + 0.25 * right
    inner = (slice(1, -1), slice(1, -1))
    new[inner] = ((1.0 - damping) * old + damping * mean)[inner]
    return {2: new.reshape(-1)}


_SMALL = {"WIDTH": 256, "HEIGHT": 64}
REFERENCES = {
    "sweep": Reference(expected=expected, small=_SMALL, tolerance=1e-5),
    "sweep_double": Reference(expected=expected, small=_SMALL, tolerance=1e-13),
}
