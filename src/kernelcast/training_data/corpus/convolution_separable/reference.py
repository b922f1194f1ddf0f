"""Both passes by SciPy's correlation of one axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.ndimage import convolve1d

from kernelcast.training_data.reference import Array, Reference, Value


def _along(axis: int, values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    image = np.asarray(values[1], dtype=np.float64).reshape(-1, parameters["WIDTH"])
    weights = np.asarray(values[2], dtype=np.float64)
    result = convolve1d(image, weights, axis=axis, mode="constant")
    return {0: result.astype(np.float32)}


def expected_rows(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image convolved along its rows."""
    return _along(1, values, parameters)


def expected_columns(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image convolved along its columns."""
    return _along(0, values, parameters)


_SMALL = {"WIDTH": 512, "HEIGHT": 256}
REFERENCES = {
    "convolution_rows": Reference(expected=expected_rows, small=_SMALL, tolerance=1e-5),
    "convolution_columns": Reference(expected=expected_columns, small=_SMALL, tolerance=1e-5),
}
