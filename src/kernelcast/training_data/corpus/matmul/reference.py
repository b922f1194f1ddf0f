"""The product with NumPy's."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return A * B."""
    n = parameters["N"]
    a, b = (np.asarray(value, dtype=np.float64).reshape(n, n) for value in values[1:3])
    return {0: (a @ b).astype(np.float32)}


REFERENCES = {"matmul": Reference(expected=expected, small={"N": 128}, tolerance=1e-5)}
