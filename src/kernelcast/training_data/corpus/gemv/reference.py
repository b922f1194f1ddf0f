"""The products in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

ALPHA, BETA = 1.5, 0.5


def _multiply(columns: Array, values: Sequence[Value]) -> dict[int, Array]:
    """Multiply rows that are given as columns by x, and add the share of z."""
    x, z = (np.asarray(value, dtype=np.float64).reshape(-1) for value in values[1:3])
    return {3: (ALPHA * (x @ columns) + BETA * z).astype(np.float32)}


def multiply(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return alpha * A * x + beta * z."""
    matrix = np.asarray(values[0], dtype=np.float64).reshape(-1, parameters["ROWS"])
    return _multiply(matrix, values)


def multiply_turned(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return alpha * transpose(A) * x + beta * z."""
    matrix = np.asarray(values[0], dtype=np.float64).reshape(-1, parameters["ROWS"])
    return _multiply(matrix.T, values)


REFERENCES = {
    "gemv_n": Reference(expected=multiply, small={"ROWS": 1024}, tolerance=1e-5),
    "gemv_t": Reference(expected=multiply_turned, small={"COLUMNS": 512}, tolerance=1e-5),
}
