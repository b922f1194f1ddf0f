"""A square sparse matrix whose rows have from one entry to thousands.

A row's entries begin near the diagonal and go on in runs of neighbours with gaps between them,
now and then long ones; past the last column they go on at the first.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

_MOST_ENTRIES = 8192
_SHARE_OF_GAPS = 0.3


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write row_begin.npy and column.npy; return NNZ."""
    rng = np.random.default_rng(9)
    rows = parameters["ROWS"]
    drawn = rng.lognormal(mean=3.3, sigma=1.1, size=rows)
    lengths = np.clip(drawn, 1, min(_MOST_ENTRIES, rows // 4)).astype(np.int64)
    row_begin = np.zeros(rows + 1, dtype=np.int32)
    row_begin[1:] = np.cumsum(lengths)
    count = int(row_begin[-1])
    gaps = np.ones(count, dtype=np.int64)
    is_gap = rng.random(count, dtype=np.float32) < _SHARE_OF_GAPS
    long_gaps = 2.0 + 4.0 * rng.pareto(1.5, size=np.count_nonzero(is_gap))
    gaps[is_gap] = np.minimum(long_gaps, rows // 4).astype(np.int64)
    place = np.cumsum(gaps)
    shift = np.arange(rows) - rng.integers(0, 2048, size=rows) - place[row_begin[:-1]]
    column = (place + np.repeat(shift, lengths)) % rows
    np.save(folder / "row_begin.npy", row_begin)
    np.save(folder / "column.npy", column.astype(np.int32))
    return {"NNZ": count}
