"""Write spheres.npy: centre and radius of twelve spheres above the plane y = -1."""

from pathlib import Path

import numpy as np


def make_spheres() -> np.ndarray:
    """Draw the spheres as a flat array of x, y, z, radius."""
    rng = np.random.default_rng(7)
    radius = rng.uniform(0.2, 0.6, 12)
    x = rng.uniform(-2.5, 1.5, 12)
    y = radius - 1.0 + rng.uniform(0.0, 0.8, 12)
    z = rng.uniform(-1.0, 4.0, 12)
    return np.stack([x, y, z, radius], axis=1).astype(np.float32).reshape(-1)


if __name__ == "__main__":
    np.save(Path(__file__).parent / "spheres.npy", make_spheres())
