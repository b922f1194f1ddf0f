"""The damped in-place update in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 10_008, "STEPS": 12}
RTOL: float = 1e-4


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return x after all steps of x = a * x + b."""
    x, b, a, _, _ = (np.asarray(value) for value in inputs)
    for _ in range(parameters["STEPS"]):
        x = a * x + b
    return {0: x}
