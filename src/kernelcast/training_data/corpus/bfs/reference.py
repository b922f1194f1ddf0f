"""The level by SciPy: a product of the front with the graph's matrix."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the levels after the step, and whether there is a next one."""
    levels, edge_begin, target = (np.asarray(value).astype(np.int64) for value in values[:3])
    current = parameters["CURRENT"]
    ones = np.ones(target.size, dtype=np.int64)
    graph = sparse.csr_matrix((ones, target, edge_begin), shape=(levels.size, levels.size))
    is_reached = graph.T @ (levels == current).astype(np.int64) > 0
    is_new = is_reached & (levels > current)
    levels = np.where(is_new, current + 1, levels).astype(np.uint32)
    return {0: levels, 3: np.array([is_new.any()], dtype=np.uint32)}


REFERENCES = {"bfs": Reference(expected=expected, small={"VERTICES": 8192})}
