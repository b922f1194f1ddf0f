"""The hypotenuses with NumPy's hypot."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the second half's hypotenuses; the first half stays."""
    half = parameters["ELEMENTS"] // 2
    first, second = (np.asarray(value, dtype=np.float64)[half:] for value in values[:2])
    hypotenuse = np.zeros_like(first)
    for _ in range(parameters["TURNS"]):
        hypotenuse = np.hypot(first, second)
        second = second + 0.125 * (hypotenuse - second)
    result = np.array(values[2])
    result[half:] = hypotenuse
    return {2: result}


REFERENCES = {
    "vector_hypot": Reference(expected=expected, small={"ELEMENTS": 4096}, tolerance=1e-5)
}
