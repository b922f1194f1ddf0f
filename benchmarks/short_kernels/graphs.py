"""Searches and sums on graphs."""

import numpy as np
from numpy import float32, int32, uint8
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Content, Restored, case, round_up, zeros

Graph = tuple[int, Content, Content]
"""Number of vertices, beginnings of their edges, ends of these."""


def make_rmat(rng: Generator, scale: int, edges_each: int) -> Graph:
    """Make a graph with few vertices of many edges, by recursive matrices."""
    n = 1 << scale
    begins, ends = (np.zeros(n * edges_each, np.int64) for _ in range(2))
    for _ in range(scale):
        r = rng.random(n * edges_each)
        begins = begins * 2 + (r >= 0.76)
        ends = ends * 2 + (((r >= 0.57) & (r < 0.76)) | (r >= 0.95))
    names = rng.permutation(n)
    begins, ends = names[begins], names[ends]
    order = np.argsort(begins, kind="stable")
    rows = np.concatenate([[0], np.cumsum(np.bincount(begins, minlength=n))])
    return n, rows.astype(int32), ends[order].astype(int32)


def make_grid(side: int) -> Graph:
    """Make a grid of squares."""
    n = side * side
    v = np.arange(n)
    x, y = v % side, v // side
    neighbours = [
        (x > 0, v - 1),
        (x < side - 1, v + 1),
        (y > 0, v - side),
        (y < side - 1, v + side),
    ]
    rows = np.zeros(n + 1, int32)
    rows[1:] = np.cumsum(np.sum([is_there for is_there, _ in neighbours], axis=0))
    begins = np.concatenate([v[is_there] for is_there, _ in neighbours])
    ends = np.concatenate([to[is_there] for is_there, to in neighbours])
    return n, rows, ends[np.argsort(begins, kind="stable")].astype(int32)


def find_levels(graph: Graph, source: int) -> Content:
    """Give how many edges each vertex is away; -1 where no way leads."""
    n, rows, ends = graph
    found = np.full(n, -1, int32)
    found[source] = level = 0
    frontier: Content = np.array([source])
    while len(frontier):
        reached = np.unique(np.concatenate([ends[rows[v] : rows[v + 1]] for v in frontier]))
        frontier = reached[found[reached] < 0]
        level += 1
        found[frontier] = level
    return found


def search_breadth_first(graph: Graph, level: int | None = None) -> Case:
    """Search from the vertex of most edges: that level, or the one of most vertices."""
    n, rows, ends = graph
    levels = find_levels(graph, int(np.argmax(np.diff(rows))))
    if level is None:
        level = int(np.argmax(np.bincount(levels[levels >= 0])))
    is_visited = (levels >= 0) & (levels <= level)
    arguments = (
        Buffer(rows), Buffer(ends), Restored((levels == level).astype(uint8)),
        Restored(np.zeros(n, uint8)), Buffer(is_visited.astype(uint8)),
        Restored(np.where(is_visited, levels, -1).astype(int32)), int32(n),
    )  # fmt: skip
    return Case("bfs", "bfs1", (round_up(n, 256),), (256,), arguments)


@case
def bfs_rmat_small_frontier(rng: Generator) -> Case:
    """Search breadth-first, the second level."""
    return search_breadth_first(make_rmat(rng, 18, 8), 1)


@case
def bfs_rmat_big_frontier(rng: Generator) -> Case:
    """Search breadth-first, the level of most vertices."""
    return search_breadth_first(make_rmat(rng, 18, 8))


@case
def bfs_grid(rng: Generator) -> Case:
    """Search a grid breadth-first, far from the source."""
    return search_breadth_first(make_grid(1000), 400)


@case
def sssp_relax(rng: Generator) -> Case:
    """Relax edges of shortest paths, by atomic minima."""
    n, rows, ends = make_rmat(rng, 17, 8)
    weights = Buffer(rng.integers(1, 64, len(ends)).astype(int32))
    lengths = np.where(rng.random(n) < 0.3, rng.integers(0, 200, n), 1 << 29).astype(int32)
    flag = Restored(np.zeros(1, int32))
    arguments = (Buffer(rows), Buffer(ends), weights, Restored(lengths), flag, int32(n))
    return Case("sssp_relax", "sssp", (n,), (128,), arguments)


@case
def pagerank_pull(rng: Generator) -> Case:
    """Sum ranks of neighbours."""
    n, rows, ends = make_rmat(rng, 18, 8)
    ranks, degrees = np.full(n, 1 / n, float32), np.diff(rows).astype(int32)
    arguments = (Buffer(rows), Buffer(ends), Buffer(ranks), Buffer(degrees), zeros(n), int32(n))
    return Case("pagerank_pull", "pr", (n,), (128,), arguments)


@case
def triangle_count(rng: Generator) -> Case:
    """Count triangles by merging lists of neighbours."""
    n, rows, ends = make_rmat(rng, 13, 8)
    for v in range(n):
        ends[rows[v] : rows[v + 1]].sort()
    arguments = (Buffer(rows), Buffer(ends), zeros(n, dtype=int32), int32(n))
    return Case("triangle_count", "tc", (n,), (64,), arguments)


@case
def union_find_hook(rng: Generator) -> Case:
    """Join trees of components, an edge per work-item."""
    n, rows, ends = make_rmat(rng, 17, 4)
    begins = np.repeat(np.arange(n), np.diff(rows)).astype(int32)
    count = len(begins) // 128 * 128
    parents = Restored(np.arange(n, dtype=int32))
    arguments = (Buffer(begins), Buffer(ends), parents, int32(count))
    return Case("union_find_hook", "hook", (count,), (128,), arguments)
