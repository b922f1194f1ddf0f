"""Backward tracing with trilinear interpolation in double precision."""

from itertools import product

import numpy as np

SMALL: dict[str, int] = {"NX": 48, "NY": 20, "NZ": 12}
RTOL: float = 1e-3


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the density after one step."""
    shape = (parameters["NZ"], parameters["NY"], parameters["NX"])
    density = np.asarray(inputs[0], dtype=np.float64).reshape(shape)
    velocity = [np.asarray(inputs[i], dtype=np.float64).reshape(shape) for i in (3, 2, 1)]
    time_step = float(np.asarray(inputs[5]))
    bases, fractions = [], []
    for size, index, speed in zip(shape, np.indices(shape), velocity, strict=True):
        source = np.clip(index - time_step * speed, 0.0, size - 1.0)
        base = np.minimum(source.astype(np.int64), size - 2)
        bases.append(base)
        fractions.append(source - base)
    result = np.zeros(shape)
    for corner in product((0, 1), repeat=3):
        weight = np.ones(shape)
        for fraction, side in zip(fractions, corner, strict=True):
            weight *= fraction if side else 1.0 - fraction
        at = tuple(base + side for base, side in zip(bases, corner, strict=True))
        result += weight * density[at]
    return {4: result.astype(np.float32).reshape(-1)}
