"""Graphs with hubs, and forests of uneven depth."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

HIGHEST_DEGREE = 16384
UNREACHED = 0xFFFFFFFF


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what the kernel needs that has these parameters; return EDGES where it has that."""
    rng = np.random.default_rng(21)
    vertices = parameters["VERTICES"]
    if "TREES" in parameters:
        np.save(folder / "parents.npy", _grow_trees(rng, vertices, parameters["TREES"]))
        return {}
    if "LINKS" in parameters:
        return {"EDGES": _write_ordered(rng, vertices, parameters["LINKS"], folder)}
    degrees = np.minimum(6.0 * rng.pareto(1.3, size=vertices), min(HIGHEST_DEGREE, vertices // 4))
    edge_begin = np.zeros(vertices + 1, dtype=np.int32)
    edge_begin[1:] = np.cumsum(degrees.astype(np.int32))
    edges = int(edge_begin[-1])
    neighbours = _choose_vertices(rng, vertices, edges)
    np.save(folder / "edge_begin.npy", edge_begin)
    np.save(folder / "neighbours.npy", neighbours)
    if "LONGEST" in parameters:
        lengths = rng.integers(1, parameters["LONGEST"] + 1, size=edges, dtype=np.uint8)
        np.save(folder / "lengths.npy", lengths)
        _write_distances(rng, edge_begin, neighbours, lengths, folder)
    return {"EDGES": edges}


def _choose_vertices(rng: np.random.Generator, vertices: int, count: int, power: int = 3) -> Array:
    """Choose vertices at random, few of them very often; their numbers say nothing about it."""
    ranks = (vertices * rng.random(count, dtype=np.float32) ** power).astype(np.int64)
    chosen: Array = rng.permutation(vertices).astype(np.int32)[np.minimum(ranks, vertices - 1)]
    return chosen


def _write_distances(
    rng: np.random.Generator, edge_begin: Array, neighbours: Array, lengths: Array, folder: Path
) -> None:
    """Write distances before a round, and in its midst: an eighth of the vertices is missing."""
    vertices = edge_begin.size - 1
    distances = rng.integers(0, 1000, size=vertices, dtype=np.uint32)
    distances[rng.random(vertices) < 0.4] = UNREACHED
    offers = np.repeat(distances, np.diff(edge_begin))
    is_made = offers != UNREACHED
    is_made &= np.repeat(np.arange(vertices) % 8 != 0, np.diff(edge_begin))
    relaxed = distances.copy()
    np.minimum.at(relaxed, neighbours[is_made], (offers + lengths)[is_made])
    np.save(folder / "distances.npy", distances)
    np.save(folder / "new_distances.npy", relaxed)


def _grow_trees(rng: np.random.Generator, vertices: int, trees: int) -> Array:
    """Give each vertex but the first ones a parent among those before it."""
    index = np.arange(vertices)
    parents = (rng.random(vertices) * index).astype(np.uint32)
    parents[:trees] = index[:trees]
    return parents


def _write_ordered(rng: np.random.Generator, vertices: int, links: int, folder: Path) -> int:
    """Write the edges from lesser to greater vertices, each once; give their number."""
    # a milder law: lists of the greatest hubs stay below 65,536 in graphs of millions
    ends = _choose_vertices(rng, vertices, 2 * links * vertices, power=2).astype(np.int64)
    ends = ends.reshape(2, -1)
    lesser, greater = ends.min(axis=0), ends.max(axis=0)
    keys = np.unique((lesser * vertices + greater)[lesser != greater])
    source = keys // vertices
    edge_begin = np.searchsorted(source, np.arange(vertices + 1))
    np.save(folder / "edge_begin.npy", edge_begin.astype(np.int32))
    np.save(folder / "neighbours.npy", (keys % vertices).astype(np.int32))
    np.save(folder / "vertices.npy", source.astype(np.int32))
    return keys.size
