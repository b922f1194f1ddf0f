"""The lower-triangular product in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 1024}
RTOL: float = 1e-4


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the first N terms of the convolution of w and x."""
    w, x, _ = (np.asarray(value) for value in inputs)
    return {2: np.convolve(w, x)[: x.size]}
