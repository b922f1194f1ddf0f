"""A terrain of hills of all sizes, and fog in clouds."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

CELLS_PER_CLOUD = 400_000


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write heights.npy and return its PEAK, or write fog.npy, as the parameters ask."""
    rng = np.random.default_rng(23)
    if "PEAK" in parameters:
        heights = _make_terrain(rng, (parameters["HEIGHT"], parameters["WIDTH"]))
        np.save(folder / "heights.npy", heights.reshape(-1))
        return {"PEAK": int(heights.max())}
    if "DEPTH" in parameters:
        shape = (parameters["DEPTH"], parameters["HEIGHT"], parameters["WIDTH"])
        fog = _make_fog(rng, shape)
        np.save(folder / "fog.npy", fog.reshape(-1))
    return {}


def _make_terrain(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Add up random heights on ever finer grids."""
    total = np.zeros(shape, dtype=np.int32)
    for cell in (64, 32, 16, 8, 4, 2, 1):
        coarse = rng.integers(0, 96 * cell, (shape[0] // cell, shape[1] // cell), dtype=np.int32)
        total += coarse.repeat(cell, axis=0).repeat(cell, axis=1)
    return total


def _make_fog(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """Fill balls of many sizes with dense fog."""
    fog = np.full(shape, 2, dtype=np.uint8)
    for _ in range(max(2, fog.size // CELLS_PER_CLOUD)):
        radius = rng.uniform(5.0, 45.0)
        centre = rng.uniform(0, shape)
        lowest = np.maximum(centre - radius, 0).astype(int)
        highest = np.minimum(centre + radius + 1, shape).astype(int)
        box = tuple(slice(low, high) for low, high in zip(lowest, highest, strict=True))
        ticks = np.ogrid[box]
        r2 = sum((tick - middle) ** 2 for tick, middle in zip(ticks, centre, strict=True))
        fog[box][r2 < radius**2] = rng.integers(10, 120)
    return fog
