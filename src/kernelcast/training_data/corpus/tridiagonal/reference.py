"""All systems as one banded one, by SciPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import linalg

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the unknowns; nothing connects the end of a system with the next one."""
    lower, middle, upper, right = (np.asarray(value, dtype=np.float64) for value in values[:4])
    lower, upper = lower.copy(), upper.copy()
    lower[:: parameters["SYSTEM"]] = 0.0
    upper[parameters["SYSTEM"] - 1 :: parameters["SYSTEM"]] = 0.0
    bands = np.stack([np.roll(upper, 1), middle, np.roll(lower, -1)])
    return {4: linalg.solve_banded((1, 1), bands, right).astype(np.float32)}


REFERENCES = {
    "pcr": Reference(expected=expected, small={"EQUATIONS": 4096}, tolerance=1e-4),
    "cycle": Reference(expected=expected, small={"EQUATIONS": 4096}, tolerance=1e-4),
}
