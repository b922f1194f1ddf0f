"""A square sparse matrix whose rows and columns are filled by power laws.

Row lengths follow Pareto's law from two entries on, up to a limit; a sixteenth of the columns holds
about 40 % of the entries. Entries are sorted by rows, and by columns within a row.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

LONGEST = 8192


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write rows.npy, row_begin.npy and columns.npy; return ENTRIES."""
    rng = np.random.default_rng(8)
    rows = parameters["ROWS"]
    lengths = np.minimum(2.0 * (1.0 + rng.pareto(1.2, size=rows)), min(LONGEST, rows // 4))
    row_begin = np.zeros(rows + 1, dtype=np.int32)
    row_begin[1:] = np.cumsum(lengths.astype(np.int32))
    entries = int(row_begin[-1])
    row = np.repeat(np.arange(rows, dtype=np.int32), np.diff(row_begin))
    popular = (rows * rng.random(entries, dtype=np.float32) ** 3).astype(np.int64)
    columns = rng.permutation(rows)[np.minimum(popular, rows - 1)]
    keys = np.sort(row * np.int64(rows) + columns)
    np.save(folder / "rows.npy", row)
    np.save(folder / "row_begin.npy", row_begin)
    np.save(folder / "columns.npy", (keys % rows).astype(np.int32))
    return {"ENTRIES": entries}
