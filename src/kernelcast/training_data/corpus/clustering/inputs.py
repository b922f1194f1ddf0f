"""Points in clusters of very different size."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

POINTS_PER_CELL = 8


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what the kernel needs that has these parameters; return CELLS where it has that."""
    rng = np.random.default_rng(17)
    if "CLUSTERS" in parameters:
        shares = np.cumsum(1.0 / np.arange(1, parameters["CLUSTERS"] + 1))
        draws = rng.random(parameters["POINTS"], dtype=np.float32)
        clusters = np.searchsorted((shares / shares[-1]).astype(np.float32), draws)
        np.save(folder / "clusters.npy", clusters.astype(np.uint8))
    elif "RADIUS" in parameters:
        return {"CELLS": _write_points(rng, parameters["POINTS"], parameters["RADIUS"], folder)}
    return {}


def _write_points(rng: np.random.Generator, count: int, radius: int, folder: Path) -> int:
    """Write points sorted by cells, and where each cell begins; give the cells along a side."""
    cells = max(int((count / POINTS_PER_CELL) ** 0.5), 2)
    side = cells * radius
    clusters = max(count // 2048, 1)
    centres = rng.random((clusters, 2)) * side
    chosen = (clusters * rng.random(count) ** 2).astype(np.int64)
    points = centres[chosen] + rng.normal(0.0, 6.0 * radius, size=(count, 2))
    points = (points % side).astype(np.int32)
    cell = points[:, 1] // radius * cells + points[:, 0] // radius
    np.save(folder / "points.npy", points[np.argsort(cell, kind="stable")])
    counts = np.bincount(cell, minlength=cells**2)
    np.save(folder / "cell_begin.npy", np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    return cells
