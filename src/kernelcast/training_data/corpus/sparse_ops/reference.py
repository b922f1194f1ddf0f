"""The products with SciPy's sparse matrices."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from kernelcast.training_data.reference import Array, Reference, Value


def add_product(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return y + A x."""
    rows, columns, entries, x, y = (np.asarray(value) for value in values[:5])
    places = (rows, columns)
    matrix = sparse.coo_matrix((entries.astype(np.float64), places), shape=(y.size, x.size))
    return {4: (y + matrix @ x.astype(np.float64)).astype(np.float32)}


def multiply(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product with the dense matrix."""
    row_begin, columns, entries, dense = (np.asarray(value) for value in values[:4])
    side = parameters["ROWS"]
    matrix = sparse.csr_matrix((entries.astype(np.float64), columns, row_begin), shape=(side, side))
    return {4: (matrix @ dense.reshape(side, -1).astype(np.float64)).astype(np.float32)}


def sample_product(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the entries times the elements of the whole dense product."""
    rows, columns, entries, p, q = (np.asarray(value) for value in values[:5])
    p, q = (one.astype(np.float64).reshape(parameters["ROWS"], -1) for one in (p, q))
    return {5: (entries * (p @ q.T)[rows, columns]).astype(np.float32)}


REFERENCES = {
    "spmv_coo": Reference(expected=add_product, small={"ROWS": 1024}, tolerance=1e-4),
    "spmm": Reference(expected=multiply, small={"ROWS": 1024}, tolerance=1e-4),
    "sddmm": Reference(expected=sample_product, small={"ROWS": 1024}, tolerance=1e-4),
}
