"""Products with the sparse matrix in SciPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from kernelcast.training_data.reference import Array, Reference, Value


def _multiply(values: Sequence[Value]) -> Array:
    row_begin, column, value, vector = (np.asarray(one) for one in values[:4])
    shape = (vector.size, vector.size)
    matrix = sparse.csr_matrix((value.astype(np.float64), column, row_begin), shape=shape)
    product: Array = matrix @ vector.astype(np.float64)
    return product


def multiply(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return q = A p."""
    return {4: _multiply(values).astype(np.float32)}


def find_residual(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return r = A z and the squared norm of x - r for each work-group."""
    r = _multiply(values)
    squares = (np.asarray(values[4]) - r) ** 2
    return {5: r, 6: squares.reshape(-1, parameters["LOCAL0"]).sum(axis=1)}


REFERENCES = {
    "conj_grad_2": Reference(expected=multiply, small={"ROWS": 256}, tolerance=1e-5),
    "conj_grad_6": Reference(expected=find_residual, small={"ROWS": 256}, tolerance=1e-11),
}
