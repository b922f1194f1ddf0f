"""The transpose in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the transpose."""
    matrix = np.asarray(values[1]).reshape(-1, parameters["WIDTH"])
    return {0: matrix.T.reshape(-1)}


REFERENCES = {"transpose_naive": Reference(expected=expected, small={"WIDTH": 256, "HEIGHT": 96})}
