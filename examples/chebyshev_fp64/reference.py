"""The Chebyshev series in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 1024, "TERMS": 32}
RTOL: float = 1e-8


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the scaled series at every point."""
    x, coefficient, _, _, scale = (np.asarray(value) for value in inputs)
    return {2: scale * np.polynomial.chebyshev.chebval(x, coefficient)}
