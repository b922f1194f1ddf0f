"""The rounds of special functions in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 2048}
RTOL: float = 1e-3


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return every element after all rounds."""
    x, _, power, _ = (np.asarray(value) for value in inputs)
    v = x.astype(np.float64)
    for _ in range(parameters["ROUNDS"]):
        wave = 1.5 + np.sin(v)
        v = np.log1p(np.exp(wave)) + wave**power
    return {1: v.astype(x.dtype)}
