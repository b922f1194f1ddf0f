"""Initial values of the inner points in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.npb_bt.reference import interpolate
from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the interpolated values inside, the earlier ones on the border."""
    coefficients = np.asarray(values[1]).reshape(5, 13).astype(np.float64)
    shape = (parameters["NZ"], 64, 64)
    u = np.asarray(values[0]).reshape(*shape, 5).copy()
    inside = (slice(1, -1),) * 3
    u[inside] = interpolate(coefficients, shape)[inside]
    return {0: u.reshape(-1)}


REFERENCES = {"setiv": Reference(expected=expected, small={"NZ": 8}, tolerance=1e-4)}
