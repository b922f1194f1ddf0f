"""The product with NumPy's."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return A * x."""
    matrix, x = (np.asarray(value, dtype=np.float64) for value in values[:2])
    return {2: (matrix.reshape(parameters["ROWS"], -1) @ x).astype(np.float32)}


REFERENCES = {
    name: Reference(expected=expected, small={"ROWS": 1024, "COLUMNS": 300}, tolerance=1e-5)
    for name in ("uncoal0", "uncoal1", "coal0", "coal1", "coal2", "coal3")
}
