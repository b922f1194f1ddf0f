"""The matrix Q in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return both parts of Q as one complex sum."""
    sample, x, y, z, real, imaginary = (
        np.asarray(value).astype(np.float64) for value in values[1:]
    )
    sample = sample[: parameters["SAMPLES"]]
    angle = 2.0 * np.pi * np.stack([x, y, z], axis=1) @ sample[:, :3].T
    q = np.exp(1j * angle) @ sample[:, 3]
    return {
        5: (real + q.real).astype(np.float32),
        6: (imaginary + q.imag).astype(np.float32),
    }


REFERENCES = {
    "compute_q": Reference(expected=expected, small={"N": 512, "SAMPLES": 100}, tolerance=1e-4)
}
