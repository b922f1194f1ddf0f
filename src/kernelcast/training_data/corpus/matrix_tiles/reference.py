"""The steps with NumPy's and SciPy's linear algebra."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from kernelcast.training_data.reference import Array, Reference, Value


def update(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the matrix less the product."""
    a, b, c = (np.asarray(value, dtype=np.float64) for value in values[:3])
    product = a.reshape(-1, 32) @ b.reshape(32, -1)
    return {2: (c.reshape(parameters["M"], -1) - product).astype(np.float32)}


def multiply_each(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product of each pair."""
    shape = (parameters["BATCH"], 8, 8)
    a, b = (np.asarray(value, dtype=np.float64).reshape(shape) for value in values[:2])
    return {2: (a @ b).astype(np.float32)}


def solve(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the unknowns of all systems."""
    shape = (parameters["SYSTEMS"], 24, -1)
    matrices, reciprocals, right = (
        np.asarray(value, dtype=np.float64).reshape(shape) for value in values[:3]
    )
    lower = np.tril(matrices, -1) + np.eye(24) / reciprocals
    return {3: np.linalg.solve(lower, right).astype(np.float32)}


def permute(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the array with its axes in the other order."""
    given = np.asarray(values[0]).reshape(parameters["NZ"], parameters["NY"], -1)
    return {1: given.transpose(1, 2, 0)}


def multiply_lower(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product with the lower triangle."""
    lower, b = (
        np.asarray(value, dtype=np.float64).reshape(parameters["N"], -1) for value in values[:2]
    )
    return {2: (np.tril(lower) @ b).astype(np.float32)}


def measure(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all distances."""
    points, others = (
        np.asarray(value, dtype=np.float64).reshape(-1, parameters["COORDINATES"])
        for value in values[:2]
    )
    return {2: cdist(points, others).astype(np.float32)}


def multiply(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product."""
    a, b = (np.asarray(value, dtype=np.float64) for value in values[:2])
    product = a.reshape(-1, parameters["K"]) @ b.reshape(parameters["K"], -1)
    return {2: product.astype(np.float32)}


def shorten(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the distances once ways by the pivot are allowed."""
    distances = np.asarray(values[0]).reshape(parameters["N"], -1)
    pivot = parameters["PIVOT"]
    return {0: np.minimum(distances, distances[:, [pivot]] + distances[pivot])}


REFERENCES = {
    "rank_k_update": Reference(expected=update, small={"M": 64, "N": 96}, tolerance=1e-5),
    "batched_8x8": Reference(expected=multiply_each, small={"BATCH": 36}, tolerance=1e-5),
    "solve_columns": Reference(expected=solve, small={"SYSTEMS": 24}, tolerance=1e-4),
    "permute_axes": Reference(expected=permute, small={"NZ": 12, "NY": 16, "NX": 64}),
    "triangular_product": Reference(
        expected=multiply_lower, small={"COLUMNS": 80, "N": 112}, tolerance=1e-5
    ),
    "pairwise_distances": Reference(
        expected=measure, small={"POINTS": 48, "OTHERS": 80, "COORDINATES": 32}, tolerance=1e-5
    ),
    "product_rows8": Reference(
        expected=multiply, small={"M": 128, "N": 192, "K": 50}, tolerance=1e-5
    ),
    "shortest_paths": Reference(expected=shorten, small={"N": 128}),
}
