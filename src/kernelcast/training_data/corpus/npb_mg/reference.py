"""The steps of the multigrid solver in NumPy, stencils from one table of weights."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

NX = 128
NY = 64
COARSE_X = 64
COARSE_Y = 32
INSIDE = (slice(1, -1),) * 3


def _read_grid(value: Value) -> Array:
    return np.asarray(value).reshape(-1, NY + 2, NX + 2)


def _apply_stencil(grid: Array, weights: Sequence[float]) -> Array:
    """Give the weighted sums at the inner points: of the point, its faces, edges and corners."""
    sizes = [size - 2 for size in grid.shape]
    total = np.zeros(sizes)
    for shift in product((0, 1, 2), repeat=3):
        weight = weights[sum(step != 1 for step in shift)]
        part = tuple(slice(step, step + size) for step, size in zip(shift, sizes, strict=True))
        total += weight * grid[part]
    return total


def find_residual(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return v - A u."""
    u, v, r = (_read_grid(value) for value in values[:3])
    a0, a2, a3 = (float(np.asarray(value)) for value in values[-3:])
    result = r.copy()
    result[INSIDE] = v[INSIDE] - _apply_stencil(u, (a0, 0.0, a2, a3))
    return {2: result.reshape(-1)}


def find_norms(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return sum of squares and greatest magnitude of each eight rows."""
    parts = _read_grid(values[0])[INSIDE].reshape(-1, 8 * NX)
    return {1: (parts**2).sum(axis=1), 2: np.abs(parts).max(axis=1)}


def restrict(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return every other point of the fine grid's weighted mean."""
    coarse = np.asarray(values[1]).reshape(-1, COARSE_Y + 2, COARSE_X + 2).copy()
    means = _apply_stencil(_read_grid(values[0]), (0.5, 0.25, 0.125, 0.0625))
    coarse[INSIDE] = means[1::2, 1::2, 1::2]
    return {1: coarse.reshape(-1)}


def smooth(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return u plus the stencil of the residual."""
    r, u = (_read_grid(value) for value in values[:2])
    weights = (*(float(np.asarray(value)) for value in values[-3:]), 0.0)
    result = u.copy()
    result[INSIDE] += _apply_stencil(r, weights)
    return {1: result.reshape(-1)}


def interpolate(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return u plus the coarse grid, interpolated along one axis after the other."""
    z, u = (np.asarray(value) for value in values[:2])
    fine = z.reshape(-1, COARSE_Y + 1, COARSE_X + 1).astype(np.float64)
    for axis in range(3):
        points = np.moveaxis(fine, axis, 0)
        between = np.stack([points[:-1], 0.5 * (points[:-1] + points[1:])], axis=1)
        fine = np.moveaxis(between.reshape(-1, *points.shape[1:]), 0, axis)
    return {1: (u + fine.reshape(-1)).astype(u.dtype)}


REFERENCES = {
    "resid": Reference(expected=find_residual, small={"NZ": 3}, tolerance=1e-5),
    "norm2u3": Reference(expected=find_norms, small={"NZ": 3}, tolerance=1e-12),
    "rprj3": Reference(expected=restrict, small={"NZ": 3}, tolerance=1e-12),
    "psinv": Reference(expected=smooth, small={"NZ": 3}, tolerance=1e-5),
    "interp": Reference(expected=interpolate, small={"NZ": 3}, tolerance=1e-5),
}
