"""Write offsets.npy: where each sequence of a database sorted by length begins."""

from pathlib import Path

import numpy as np

SEQUENCE_COUNT = 16384


def make_offsets() -> np.ndarray:
    """Draw lengths like those of proteins and return their running sum."""
    rng = np.random.default_rng(365)
    lengths = np.clip(rng.lognormal(5.6, 0.65, SEQUENCE_COUNT), 24, 4000).astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.sort(lengths))]).astype(np.int32)


if __name__ == "__main__":
    offsets = make_offsets()
    np.save(Path(__file__).parent / "offsets.npy", offsets)
