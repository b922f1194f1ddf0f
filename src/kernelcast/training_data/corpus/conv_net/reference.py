"""The layers with NumPy's sliding windows."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kernelcast.training_data.reference import Array, Reference, Value


def convolve(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the convolution with its bias, nothing below 0."""
    images, weights, bias = (np.asarray(value, dtype=np.float64) for value in values[:3])
    side, inputs = parameters["SIDE"], parameters["INPUTS"]
    windows = _find_windows(images.reshape(-1, inputs, side, side))
    weights = weights.reshape(-1, inputs, 3, 3, 4)
    sums = np.einsum("bcyxij,qcijl->bqlyx", windows, weights, optimize=True)
    return {3: np.maximum(sums + bias[:, :, np.newaxis, np.newaxis], 0).astype(np.float32)}


def convolve_depthwise(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the convolution of every other place, between 0 and 6."""
    images, weights = (np.asarray(value, dtype=np.float64) for value in values[:2])
    side, channels = 2 * parameters["SIDE"], parameters["CHANNELS"]
    planes = np.moveaxis(images.reshape(-1, side, side, channels), 3, 1)
    windows = _find_windows(planes)[:, :, ::2, ::2]
    sums = np.einsum("bcyxij,ijc->byxc", windows, weights.reshape(3, 3, channels))
    return {2: np.clip(sums, 0, 6).reshape(-1, 4).astype(np.float32)}


def unfold(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the columns."""
    side = parameters["SIDE"]
    windows = _find_windows(np.asarray(values[0]).reshape(-1, 1, side, side))
    return {1: np.moveaxis(windows[:, 0], (3, 4), (1, 2))}


def pool(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the greatest of each window and its place."""
    side = 2 * parameters["SIDE"]
    planes = np.asarray(values[0]).reshape(-1, 1, side, side)
    windows = _find_windows(planes, beyond=-np.inf)[:, 0, ::2, ::2]
    windows = windows.reshape(*windows.shape[:3], 9)
    first = np.argmax(windows, axis=3)
    row = 2 * np.arange(side // 2)[:, np.newaxis] - 1 + first // 3
    column = 2 * np.arange(side // 2) - 1 + first % 3
    return {1: windows.max(axis=3), 2: (row * side + column).astype(np.int32)}


def normalise(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the normalised layer."""
    given, residual, mean, variance, gain, shift = (
        np.asarray(value, dtype=np.float64) for value in values[:6]
    )
    layer = given.reshape(-1, parameters["CHANNELS"], parameters["AREA"])
    mean, variance, gain, shift = (one[:, np.newaxis] for one in (mean, variance, gain, shift))
    normal = (layer - mean) / np.sqrt(variance + 1e-5) * gain + shift
    return {6: np.maximum(normal.reshape(given.shape) + residual, 0).astype(np.float32)}


def _find_windows(planes: Array, beyond: float = 0.0) -> Array:
    """Give the 3 x 3 windows of planes; shape (images, channels, rows, columns, 3, 3)."""
    padding = ((0, 0), (0, 0), (1, 1), (1, 1))
    padded = np.pad(planes, padding, constant_values=beyond)
    return sliding_window_view(padded, (3, 3), axis=(2, 3))


REFERENCES = {
    "conv3x3": Reference(
        expected=convolve, small={"BATCH": 2, "SIDE": 32, "INPUTS": 3, "OUTPUTS": 8}, tolerance=1e-4
    ),
    "depthwise": Reference(
        expected=convolve_depthwise, small={"BATCH": 2, "SIDE": 8}, tolerance=1e-4
    ),
    "im2col": Reference(expected=unfold, small={"BATCH": 2, "CHANNELS": 3}),
    "max_pool": Reference(expected=pool, small={"BATCH": 2, "CHANNELS": 3}),
    "batch_norm": Reference(expected=normalise, small={"BATCH": 2, "CHANNELS": 8}, tolerance=1e-4),
}
