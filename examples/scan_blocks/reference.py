"""The prefix sums of each work-group in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 10_007}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the inclusive sums within each work-group and their totals."""
    values, sums, totals = (np.asarray(value) for value in inputs[:3])
    padded = np.zeros(totals.size * parameters["GROUP"], dtype=values.dtype)
    padded[: values.size] = values
    scanned = np.cumsum(padded.reshape(totals.size, -1), axis=1, dtype=sums.dtype)
    return {1: scanned.reshape(-1)[: values.size], 2: scanned[:, -1].astype(totals.dtype)}
