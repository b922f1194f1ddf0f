"""The sparse matrix-vector product in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"ROWS": 1000, "COLUMNS": 5000, "NNZ": 1_000_000}
RTOL: float = 1e-4


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the product, row by row."""
    row_pointer, column, value, x, y, _ = (np.asarray(value) for value in inputs)
    row_pointer = row_pointer[: parameters["ROWS"] + 1]
    products = (value * x[column])[: row_pointer[-1]].astype(np.float64)
    return {4: np.add.reduceat(products, row_pointer[:-1]).astype(y.dtype)}
