"""Writes row_pointer.npy: where each of the 65,536 uneven rows of the matrix begins."""

from pathlib import Path

import numpy as np

ROWS = 65_536
MEAN_LENGTH = 520
LONGEST = 10_000
BUNCH = 512
SEED = 20


def make_row_pointer() -> np.ndarray:
    """Return the start of every row and, last, the number of entries."""
    rng = np.random.default_rng(SEED)
    bunch_scale = np.repeat(rng.lognormal(sigma=0.8, size=ROWS // BUNCH), BUNCH)
    lengths = bunch_scale * (1.0 + rng.pareto(1.8, size=ROWS))
    lengths *= MEAN_LENGTH / lengths.mean()
    row_pointer = np.zeros(ROWS + 1, dtype=np.int32)
    row_pointer[1:] = np.cumsum(np.clip(lengths, 1, LONGEST).astype(np.int32))
    return row_pointer


if __name__ == "__main__":
    np.save(Path(__file__).with_name("row_pointer.npy"), make_row_pointer())
