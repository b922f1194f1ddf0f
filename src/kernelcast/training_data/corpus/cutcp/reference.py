"""The potential with a cutoff in NumPy, atom by atom instead of bin by bin."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.cutcp.inputs import DEPTH, SPACING
from kernelcast.training_data.reference import Array, Reference, Value

CUTOFF = 8.0


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the potential of all atoms within the cutoff."""
    atoms, counts = np.asarray(values[0]), np.asarray(values[1])
    is_there = np.arange(DEPTH) < counts[:, None]
    present = atoms.reshape(-1, DEPTH, 4)[is_there].astype(np.float64)
    shape = (8 * parameters["LAYERS"], 64, 64)
    energy = np.zeros(shape)
    for atom in present:
        _add_atom(energy, atom)
    return {2: energy.reshape(-1).astype(np.float32)}


def _add_atom(energy: Array, atom: Array) -> None:
    """Add one atom to the points in the cube around its sphere."""
    near = []
    squared = []
    for place, size in zip(atom[2::-1], energy.shape, strict=True):
        first = max(int(np.floor((place - CUTOFF) / SPACING)), 0)
        last = min(int(np.ceil((place + CUTOFF) / SPACING)) + 1, size)
        near.append(slice(first, max(first, last)))
        squared.append((SPACING * np.arange(first, max(first, last)) - place) ** 2)
    r2 = squared[0][:, None, None] + squared[1][:, None] + squared[2]
    shift = np.maximum(1.0 - r2 / CUTOFF**2, 0.0)
    energy[tuple(near)] += atom[3] / np.sqrt(r2) * shift**2


REFERENCES = {"lattice": Reference(expected=expected, small={"LAYERS": 1}, tolerance=2e-4)}
