"""Points on the unit sphere: an observed set in clusters and random sets, and the bins' limits."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

SETS = 32
BINS = 20
# Coordinates are multiples of this, so that cosines are exact in single precision and each pair
# belongs to the same bin whatever the order of the additions.
STEP = 2.0**-11


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write points.npy and limits.npy."""
    rng = np.random.default_rng(11)
    count = parameters["POINTS"]
    centres = rng.normal(size=(max(count // 50, 1), 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    spread = rng.normal(size=(count, 3)) * rng.exponential(0.05, size=(count, 1))
    observed = centres[rng.integers(len(centres), size=count)] + spread
    points = np.zeros(((SETS + 1) * count, 4), dtype=np.float32)
    points[:count, :3] = _put_on_sphere(observed)
    points[count:, :3] = _put_on_sphere(rng.normal(size=(SETS * count, 3)))
    angles = np.geomspace(np.radians(1.0), np.pi, BINS)
    np.save(folder / "points.npy", points)
    np.save(folder / "limits.npy", np.cos(angles - angles[0]).astype(np.float32))
    return {}


def _put_on_sphere(directions: Array) -> Array:
    unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    rounded: Array = np.rint(unit / STEP) * STEP
    return rounded
