"""The step by SciPy's Laplace operator."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the grid after the step; its border stays as it was."""
    shape = tuple(parameters[name] + 2 for name in ("NZ", "NY", "NX"))
    old = np.asarray(values[0], dtype=np.float64).reshape(shape)
    new = np.asarray(values[1]).reshape(shape).copy()
    inner = (slice(1, -1),) * 3
    new[inner] = (old + float(np.asarray(values[2])) * ndimage.laplace(old))[inner]
    return {1: new.reshape(-1)}


_SMALL = {"NX": 64, "NY": 32, "NZ": 32}
REFERENCES = {
    "heat_points": Reference(expected=expected, small=_SMALL, tolerance=1e-5),
    "heat_columns": Reference(expected=expected, small=_SMALL, tolerance=1e-5),
}
