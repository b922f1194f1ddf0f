"""Shells of water molecules with the STO-3G basis (s functions only) and pairs of near shells."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree, transform

# Exponents and coefficients of three primitives for oxygen 1s and 2s and hydrogen 1s.
EXPONENTS = np.array([
    [130.70932, 23.808861, 6.4436083],
    [5.0331513, 1.1695961, 0.3803890],
    [3.42525091, 0.62391373, 0.16885540],
])  # fmt: skip
COEFFICIENTS = np.array([
    [0.15432897, 0.53532814, 0.44463454],
    [-0.09996723, 0.39951283, 0.70011547],
    [0.15432897, 0.53532814, 0.44463454],
])  # fmt: skip
# Shells of a molecule, in bohr, and their kinds.
WATER = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.43, 1.108, 0.0], [-1.43, 1.108, 0.0]])
KINDS = np.array([0, 1, 2, 2])
SPACING = 5.86
NEAR = 6.0


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write shells.npy, pairs.npy and primitives.npy; return SHELLS."""
    rng = np.random.default_rng(3)
    pair_count = parameters["PAIRS"]
    # each molecule has at least ten pairs of its own
    molecules = pair_count // 4 + 8
    side = int(np.ceil(np.cbrt(molecules)))
    corners = np.indices((side, side, side)).reshape(3, -1).T[:molecules] * SPACING
    corners = corners + rng.uniform(-0.8, 0.8, size=corners.shape)
    turns = transform.Rotation.random(molecules, rng=rng).as_matrix()
    places = (corners[:, None] + WATER @ turns.transpose(0, 2, 1)).reshape(-1, 3)
    shells = np.empty((len(places), 4), dtype=np.float32)
    shells[:, :3] = places
    shells[:, 3] = np.tile(KINDS, molecules)
    near = cKDTree(places).query_pairs(NEAR, output_type="ndarray")
    same = np.repeat(np.arange(len(places)), 2).reshape(-1, 2)
    pairs = rng.permutation(np.concatenate([same, near]))[:pair_count]

    scaled = COEFFICIENTS * (2.0 * EXPONENTS / np.pi) ** 0.75
    primitives = np.stack([EXPONENTS, scaled], axis=-1).reshape(-1, 2)
    np.save(folder / "shells.npy", shells)
    np.save(folder / "pairs.npy", pairs.astype(np.int32))
    np.save(folder / "primitives.npy", primitives.astype(np.float32))
    return {"SHELLS": len(shells)}
