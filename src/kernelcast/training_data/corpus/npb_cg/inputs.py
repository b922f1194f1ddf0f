"""Rows of a random sparse matrix: a sum of outer products of sparse vectors.

Each of as many vectors as there are rows holds its own row and NONZER random ones. A row has
1 + NONZER entries from each of the vectors that hold it, so its length follows from a Poisson law.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write row_begin.npy; return NNZ."""
    rng = np.random.default_rng(14)
    rows, nonzer = parameters["ROWS"], parameters["NONZER"]
    lengths = (1 + nonzer) * (1 + rng.poisson(nonzer, size=rows))
    row_begin = np.zeros(rows + 1, dtype=np.int32)
    row_begin[1:] = np.cumsum(lengths)
    np.save(folder / "row_begin.npy", row_begin)
    return {"NNZ": int(row_begin[-1])}
