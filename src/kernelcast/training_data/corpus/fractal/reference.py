"""The sets with all points at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def count_mandelbrot(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the turns of each point, step by step in the kernel's precision."""
    left, top, step = (np.float32(np.asarray(value)) for value in values[1:4])
    index = np.arange(parameters["SIDE"], dtype=np.float32)
    c_x, c_y = np.meshgrid(left + index * step, top + index * step)
    x, y, turns = np.zeros_like(c_x), np.zeros_like(c_x), np.zeros(c_x.shape, dtype=np.uint16)
    is_bounded = np.ones(c_x.shape, dtype=bool)
    for _ in range(parameters["TURNS"]):
        is_bounded &= x * x + y * y <= 4
        turns += is_bounded
        new_x = np.where(is_bounded, x * x - y * y + c_x, x)
        y = np.where(is_bounded, np.float32(2) * x * y + c_y, y)
        x = new_x
    return {0: turns}


def count_julia(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the turns of each pixel's samples in whole numbers."""
    c_x, c_y, half_step = (int(np.asarray(value)) for value in values[1:4])
    side = parameters["SIDE"]
    places = (np.arange(2 * side, dtype=np.int64) - side) * half_step
    x, y = np.meshgrid(places, places)
    turns = np.zeros(x.shape, dtype=np.int64)
    is_bounded = np.ones(x.shape, dtype=bool)
    for _ in range(parameters["TURNS"]):
        x_square, y_square = x * x >> 24, y * y >> 24
        is_bounded &= x_square + y_square <= 4 << 24
        turns += is_bounded
        y = np.where(is_bounded, 2 * (x * y >> 24) + c_y, y)
        x = np.where(is_bounded, x_square - y_square + c_x, x)
    return {0: turns.reshape(side, 2, side, 2).sum(axis=(1, 3)).astype(np.uint32)}


REFERENCES = {
    "mandelbrot": Reference(expected=count_mandelbrot, small={"SIDE": 64, "TURNS": 200}),
    "julia": Reference(expected=count_julia, small={"SIDE": 64, "TURNS": 100}),
}
