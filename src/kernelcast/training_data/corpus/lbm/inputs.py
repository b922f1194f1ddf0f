"""Obstacles of the flow: spheres of many sizes at random places, and walls."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

OBSTACLE = 1
DRIVEN = 2
CELLS_PER_SPHERE = 12_000


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write flags.npy."""
    rng = np.random.default_rng(19)
    shape = tuple(parameters[name] for name in ("NZ", "NY", "NX"))
    flags = np.zeros(shape, dtype=np.int32)
    flags[:, -2, :] |= DRIVEN
    for _ in range(max(1, flags.size // CELLS_PER_SPHERE)):
        radius = rng.uniform(2.0, 11.0)
        centre = rng.uniform(0, shape)
        lowest = np.maximum(centre - radius, 0).astype(int)
        highest = np.minimum(centre + radius + 1, shape).astype(int)
        box = tuple(slice(low, high) for low, high in zip(lowest, highest, strict=True))
        ticks = np.ogrid[box]
        r2 = sum((tick - middle) ** 2 for tick, middle in zip(ticks, centre, strict=True))
        flags[box][r2 < radius**2] |= OBSTACLE
    flags[:, [0, -1], :] = OBSTACLE
    flags[:, :, [0, -1]] = OBSTACLE
    np.save(folder / "flags.npy", flags.reshape(-1))
    return {}
