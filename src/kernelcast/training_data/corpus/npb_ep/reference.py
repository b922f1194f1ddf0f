"""Gaussian pairs in NumPy, the random sequence in 64-bit integers."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

SEED = 271_828_183
MULTIPLIER = 5**13
MODULUS = 2**46
RINGS = 10


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return sums and counts of each work-group."""
    items, pairs, lanes = (parameters[name] for name in ("N", "PAIRS", "LOCAL0"))
    uniform = 2.0 * _draw(items, 2 * pairs) / MODULUS - 1.0
    points = uniform.reshape(-1, lanes * pairs, 2)
    t = (points**2).sum(axis=2)
    is_inside = t <= 1.0
    t = np.where(is_inside, t, 1.0)
    gaussian = np.sqrt(-2.0 * np.log(t) / t)[..., None] * points * is_inside[..., None]
    rings = np.abs(gaussian).max(axis=2).astype(int)
    counts = [((rings == ring) & is_inside).sum(axis=1) for ring in range(RINGS)]
    return {
        0: gaussian.sum(axis=1),
        1: np.stack(counts, axis=1).astype(np.int32).reshape(np.asarray(values[1]).shape),
    }


def _draw(items: int, length: int) -> Array:
    """Give the sequence, a row for each work-item."""
    jump = pow(MULTIPLIER, length, MODULUS)
    x = np.array([SEED * pow(jump, k, MODULUS) % MODULUS for k in range(items)], dtype=np.uint64)
    drawn = np.empty((items, length))
    for column in range(length):
        # the product's lower 64 bits hold all that the modulus leaves
        x = x * np.uint64(MULTIPLIER) % np.uint64(MODULUS)
        drawn[:, column] = x
    return drawn


REFERENCES = {"ep": Reference(expected=expected, small={"N": 256, "PAIRS": 32}, tolerance=1e-10)}
