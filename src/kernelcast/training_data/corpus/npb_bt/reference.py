"""Transfinite interpolation of the exact solution in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def find_exact(coefficients: Array, places: Sequence[Array]) -> Array:
    """Give the exact solution of all fields, the last axis, at places of the unit cube."""
    total: Array = coefficients[:, 0]
    for axis, place in enumerate(places):
        powers = place[..., None] ** np.arange(1, 5)
        total = total + powers @ coefficients[:, 1 + axis :: 3].T
    return total


def interpolate(coefficients: Array, shape: tuple[int, int, int]) -> Array:
    """Blend the six faces' values over a grid of shape (nz, ny, nx): 1 - (1 - x)(1 - y)(1 - z)."""
    nz, ny, nx = shape
    ticks = (np.arange(nx) / (nx - 1), np.arange(ny)[:, None] / (ny - 1),
             np.arange(nz)[:, None, None] / (nz - 1))  # fmt: skip
    rest: Array = np.ones(())
    for axis, tick in enumerate(ticks):
        lower, upper = (
            find_exact(coefficients, [*ticks[:axis], np.array(end), *ticks[axis + 1 :]])
            for end in (0.0, 1.0)
        )
        rest = rest * (1.0 - (tick[..., None] * upper + (1.0 - tick[..., None]) * lower))
    blended: Array = 1.0 - rest
    return blended


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the initial values."""
    coefficients = np.asarray(values[1]).reshape(5, 13).astype(np.float64)
    shape = (parameters["N"], parameters["N"], parameters["NX"])
    return {0: interpolate(coefficients, shape).reshape(-1).astype(np.float32)}


REFERENCES = {"initialize2": Reference(expected=expected, small={"N": 32}, tolerance=1e-4)}
