"""Write row_begin.npy: row pointers of a graph in which early vertices have more neighbours."""

from pathlib import Path

import numpy as np

VERTEX_COUNT = 65536


def make_row_begin() -> np.ndarray:
    """Draw degrees that fall with the square root of the vertex's age."""
    rng = np.random.default_rng(1959)
    mean = 24.0 * np.sqrt(VERTEX_COUNT / (np.arange(VERTEX_COUNT) + 16.0))
    degrees = np.maximum(rng.poisson(mean * rng.lognormal(-0.18, 0.6, VERTEX_COUNT)), 1)
    return np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)


if __name__ == "__main__":
    np.save(Path(__file__).parent / "row_begin.npy", make_row_begin())
