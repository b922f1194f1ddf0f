"""The products in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def _multiply(
    values: Sequence[Value], b_shape: tuple[int, int], is_turned: bool
) -> dict[int, Array]:
    a, b, d = (np.asarray(values[k], dtype=np.float64) for k in (0, 2, 4))
    rows, alpha, beta = int(np.asarray(values[1])), np.asarray(values[8]), np.asarray(values[9])
    second = b.reshape(b_shape, order="F")
    product = a.reshape((rows, -1), order="F") @ (second.T if is_turned else second)
    result = alpha * product + beta * d.reshape((rows, -1), order="F")
    return {5: result.reshape(-1, order="F").astype(np.float32)}


def multiply(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return alpha * A * B + beta * D."""
    return _multiply(values, (parameters["DEPTH"], parameters["COLUMNS"]), False)


def multiply_turned(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return alpha * A * transpose(B) + beta * D."""
    return _multiply(values, (parameters["COLUMNS"], parameters["DEPTH"]), True)


_SMALL = {"ROWS": 128, "COLUMNS": 64, "DEPTH": 96}
REFERENCES = {
    "sgemm_nn": Reference(expected=multiply, small=_SMALL, tolerance=1e-5),
    "sgemm_nt": Reference(expected=multiply_turned, small=_SMALL, tolerance=1e-5),
}
