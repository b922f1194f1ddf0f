"""Hash tables and keys to insert or to look up."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

GOLDEN = np.uint32(2654435769)


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write keys.npy and table.npy; return LENGTH for the kernel that looks keys up."""
    rng = np.random.default_rng(34)
    if "FULL" in parameters:
        return {"LENGTH": _write_lookup(rng, parameters, folder)}
    count, slots = parameters["KEYS"], parameters["SLOTS"]
    keys = rng.integers(1, 4 * count, size=count, dtype=np.uint32)
    np.save(folder / "keys.npy", keys)
    # a repeated launch finds all keys present: the first one shall not be very different
    np.save(folder / "table.npy", _fill_in_order(keys[: count - count // 8], slots))
    return {}


def find_slots(keys: Array, slots: int) -> Array:
    """Give the slot at which the search for each key begins."""
    found: Array = (keys * GOLDEN).astype(np.uint64) * np.uint64(slots) >> np.uint64(32)
    return found.astype(np.int64)


def _fill_in_order(keys: Array, slots: int) -> Array:
    """Insert keys so that a greater one displaces a lesser one, all of them a slot at a time."""
    table = np.zeros(slots, dtype=np.uint32)
    slot = find_slots(keys, slots)
    while keys.size:
        displaced = table[slot]
        np.maximum.at(table, slot, keys)
        # those in the way of a greater key go on, and so do those that were in the table before
        is_out = (displaced != 0) & (displaced < table[slot])
        is_late = keys < table[slot]
        _, first = np.unique(slot[is_out], return_index=True)
        keys = np.concatenate([keys[is_late], displaced[is_out][first]])
        slot = (np.concatenate([slot[is_late], slot[is_out][first]]) + 1) % slots
    return table


def _write_lookup(rng: np.random.Generator, parameters: Mapping[str, int], folder: Path) -> int:
    """Write a table nine tenths full and twice as many keys; give the table's length."""
    full, slots = parameters["FULL"], parameters["SLOTS"]
    # odd keys are in the table, even ones are not
    numbers = rng.permutation(np.arange(parameters["KEYS"], dtype=np.uint32))
    keys = numbers * np.uint32(2) + np.where(numbers < full, np.uint32(1), np.uint32(2))
    np.save(folder / "keys.npy", keys)
    present = keys[numbers < full]
    home = find_slots(present, slots)
    order = np.argsort(home, kind="stable")
    index = np.arange(full)
    # a key's slot is its own or the one after the last key's; beyond the last slot there is room
    taken = np.maximum.accumulate(home[order] - index) + index
    table = np.zeros((max(int(taken[-1]) + 2, slots + 1), 2), dtype=np.uint32)
    table[taken, 0] = present[order]
    table[taken, 1] = rng.integers(0, 2**31, size=full, dtype=np.uint32)
    np.save(folder / "table.npy", table)
    return len(table)
