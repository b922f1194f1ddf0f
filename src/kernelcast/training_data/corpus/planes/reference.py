"""The same results with whole planes at a time."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

_SMALL = {"HEIGHT": 64, "WIDTH": 256}


def shine(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return light and shadow, all rays a step at a time."""
    heights = np.asarray(values[0]).astype(np.int64).reshape(parameters["HEIGHT"], -1)
    step_x, step_y, rise, peak = (int(np.asarray(value)) for value in values[2:6])
    slope = np.hstack([heights[:, :1], heights[:, :-1]]) - heights
    light = np.clip(128 + slope, 1, 255)
    y, x = np.indices(heights.shape)
    is_on_its_way = np.ones(heights.shape, dtype=bool)
    step = 0
    while is_on_its_way.any():
        step += 1
        at_x, at_y = x + step * step_x // 256, y + step * step_y // 256
        ray = heights + step * rise
        is_on_its_way &= (ray <= peak) & (at_x < x.shape[1]) & (at_y < x.shape[0])
        ground = np.zeros_like(heights)
        ground[is_on_its_way] = heights[at_y[is_on_its_way], at_x[is_on_its_way]]
        is_hit = is_on_its_way & (ground > ray)
        light[is_hit] = 0
        is_on_its_way &= ~is_hit
    return {1: light.astype(np.uint8)}


def glow(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the picture, all rays a layer at a time."""
    shape = (parameters["DEPTH"], parameters["HEIGHT"], parameters["WIDTH"])
    fog = np.asarray(values[0]).reshape(shape) / 512.0
    slant_x, slant_y = (int(np.asarray(value)) for value in values[3:5])
    light, clear = np.zeros(shape[1:]), np.ones(shape[1:])
    y, x = np.arange(shape[1]), np.arange(shape[2])
    for z, layer in enumerate(fog):
        row = np.clip(y + z * slant_y // 256, 0, y[-1])
        column = np.clip(x + z * slant_x // 256, 0, x[-1])
        density = np.where(clear > 0.02, layer[np.ix_(row, column)], 0.0)
        light += clear * density * (1.0 + density)
        clear *= 1.0 - density
    return {1: light.astype(np.float32)}


def flood(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the nearest seed of nine places, the first one of several."""
    width, step = parameters["WIDTH"], parameters["STEP"]
    seeds = np.asarray(values[0]).astype(np.int64).reshape(-1, width)
    height = len(seeds)
    padded = np.pad(seeds, step, constant_values=-1)
    y, x = np.indices(seeds.shape)
    none = np.iinfo(np.int64).max
    best, least = np.full_like(seeds, -1), np.full_like(seeds, none)
    for dy, dx in product((0, step, 2 * step), repeat=2):
        there = padded[dy : dy + height, dx : dx + width]
        row, column = np.divmod(there, width)
        distance = np.where(there < 0, none, (row - y) ** 2 + (column - x) ** 2)
        best = np.where(distance < least, there, best)
        least = np.minimum(distance, least)
    return {1: best.astype(np.int32)}


def turn(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the spins after half a sweep."""
    spins = np.asarray(values[0]).astype(np.int64).reshape(-1, parameters["WIDTH"])
    signs = 2 * spins - 1
    around = sum(np.roll(signs, shift, axis) for axis in (0, 1) for shift in (-1, 1))
    bond = signs * around
    number = np.arange(spins.size, dtype=np.uint32).reshape(spins.shape)
    drawn = _scramble(number ^ np.uint32(np.asarray(values[3])))
    is_turned = (bond <= 0) | (drawn < np.where(bond == 4, 126617650, 737437300))
    is_mine = np.indices(spins.shape).sum(axis=0) % 2 == parameters["COLOUR"]
    return {0: np.where(is_mine & is_turned, 1 - spins, spins).astype(np.uint8)}


def _scramble(x: Array) -> Array:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ (x >> np.uint32(16)))


def transform(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the quarters: pairs of rows, then pairs of columns."""
    image = np.asarray(values[0]).astype(np.int64).reshape(parameters["HEIGHT"], -1)
    rows = np.vstack([(image[::2] + image[1::2]) // 2, image[::2] - image[1::2]])
    first, second = rows[:, ::2], rows[:, 1::2]
    return {1: np.hstack([(first + second) // 2, first - second]).astype(np.int16)}


def pass_on(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return transforms of four parts, each of which was transformed before."""
    passed, width = parameters["PASSED"], parameters["WIDTH"]
    pairs = np.asarray(values[0], dtype=np.float64).reshape(4, -1, passed, width, 2)
    parts = pairs[..., 0] + 1j * pairs[..., 1]
    turn_by = np.outer(np.arange(4), np.arange(passed)) / (4 * passed)
    twisted = parts * np.exp(-2j * np.pi * turn_by)[:, np.newaxis, :, np.newaxis]
    together = np.fft.fft(twisted, axis=0).transpose(1, 0, 2, 3)
    lanes = np.stack([together.real, together.imag], axis=-1)
    return {1: lanes.reshape(-1, 2).astype(np.float32)}


REFERENCES = {
    "terrain_shadow": Reference(expected=shine, small=_SMALL),
    "volume_cast": Reference(expected=glow, small={**_SMALL, "DEPTH": 100}, tolerance=1e-4),
    "jump_flood": Reference(expected=flood, small={**_SMALL, "STEP": 8}),
    "ising": Reference(expected=turn, small=_SMALL),
    "haar": Reference(expected=transform, small=_SMALL),
    "fft_columns": Reference(
        expected=pass_on, small={"WIDTH": 128, "N": 256, "PASSED": 16}, tolerance=1e-5
    ),
}
