"""The byte histogram in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 100_003}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the earlier counts plus the number of times each byte occurs."""
    values, counts, _ = (np.asarray(value) for value in inputs)
    return {1: (counts + np.bincount(values, minlength=counts.size)).astype(counts.dtype)}
