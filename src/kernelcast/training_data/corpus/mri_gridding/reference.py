"""The steps of gridding in NumPy and SciPy."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy import special

from kernelcast.training_data.corpus.mri_gridding.inputs import DIGITS, SHIFT, SIDE, find_tiles
from kernelcast.training_data.reference import Array, Reference, Value

RADIUS = 2.0
SHAPE = 5.0


def bin_samples(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return tiles, numbers and the new counts."""
    samples, _, _, counts = (np.asarray(value) for value in values[:4])
    tiles = find_tiles(samples)
    added = counts + np.bincount(tiles, minlength=counts.size)
    return {
        1: tiles.astype(np.uint32),
        2: np.arange(tiles.size, dtype=np.uint32),
        3: added.astype(np.uint32),
    }


def reorder(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return samples and signals in the order asked for."""
    order, samples, signals = (np.asarray(value) for value in values[:3])
    return {3: samples[order], 4: signals[order]}


def sort(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return each block sorted by the digit, and how often each digit occurs there."""
    block = 4 * parameters["LOCAL0"]
    keys, numbers = (np.asarray(value).reshape(-1, block) for value in values[:2])
    digits = (keys >> SHIFT) % DIGITS
    order = np.argsort(digits, axis=1, kind="stable")
    counts = (digits[:, :, None] == np.arange(DIGITS)).sum(axis=1)
    return {
        2: np.take_along_axis(keys, order, axis=1).reshape(-1),
        3: np.take_along_axis(numbers, order, axis=1).reshape(-1),
        4: counts.T.reshape(-1).astype(np.uint32),
    }


def rearrange(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return everything sorted by the digit: what moving sorted blocks must lead to."""
    keys, numbers = (np.asarray(value) for value in values[:2])
    order = np.argsort((keys >> SHIFT) % DIGITS, kind="stable")
    return {4: keys[order], 5: numbers[order]}


def grid_samples(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return grid and density, each sample spread over the cells around it."""
    samples, signals = (np.asarray(value).astype(np.float64) for value in values[:2])
    shape = (4 * parameters["LAYERS"], SIDE, SIDE)
    grid = np.zeros((*shape, 2))
    density = np.zeros(shape)
    nearest = np.rint(samples[:, 2::-1]).astype(int)
    for shift in product(range(-2, 3), repeat=3):
        cell = nearest + shift
        inside = 1.0 - ((samples[:, 2::-1] - cell) ** 2).sum(axis=1) / RADIUS**2
        is_near = (inside > 0) & (cell >= 0).all(axis=1) & (cell < shape).all(axis=1)
        where = tuple(cell[is_near].T)
        weight = special.i0(SHAPE * np.sqrt(inside[is_near])) / special.i0(SHAPE)
        weight *= samples[is_near, 3]
        np.add.at(density, where, weight)
        np.add.at(grid, where, weight[:, None] * signals[is_near])
    return {
        3: grid.reshape(-1, 2).astype(np.float32),
        4: density.reshape(-1).astype(np.float32),
    }


REFERENCES = {
    "binning": Reference(expected=bin_samples, small={"SPOKES": 12}),
    "reorder": Reference(expected=reorder, small={"SAMPLES": 2560}),
    "sort": Reference(expected=sort, small={"UNITS": 3}),
    "rearrange": Reference(expected=rearrange, small={"BLOCKS": 5}),
    "gridding": Reference(expected=grid_samples, small={"LAYERS": 2}, tolerance=1e-4),
}
