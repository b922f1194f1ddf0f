"""Bins of atoms: dense along a chain that wanders through the volume, nearly empty elsewhere."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

MARGIN = 2
SIDE = 12
DEPTH = 8
POINTS = 8
SPACING = 0.5


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write atoms.npy (x, y, z, charge) and counts.npy, bin after bin, margins included."""
    rng = np.random.default_rng(7)
    layers = parameters["LAYERS"] + 2 * MARGIN
    z, y, x = np.indices((layers, SIDE, SIDE))
    path = np.cumsum(rng.normal(scale=0.6, size=(layers, 2)), axis=0)
    # the chain is reflected at the sides
    path = np.abs((path + SIDE / 2) % (2 * SIDE) - SIDE)
    distance = np.hypot(x - path[z, 0], y - path[z, 1])
    counts = np.minimum(rng.poisson(np.where(distance < 3.0, 6.0, 0.4)), DEPTH)

    corner = (np.stack([x, y, z], axis=-1).reshape(-1, 1, 3) - MARGIN) * POINTS
    # never on a lattice point, where the potential is infinite
    place = rng.integers(0, POINTS, size=(counts.size, DEPTH, 3))
    beside = rng.uniform(0.2, 0.8, size=place.shape)
    atoms = np.empty((counts.size, DEPTH, 4), dtype=np.float32)
    atoms[..., :3] = SPACING * (corner + place + beside)
    atoms[..., 3] = rng.normal(size=atoms.shape[:2])
    np.save(folder / "atoms.npy", atoms.reshape(-1, 4))
    np.save(folder / "counts.npy", counts.reshape(-1).astype(np.int32))
    return {}
