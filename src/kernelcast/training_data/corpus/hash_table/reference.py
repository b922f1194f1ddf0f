"""The table by inserting one key after the other, and looking up by sorting."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.hash_table.inputs import find_slots
from kernelcast.training_data.reference import Array, Reference, Value


def insert(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the table: the greatest key first takes the first slot that is free to it."""
    given = np.asarray(values[1])
    keys = np.unique(np.concatenate([np.asarray(values[0]), given[given > 0]]))[::-1]
    table = np.zeros_like(given)
    slots = parameters["SLOTS"]
    for key, home in zip(keys, find_slots(keys, slots).tolist(), strict=True):
        slot = home
        while table[slot]:
            slot = (slot + 1) % slots
        table[slot] = key
    return {1: table}


def look_up(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the values of the keys that are present."""
    keys, table = (np.asarray(value) for value in values[:2])
    pairs = table.reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    place = np.minimum(np.searchsorted(pairs[:, 0], keys), len(pairs) - 1)
    is_present = pairs[place, 0] == keys
    return {2: np.where(is_present, pairs[place, 1], np.uint32(0xFFFFFFFF))}


REFERENCES = {
    "insert": Reference(expected=insert, small={"KEYS": 4096}),
    "probe": Reference(expected=look_up, small={"KEYS": 4096}),
}
