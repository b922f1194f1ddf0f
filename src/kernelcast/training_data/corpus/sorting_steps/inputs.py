"""Sorted lists that lie unevenly among each other, and records with keys in waves."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

TILE = 1024


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what the kernel needs that has these parameters; return KEPT where it has that."""
    rng = np.random.default_rng(41)
    if "PIECES" in parameters:
        first = rng.random(parameters["FIRST"], dtype=np.float32) ** 2
        second = rng.random(parameters["SECOND"], dtype=np.float32)
        for name, values in (("first", first), ("second", second)):
            np.save(folder / f"{name}.npy", np.sort((values * 2**31).astype(np.uint32)))
    elif "KEPT" in parameters:
        return {"KEPT": _write_records(rng, parameters["TILES"], parameters["LIMIT"], folder)}
    return {}


def _write_records(rng: np.random.Generator, tiles: int, limit: int, folder: Path) -> int:
    """Write records and where those kept of each tile go; give the number of those kept."""
    records = rng.integers(0, 2**32, size=(tiles, TILE, 4), dtype=np.uint32)
    middle = limit * (1.0 + 0.9 * np.sin(np.arange(tiles) / 5.0))
    keys = middle[:, np.newaxis] + rng.random((tiles, TILE), dtype=np.float32) * limit / 2
    records[..., 0] = keys.astype(np.uint32)
    counts = (records[..., 0] < limit).sum(axis=1)
    np.save(folder / "records.npy", records.reshape(-1, 4))
    np.save(folder / "tile_begin.npy", (np.cumsum(counts) - counts).astype(np.uint32))
    return int(counts.sum())
