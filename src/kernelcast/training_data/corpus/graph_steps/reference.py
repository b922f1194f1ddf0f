"""The steps with sparse matrices and NumPy's scattered minima."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from kernelcast.training_data.corpus.graph_steps.inputs import UNREACHED
from kernelcast.training_data.reference import Array, Reference, Value


def rank(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return ranks and what each vertex has to give in the next step."""
    edge_begin, from_, shares, weight = (np.asarray(value) for value in values[:4])
    damping, base = (float(np.asarray(value)) for value in values[6:8])
    side = parameters["VERTICES"]
    links = sparse.csr_matrix((np.ones(from_.size), from_, edge_begin), shape=(side, side))
    ranks = base + damping * (links @ shares.astype(np.float64))
    return {4: ranks.astype(np.float32), 5: (ranks * weight).astype(np.float32)}


def relax(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the least of the old distances and all ways over a neighbour."""
    edge_begin, to, lengths, distances, new_distances = (np.asarray(value) for value in values[:5])
    source = np.repeat(distances, np.diff(edge_begin))
    is_reached = source != UNREACHED
    relaxed = new_distances.copy()
    np.minimum.at(relaxed, to[is_reached], (source + lengths)[is_reached])
    return {4: relaxed}


def hook(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the least root that an edge leads to, for each root."""
    edges, parents, hooks = (np.asarray(value) for value in values[:3])
    roots = parents
    while (roots[roots] != roots).any():
        roots = roots[roots]
    ends = np.sort(roots[edges.reshape(-1, 2)], axis=1)
    ends = ends[ends[:, 0] != ends[:, 1]]
    hooked = hooks.copy()
    np.minimum.at(hooked, ends[:, 1], ends[:, 0])
    return {2: hooked}


def count_triangles(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the elements of A * A^T at the places of A."""
    edge_begin, to, from_ = (np.asarray(value) for value in values[:3])
    side = parameters["VERTICES"]
    links = sparse.csr_matrix((np.ones(to.size), to, edge_begin), shape=(side, side)).toarray()
    return {3: (links @ links.T)[from_, to].astype(np.int32)}


REFERENCES = {
    "pagerank": Reference(expected=rank, small={"VERTICES": 2048}, tolerance=1e-4),
    "relax": Reference(expected=relax, small={"VERTICES": 2048}),
    "hook": Reference(expected=hook, small={"VERTICES": 2048}),
    "triangles": Reference(expected=count_triangles, small={"VERTICES": 1024}),
}
