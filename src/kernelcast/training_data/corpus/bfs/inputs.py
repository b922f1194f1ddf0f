"""A directed graph whose degrees follow a power law, and a breadth-first search half done.

An edge ends at a vertex with a probability that grows with that vertex's own edges, so that many
lead to the same hubs.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

UNSEEN = 2**32 - 1
_EXPONENT = 1.2
_MOST_EDGES = 20_000


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write levels.npy, edge_begin.npy and target.npy; return EDGES and CURRENT."""
    rng = np.random.default_rng(7)
    vertices = parameters["VERTICES"]
    degrees = np.minimum(3.0 * (1.0 + rng.pareto(_EXPONENT, size=vertices)), _MOST_EDGES)
    edge_begin = np.zeros(vertices + 1, dtype=np.uint32)
    edge_begin[1:] = np.cumsum(degrees.astype(np.uint32))
    edges = int(edge_begin[-1])
    owner = np.repeat(np.arange(vertices, dtype=np.uint32), np.diff(edge_begin))
    target = owner[rng.integers(0, edges, size=edges, dtype=np.uint32)]
    levels = _search(edge_begin, target)
    weights = np.bincount(np.minimum(levels, 63), weights=np.diff(edge_begin), minlength=64)
    current = int(np.argmax(weights[:63]))
    levels[levels > current] = UNSEEN
    np.save(folder / "levels.npy", levels)
    np.save(folder / "edge_begin.npy", edge_begin)
    np.save(folder / "target.npy", target)
    return {"EDGES": edges, "CURRENT": current}


def _search(edge_begin: Array, target: Array) -> Array:
    """Give every vertex's level, from vertex 0 on."""
    levels = np.full(edge_begin.size - 1, UNSEEN, dtype=np.uint32)
    levels[0] = 0
    front = np.array([0])
    level = 0
    while front.size:
        level += 1
        reached = target[_list_edges(edge_begin, front)]
        levels[reached[levels[reached] == UNSEEN]] = level
        front = np.flatnonzero(levels == level)
    return levels


def _list_edges(edge_begin: Array, front: Array) -> Array:
    """Give the numbers of all edges that leave the vertices of the front."""
    counts = np.diff(edge_begin)[front].astype(np.int64)
    before = np.cumsum(counts) - counts
    edges: Array = np.repeat(edge_begin[front] - before, counts) + np.arange(counts.sum())
    return edges
