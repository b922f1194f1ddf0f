"""Transforms, decay and time step in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

SIDE = 256


def _read_complex(value: Value) -> Array:
    pairs = np.asarray(value).astype(np.float64)
    numbers: Array = pairs[:, 0] + 1j * pairs[:, 1]
    return numbers


def _write_pairs(numbers: Array, like: Value) -> Array:
    flat = numbers.reshape(-1)
    return np.stack([flat.real, flat.imag], axis=1).astype(np.asarray(like).dtype)


def transform_x(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the transforms of all rows."""
    rows = _read_complex(values[0]).reshape(-1, parameters["LENGTH"])
    return {1: _write_pairs(np.fft.fft(rows, axis=1), values[1])}


def transform_y(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the inverse transforms along y, without the usual scale."""
    grid = _read_complex(values[0]).reshape(-1, parameters["LENGTH"], 64)
    return {1: _write_pairs(np.fft.ifft(grid, axis=1, norm="forward"), values[1])}


def transform_z(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the transforms along z and what the last stage but one leaves in the scratch.

    The last stage adds and subtracts the halves of the scratch: it is undone here.
    """
    lines = _read_complex(values[0]).reshape(parameters["LENGTH"], -1)
    result = np.fft.fft(lines, axis=0)
    lower, upper = np.split(result, 2)
    before = np.concatenate([(lower + upper) / 2, (lower - upper) / 2])
    return {1: _write_pairs(before, values[1]), 2: _write_pairs(result, values[2])}


def map_indices(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the decay of every wave, the wave numbers from `fftfreq`."""
    squares = [np.fft.fftfreq(n, 1 / n) ** 2 for n in (parameters["NZ"], SIDE, SIDE)]
    total = squares[0][:, None, None] + squares[1][:, None] + squares[2]
    decay = np.exp(float(np.asarray(values[4])) * total)
    return {0: decay.reshape(-1).astype(np.float32)}


def evolve(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the waves after the step, twice; the padding stays as it was."""
    waves, copy, decay = (np.asarray(value) for value in values[:3])
    stepped = waves.reshape(-1, SIDE + 1, 2).copy()
    stepped[:, :SIDE] *= decay.reshape(-1, SIDE, 1)
    copied = copy.reshape(-1, SIDE + 1, 2).copy()
    copied[:, :SIDE] = stepped[:, :SIDE]
    return {0: stepped.reshape(-1, 2), 1: copied.reshape(-1, 2)}


REFERENCES = {
    "cffts1": Reference(expected=transform_x, small={"ROWS": 9}, tolerance=1e-5),
    "cffts2": Reference(expected=transform_y, small={"NZ": 3}, tolerance=1e-12),
    "cffts3": Reference(expected=transform_z, small={"LINES": 256}, tolerance=1e-12),
    "indexmap": Reference(expected=map_indices, small={"NZ": 6}, tolerance=1e-5),
    "evolve": Reference(expected=evolve, small={"NZ": 2}, tolerance=1e-6),
}
