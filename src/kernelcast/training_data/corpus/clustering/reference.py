"""Sums and neighbours with all points at once."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import spatial

from kernelcast.training_data.reference import Array, Reference, Value


def add_up(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the sums and numbers of points of each cluster."""
    points, clusters, sums, counts = (np.asarray(value) for value in values[:4])
    is_member = clusters == np.arange(parameters["CLUSTERS"])[:, np.newaxis]
    added = is_member.astype(np.int64) @ points.reshape(-1, 4).astype(np.int64)
    return {
        2: (sums + added.reshape(-1)).astype(np.int32),
        3: (counts + is_member.sum(axis=1)).astype(np.int32),
    }


def find_nearest(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return numbers and distances of the four nearest."""
    queries, descriptors = (
        np.asarray(value).reshape(-1, 16).astype(np.int64) for value in values[:2]
    )
    squares = (queries**2).sum(axis=1)[:, np.newaxis] + (descriptors**2).sum(axis=1)
    distances = squares - 2 * queries @ descriptors.T
    order = np.argsort(distances, axis=1, kind="stable")[:, :4]
    nearest = np.take_along_axis(distances, order, axis=1)
    return {2: order.astype(np.int32), 3: nearest.astype(np.int32)}


def count_neighbours(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return how many points a tree finds around each."""
    points = np.asarray(values[0]).reshape(-1, 2).astype(np.float64)
    tree = spatial.cKDTree(points)
    # squares of whole numbers lie at least 1 apart, so that half of that decides ties
    radius = (parameters["RADIUS"] ** 2 + 0.5) ** 0.5
    counts = tree.query_ball_point(points, radius, return_length=True)
    return {2: np.asarray(counts).astype(np.int32)}


REFERENCES = {
    "centroid_sums": Reference(expected=add_up, small={"POINTS": 8192}),
    "nearest": Reference(expected=find_nearest, small={"QUERIES": 128, "DESCRIPTORS": 256}),
    "neighbour_count": Reference(expected=count_neighbours, small={"POINTS": 2048}),
}
