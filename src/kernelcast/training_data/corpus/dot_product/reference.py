"""The dot products by one sum over rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the products."""
    a, b = (
        np.asarray(value, dtype=np.float64).reshape(parameters["COUNT"], 4) for value in values[:2]
    )
    return {2: np.einsum("ij,ij->i", a, b).astype(np.float32)}


REFERENCES = {"dot_product": Reference(expected=expected, small={"COUNT": 70_001}, tolerance=1e-5)}
