"""The products with NumPy's."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def multiply(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return A * B."""
    a, b = (np.asarray(value, dtype=np.float64) for value in values[:2])
    product = a.reshape(parameters["M"], -1) @ b.reshape(-1, parameters["N"])
    return {2: product.astype(np.float32)}


def multiply_and_add(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return alpha * A * B + beta * C; A is stored column by column."""
    a, b, c = (np.asarray(value, dtype=np.float64) for value in values[:3])
    alpha, beta = (float(np.asarray(value)) for value in values[6:8])
    rows, columns = parameters["M"], parameters["N"]
    product = a.reshape(-1, rows).T @ b.reshape(-1, columns)
    return {2: (alpha * product + beta * c.reshape(rows, columns)).astype(np.float32)}


def multiply_each(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product of each pair."""
    a, b = (np.asarray(value, dtype=np.float64).reshape(-1, 16, 16) for value in values[:2])
    return {2: (a @ b).astype(np.float32)}


def multiply_by_own_transpose(
    values: Sequence[Value], parameters: Mapping[str, int]
) -> dict[int, Array]:
    """Return the lower triangle of A * A^T; what is above it stays."""
    side = parameters["N"]
    a = np.asarray(values[0], dtype=np.float64).reshape(side, -1)
    before = np.asarray(values[1]).reshape(side, side)
    return {1: np.where(np.tri(side, dtype=bool), a @ a.T, before).astype(np.float32)}


REFERENCES = {
    "naive": Reference(expected=multiply, small={"M": 48, "N": 128, "K": 70}, tolerance=1e-5),
    "register_blocked": Reference(
        expected=multiply_and_add, small={"M": 128, "N": 192, "K": 64}, tolerance=1e-5
    ),
    "batched": Reference(expected=multiply_each, small={"BATCH": 33}, tolerance=1e-5),
    "syrk": Reference(
        expected=multiply_by_own_transpose, small={"N": 112, "K": 64}, tolerance=1e-5
    ),
}
