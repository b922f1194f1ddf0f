"""The pass by stable sorting in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.radix_sort.inputs import DIGITS, SHIFT
from kernelcast.training_data.reference import Array, Reference, Value


def sort_blocks(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return each block of four keys a work-item, sorted by the digit."""
    keys = np.asarray(values[0]).reshape(-1, 4 * parameters["LOCAL0"])
    order = np.argsort((keys >> SHIFT) % DIGITS, axis=1, kind="stable")
    return {1: np.take_along_axis(keys, order, axis=1).reshape(-1, 4)}


def reorder(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all keys sorted by the digit: what moving sorted blocks must lead to."""
    keys = np.asarray(values[0]).reshape(-1)
    return {3: keys[np.argsort((keys >> SHIFT) % DIGITS, kind="stable")]}


REFERENCES = {
    "radix_sort_block_keys": Reference(expected=sort_blocks, small={"UNITS": 3}),
    "reorder_data_keys": Reference(expected=reorder, small={"BLOCKS": 5}),
}
