"""Sums of absolute differences in NumPy."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

COLUMNS = 22
SIDE = 16
WIDTH = 33
PADDED = 1096


def find_sads(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the SADs of blocks of 4 x 4 pixels, position by position."""
    rows = parameters["ROWS"]
    shape = (rows * SIDE, COLUMNS * SIDE)
    frame = np.asarray(values[0]).reshape(shape).astype(np.int32)
    reference = np.asarray(values[1]).reshape(shape[0] + 32, shape[1] + 32).astype(np.int32)
    sads = np.asarray(values[2]).reshape(rows, COLUMNS, 4, 4, PADDED).copy()
    for position, (dy, dx) in enumerate(product(range(WIDTH), repeat=2)):
        difference = np.abs(frame - reference[dy : dy + shape[0], dx : dx + shape[1]])
        parts = difference.reshape(rows, 4, 4, COLUMNS, 4, 4).sum(axis=(2, 5))
        sads[..., position] = parts.transpose(0, 2, 1, 3)
    return {2: sads.reshape(-1)}


def add_to_8(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the SADs of 8 x 4, 4 x 8 and 8 x 8 pixels."""
    sads = np.asarray(values[0]).reshape(-1, 2, 2, 2, 2, PADDED)  # y, y in pair, x, x in pair
    return {
        1: _pack(sads.sum(axis=4)),
        2: _pack(sads.sum(axis=2)),
        3: _pack(sads.sum(axis=(2, 4))),
    }


def add_to_16(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the SADs of 16 x 8, 8 x 16 and 16 x 16 pixels."""
    sads = np.asarray(values[0]).reshape(-1, 2, 2, PADDED)
    return {
        1: _pack(sads.sum(axis=2)),
        2: _pack(sads.sum(axis=1)),
        3: _pack(sads.sum(axis=(1, 2))),
    }


def _pack(sads: Array) -> Array:
    return sads.astype(np.uint16).reshape(-1, 2)


REFERENCES = {
    "mb_calc": Reference(expected=find_sads, small={"ROWS": 1}),
    "calc_8": Reference(expected=add_to_8, small={"BLOCKS": 5}),
    "calc_16": Reference(expected=add_to_16, small={"BLOCKS": 7}),
}
