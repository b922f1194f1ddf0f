"""Two-electron integrals in NumPy, the Boys function from SciPy."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy import special

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all integrals, one combination of primitives after the other."""
    shells, pairs, primitives = (np.asarray(value) for value in values[:3])
    products = [
        _multiply(shells[pairs], primitives.reshape(3, 3, 2), i, j)
        for i, j in product(range(3), repeat=2)
    ]
    total = np.zeros((parameters["PAIRS"], parameters["PAIRS"]))
    for (p, centre_p, factor_p), (q, centre_q, factor_q) in product(products, repeat=2):
        p, factor_p, centre_p = p[:, None], factor_p[:, None], centre_p[:, None]
        t = p * q / (p + q) * ((centre_p - centre_q) ** 2).sum(axis=-1)
        boys = special.hyp1f1(0.5, 1.5, -t)
        total += 2.0 * np.pi**2.5 * factor_p * factor_q / (p * q * np.sqrt(p + q)) * boys
    return {3: total.reshape(-1).astype(np.float32)}


def _multiply(ends: Array, primitives: Array, i: int, j: int) -> tuple[Array, Array, Array]:
    """Give exponent, centre and factor of the product of two Gaussians, for every pair."""
    places = ends[..., :3].astype(np.float64)
    kinds = ends[..., 3].astype(int)
    (a, scale_a), (b, scale_b) = (
        primitives[kinds[:, end], which].astype(np.float64).T for end, which in enumerate((i, j))
    )
    centre = (a[:, None] * places[:, 0] + b[:, None] * places[:, 1]) / (a + b)[:, None]
    distance2 = ((places[:, 0] - places[:, 1]) ** 2).sum(axis=1)
    return a + b, centre, scale_a * scale_b * np.exp(-a * b / (a + b) * distance2)


REFERENCES = {"compute_x": Reference(expected=expected, small={"PAIRS": 64}, tolerance=1e-5)}
