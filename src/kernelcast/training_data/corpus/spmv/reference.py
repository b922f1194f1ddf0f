"""The product in SciPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return y = A * x."""
    value, x, column, row_begin = (np.asarray(one) for one in values[:4])
    shape = (parameters["ROWS"], parameters["ROWS"])
    matrix = sparse.csr_matrix((value.astype(np.float64), column, row_begin), shape=shape)
    return {5: (matrix @ x.astype(np.float64)).astype(np.float32)}


REFERENCES = {"spmv_csr_vector": Reference(expected=expected, small={"ROWS": 2048}, tolerance=1e-4)}
