"""Direction numbers of the first three coordinates of a Sobol sequence."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

BITS = 31
_COORDINATES = (((), ()), ((1,), (1,)), ((1, 1), (1, 3)))
"""Coefficients of each primitive polynomial but the first, and the first odd numbers."""


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write directions.npy for quasi; inv_cnd needs nothing."""
    if "POINTS" in parameters:
        numbers = [_find_directions(*coordinate) for coordinate in _COORDINATES]
        np.save(folder / "directions.npy", np.array(numbers, dtype=np.uint32).reshape(-1))
    return {}


def _find_directions(coefficients: tuple[int, ...], first: tuple[int, ...]) -> list[int]:
    """Follow the recurrence over the polynomial; without one, halve from bit to bit."""
    odd = list(first) or [1] * BITS
    degree = len(coefficients)
    for k in range(len(odd), BITS):
        value = odd[k - degree]
        for step, coefficient in enumerate(coefficients, start=1):
            value ^= coefficient * (odd[k - step] << step)
        odd.append(value)
    return [value << (BITS - 1 - k) for k, value in enumerate(odd)]
