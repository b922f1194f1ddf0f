"""The damped oscillation in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 10_007, "WORK_ITEMS": 1024}
RTOL: float = 1e-4


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return exp(-d t) * (2 + cos(2 pi f t)) for every moment."""
    time_s, _, _, decay_per_s, frequency_hz = (np.asarray(value) for value in inputs)
    swing = 2.0 + np.cos(2.0 * np.pi * frequency_hz * time_s)
    return {1: (np.exp(-decay_per_s * time_s) * swing).astype(time_s.dtype)}
