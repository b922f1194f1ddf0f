"""The next level of every search by marking all neighbours of its frontier."""

import numpy as np

SMALL: dict[str, int] = {"SEARCHES": 2}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the levels and the number of vertices reached anew by each search."""
    row_begin, neighbours = np.asarray(inputs[0]), np.asarray(inputs[1])
    levels = np.asarray(inputs[2]).reshape(parameters["SEARCHES"], -1).copy()
    current = int(np.asarray(inputs[5]))
    reached = np.zeros(parameters["SEARCHES"], dtype=np.int32)
    for search, level in enumerate(levels):
        is_edge_active = np.repeat(level == current, np.diff(row_begin))
        marked = np.zeros(level.size, dtype=bool)
        marked[neighbours[is_edge_active]] = True
        fresh = marked & (level == 0)
        level[fresh] = current + 1
        reached[search] = fresh.sum()
    return {2: levels.reshape(-1), 3: reached}
