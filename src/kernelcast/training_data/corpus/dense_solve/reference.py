"""The steps with SciPy's solvers."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import linalg

from kernelcast.training_data.reference import Array, Reference, Value


def solve(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the solutions of all systems."""
    lower, right = (np.asarray(value, dtype=np.float64) for value in values[:2])
    order, systems = parameters["ORDER"], parameters["SYSTEMS"]
    matrices = np.broadcast_to(np.eye(order), (systems, order, order)).copy()
    row, column = np.tril_indices(order, -1)
    matrices[:, row, column] = lower.reshape(-1, systems).T
    solutions = np.linalg.solve(matrices, right.reshape(order, systems).T[:, :, np.newaxis])
    return {2: solutions[:, :, 0].T.astype(np.float32)}


def factorise(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return factors and pivots of each matrix."""
    matrices = np.asarray(values[0], dtype=np.float64).reshape(-1, 32, 32)
    factors, pivots = zip(*(linalg.lu_factor(one) for one in matrices), strict=True)
    return {1: np.stack(factors).astype(np.float32), 2: np.stack(pivots).astype(np.int32)}


def transpose(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the transpose."""
    return {1: np.asarray(values[0]).reshape(parameters["ROWS"], -1).T}


def update(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return A + alpha * x * y^T."""
    a, x, y = (np.asarray(value, dtype=np.float64) for value in values[:3])
    alpha = float(np.asarray(values[4]))
    updated = a.reshape(parameters["ROWS"], -1) + alpha * np.outer(x, y)
    return {3: updated.astype(np.float32)}


REFERENCES = {
    "triangular_solve": Reference(expected=solve, small={"SYSTEMS": 256}, tolerance=1e-3),
    "lu_small": Reference(expected=factorise, small={"BATCH": 16}, tolerance=1e-3),
    "transpose_padded": Reference(expected=transpose, small={"ROWS": 96, "COLUMNS": 160}),
    "rank_one_update": Reference(
        expected=update, small={"ROWS": 64, "COLUMNS": 512}, tolerance=1e-5
    ),
}
