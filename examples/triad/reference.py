"""The streaming triad in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 10_240, "SWEEPS": 2}
RTOL: float = 1e-5


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return a = b + s * c; further sweeps write the same values again."""
    _, b, c, s, _ = (np.asarray(value) for value in inputs)
    return {0: b + s * c}
