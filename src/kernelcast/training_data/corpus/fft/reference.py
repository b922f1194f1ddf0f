"""The transforms in NumPy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def _transform(function: Callable[..., Array], values: Sequence[Value]) -> dict[int, Array]:
    pairs = np.asarray(values[0], dtype=np.float64).reshape(-1, 512, 2)
    result = function(pairs[..., 0] + 1j * pairs[..., 1], axis=1)
    both = np.stack([result.real, result.imag], axis=-1)
    return {1: both.reshape(-1, 2).astype(np.float32)}


def forwards(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the transforms."""
    return _transform(np.fft.fft, values)


def backwards(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the inverse transforms, scaled."""
    return _transform(np.fft.ifft, values)


REFERENCES = {
    "fft1d_512": Reference(expected=forwards, small={"BATCH": 64}, tolerance=1e-5),
    "ifft1d_512": Reference(expected=backwards, small={"BATCH": 64}, tolerance=1e-5),
}
